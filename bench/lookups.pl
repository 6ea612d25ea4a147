#
# lookups.pl
#		Benchmarks of filters before lookups.  run.pl loads this file.
#
# A million keys are looked up in a table of five million rows.  Every query runs with the
# setting off and on, in turn, round after round; ratios are computed from the least CPU
# times.  Before that, both forms run once and must return the same rows.  Nested loops
# are also forced, with the setting off and on.  With partitions, each session runs the
# query once before it is measured.
#
use strict;
use warnings;

my ($scale, $rounds, $only, $progress);
my @list;						# cases in order

my @HERE = ('SET search_path = lookups, public', q{LOAD 'bloomfilter'}, 'SET random_page_cost = 1.1');
my $OFF = 'SET bloomfilter.lookup_filter = off';
my $ON = 'SET bloomfilter.lookup_filter = on';
my @FORCED = ('SET enable_hashjoin = off', 'SET enable_mergejoin = off');
my @ALWAYS = (@FORCED, 'SET bloomfilter.lookup_filter_max_share = 1');

sub lookup_wanted { my @groups = @_; return scalar grep { "lookups: $_" =~ /$only/ } @groups; }

sub lookup_rows { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

sub lookup_case
{
	my ($group, $name, $settings, $sql, %more) = @_;

	push @list, { group => "lookups: $group", name => $name, unit => 'ms CPU', settings => [ @HERE, @$settings ], sql => $sql, values => [], %more };
	return $list[-1];
}

# The plan of a case, without costs.
sub lookup_plan { my ($case) = @_; return join "\n", session(@{ $case->{settings} }, "EXPLAIN (COSTS OFF) $case->{sql}"); }

# Run cases in turn.  A case with a peer must return the same rows as the peer.
sub lookup_measure
{
	my (@cases) = @_;
	my %rows;

	for my $case (@cases)
	{
		my $rows = (session(@{ $case->{settings} }, "SELECT md5(string_agg(q::text, ';' ORDER BY q::text)) FROM ($case->{sql}) q"))[-1];

		$rows{ $case->{name} } = $rows;
		next unless $case->{peer};
		die "$case->{group}, $case->{name}: different rows than $case->{peer}\n" if $rows ne $rows{ $case->{peer} };
		$case->{remark} = 'no filter in the plan' if lookup_plan($case) !~ /Lookup Filter/;
	}
	for my $round (1 .. $rounds)
	{
		for my $case (@cases)
		{
			$progress->("$case->{group}: $case->{name}, round $round");
			push @{ $case->{values} }, cpu([ @{ $case->{settings} }, $case->{warm} ? $case->{sql} : () ], $case->{sql}) / 1e6;
		}
	}
	return;
}

# ------------------------------------------------------------------
# One table
# ------------------------------------------------------------------

my $TABLE_GROUP = 'one table';

# Keys in random order, of which a percentage exists.
sub lookup_load_table
{
	my ($rows, $keys, @percentages) = @_;

	query("CREATE UNLOGGED TABLE lookups.items AS SELECT n AS id, hashint8extended(n, 1) AS number, 'key-' || md5(n::text) AS string FROM generate_series(1::bigint, $rows) n");
	query("CREATE INDEX ON lookups.items ($_); CREATE INDEX ON lookups.items USING bloomfilter ($_)") for 'number', 'string';
	query("CREATE UNLOGGED TABLE lookups.keys_$_ AS SELECT hashint8extended(n, 1) AS number, 'key-' || md5(n::text) AS string
		     FROM (SELECT CASE WHEN n % 100 < $_ THEN n * $rows / $keys ELSE n + $rows END AS n FROM generate_series(1::bigint, $keys) n ORDER BY hashint8(n)) x") for @percentages;
	query("VACUUM (FREEZE, ANALYZE) lookups.$_") for 'items', map { "keys_$_" } @percentages;
	return;
}

sub lookup_in_one_table
{
	# percentage that exists, goals for text and bigint
	my @shares = ([ 0, 4, 4 ], [ 10, 2.5, 2.2 ], [ 50, 0.95, 0.95 ], [ 100, 0.95, 0.95 ]);
	my @cases;

	lookup_load_table(lookup_rows(5_000_000, 50_000), lookup_rows(1_000_000, 10_000), map { $_->[0] } @shares);
	for my $type ([ 'text', 'string', 1 ], [ 'bigint', 'number', 2 ])
	{
		my ($name, $column, $goal) = @$type;

		for my $share (@shares)
		{
			my $sql = "SELECT count(*) FROM keys_$share->[0] k WHERE NOT EXISTS (SELECT FROM items i WHERE i.$column = k.$column)";
			my $title = "$name, $share->[0]% exist";

			push @cases, lookup_case($TABLE_GROUP, "$title, off", [$OFF], $sql),
			  lookup_case($TABLE_GROUP, $title, [$ON], $sql, peer => "$title, off", least => $share->[$goal]),
			  lookup_case($TABLE_GROUP, "$title, nested loop, off", [ $OFF, @FORCED ], $sql),
			  lookup_case($TABLE_GROUP, "$title, nested loop", [ $ON, @ALWAYS ], $sql, peer => "$title, nested loop, off",
				  $share->[0] == 100 ? (most => 1.05) : (least => 0));
		}
	}
	for my $more ([ 'LEFT JOIN, bigint', 'SELECT count(i.id) FROM keys_10 k LEFT JOIN items i ON i.number = k.number', 2 ],
		[ 'correlated subquery, text', 'SELECT sum((SELECT i.id FROM items i WHERE i.string = k.string)) FROM keys_10 k', 3 ])
	{
		my ($name, $sql, $goal) = @$more;

		push @cases, lookup_case($TABLE_GROUP, "$name, 10% exist, off", [$OFF], $sql),
		  lookup_case($TABLE_GROUP, "$name, 10% exist", [$ON], $sql, peer => "$name, 10% exist, off", least => $goal);
	}
	lookup_measure(@cases);

	# all keys exist: the plan does not change
	my @all = grep { $_->{name} =~ /100% exist(, off)?$/ } @cases;
	my $changed = grep { lookup_plan($all[ 2 * $_ ]) ne lookup_plan($all[ 2 * $_ + 1 ]) } 0 .. $#all / 2;
	push @list, { group => "lookups: $TABLE_GROUP", name => 'queries with keys that all exist', unit => 'plans that change', values => [$changed], none => 1 };
	return;
}

# ------------------------------------------------------------------
# Partitions
# ------------------------------------------------------------------

my $PARTS_GROUP = 'partitions';

sub lookup_in_partitions
{
	my $parts = 120;
	my $rows = lookup_rows(30_000, 1000);
	my $all = $parts * $rows;
	my @cases;

	query("CREATE UNLOGGED TABLE lookups.events (month int, id bigint, payload text) PARTITION BY LIST (month)");
	query("CREATE UNLOGGED TABLE lookups.events_$_ PARTITION OF lookups.events FOR VALUES IN ($_)") for 1 .. $parts;
	query("INSERT INTO lookups.events SELECT 1 + n % $parts, hashint8extended(n, 1), 'event ' || n FROM generate_series(1, $all) n");
	query("CREATE INDEX ON lookups.events (id); CREATE INDEX ON lookups.events USING bloomfilter (id)");
	query("CREATE UNLOGGED TABLE lookups.known AS SELECT hashint8extended(n * ($all / 10000) - n % 120, 1) AS id FROM generate_series(1, 10000) n;
		   CREATE UNLOGGED TABLE lookups.thousand AS SELECT * FROM lookups.known LIMIT 1000;
		   CREATE UNLOGGED TABLE lookups.new AS SELECT hashint8extended(n + $all, 1) AS id FROM generate_series(1, 10000) n");
	query("VACUUM (FREEZE, ANALYZE) lookups.$_") for 'events', 'known', 'thousand', 'new';
	my $found = 'SELECT count(*), count(payload) FROM %s k LEFT JOIN events e ON e.id = k.id';
	my $absent = 'SELECT count(*) FROM %s k WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = k.id)';

	for my $query ([ '10,000 ids, each in one partition', $found, 'known', 1.5, 8 ], [ '1000 ids, each in one partition', $found, 'thousand', 10, 0 ],
		[ '10,000 new ids', $absent, 'new', 5, 0 ])
	{
		my ($name, $form, $table, $goal, $goal_forced) = @$query;
		my $sql = sprintf $form, $table;

		push @cases, lookup_case($PARTS_GROUP, "$name, off", [$OFF], $sql), lookup_case($PARTS_GROUP, "$name, nested loop, off", [ $OFF, @FORCED ], $sql),
		  lookup_case($PARTS_GROUP, $name, [$ON], $sql, peer => "$name, off", least => $goal),
		  lookup_case($PARTS_GROUP, "$name, nested loop", [ $ON, @FORCED ], $sql, peer => "$name, nested loop, off", least => $goal_forced);
	}
	$_->{warm} = 1 for @cases;		# opening 120 tables for the first time would take most of the time
	lookup_measure(@cases);
	return;
}

# ------------------------------------------------------------------
# Planning
# ------------------------------------------------------------------

my $PLANNING_GROUP = 'planning';

# Planning time in milliseconds, in a session that has planned the query before.
sub lookup_planning_time
{
	my ($case) = @_;
	my @lines = session(@{ $case->{settings} }, ("EXPLAIN (SUMMARY) $case->{sql}") x 20);
	my @times = sort { $a <=> $b } map { /^Planning Time: ([0-9.]+) ms/ ? $1 : () } @lines;

	return $times[ $#times / 2 ];
}

# The planning time with the setting on, less that with the setting off.
sub lookup_planning
{
	lookup_load_table(lookup_rows(5_000_000, 50_000), lookup_rows(1_000_000, 10_000), 10);
	query("CREATE UNLOGGED TABLE lookups.parted (month int, id bigint, number bigint) PARTITION BY LIST (month)");
	query("CREATE UNLOGGED TABLE lookups.parted_$_ PARTITION OF lookups.parted FOR VALUES IN ($_)") for 1 .. 120;
	query("INSERT INTO lookups.parted SELECT 1 + n % 120, n, hashint8extended(n, 1) FROM generate_series(1, 120000) n; CREATE INDEX ON lookups.parted (number); CREATE INDEX ON lookups.parted USING bloomfilter (number)");
	query('ANALYZE lookups.parted');
	for my $table ([ 'one table', 'items', 0.2 ], [ '120 partitions', 'parted', 1 ])
	{
		my ($name, $inner, $limit) = @$table;
		my $sql = "SELECT count(*) FROM keys_10 k WHERE NOT EXISTS (SELECT FROM $inner i WHERE i.number = k.number)";
		my %best;

		for my $round (1 .. $rounds)
		{
			for my $setting ($OFF, $ON)
			{
				my $time = lookup_planning_time({ settings => [ @HERE, $setting ], sql => $sql });

				$progress->("$PLANNING_GROUP: $name, round $round");
				$best{$setting} = $time if !defined $best{$setting} || $time < $best{$setting};
			}
		}
		push @list, { group => "lookups: $PLANNING_GROUP", name => "$name, off", unit => 'ms', values => [ $best{$OFF} ] };
		push @list, { group => "lookups: $PLANNING_GROUP", name => "$name, added", unit => 'ms', values => [ $best{$ON} - $best{$OFF} ], limit => $limit };
	}
	return;
}

# ------------------------------------------------------------------
# Indexes that are larger than shared buffers
# ------------------------------------------------------------------

my $SMALL_GROUP = 'shared_buffers of 64 MB';

sub lookup_in_small_buffers
{
	my $data = query('SHOW data_directory') =~ s/data$/small/r;
	my $settings = query('SHOW data_directory') =~ s/data$/stage.conf/r;
	my @cases;

	system("initdb -D $data -U postgres -A trust -N --no-locale -E UTF8 >/dev/null 2>&1") == 0 or die "initdb failed\n";
	system("cat $settings >>$data/postgresql.conf") == 0 or die "$data/postgresql.conf: $!\n";
	local $ENV{PGPORT} = 5433;
	my $options = "-c port=5433 -c shared_buffers=64MB -c listen_addresses= -c unix_socket_directories=$ENV{PGHOST} -c fsync=off -c jit=off -c autovacuum=off -c max_parallel_workers_per_gather=0 -c max_wal_size=8GB";
	system("pg_ctl -D $data -l $data.log -w -s -o '$options' start") == 0 or die "the server with small buffers does not start\n";
	lookup_prepare();
	lookup_load_table(lookup_rows(5_000_000, 50_000), lookup_rows(300_000, 3000), 10);
	my $sql = 'SELECT count(*) FROM keys_10 k WHERE NOT EXISTS (SELECT FROM items i WHERE i.string = k.string)';

	push @cases, lookup_case($SMALL_GROUP, 'text, 10% exist, off', [$OFF], $sql), lookup_case($SMALL_GROUP, 'text, 10% exist, nested loop, off', [ $OFF, @FORCED ], $sql),
	  lookup_case($SMALL_GROUP, 'text, 10% exist', [$ON], $sql, peer => 'text, 10% exist, off', least => 3);
	lookup_measure(@cases);
	system("pg_ctl -D $data -m immediate -s stop");
	system("rm -rf $data $data.log");
	return;
}

# ------------------------------------------------------------------

sub lookup_prepare
{
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	query('CREATE SCHEMA lookups');
	return;
}

# Run the matching parts.  Returns the cases with their values.
sub lookups_cases
{
	(my $options, $progress) = @_;
	($scale, $rounds, $only) = @{$options}{ 'scale', 'rounds', 'only' };
	my @parts = grep { lookup_wanted($_->[1]) }
	  ([ \&lookup_in_one_table, $TABLE_GROUP ], [ \&lookup_in_partitions, $PARTS_GROUP ], [ \&lookup_planning, $PLANNING_GROUP ], [ \&lookup_in_small_buffers, $SMALL_GROUP ]);

	for my $part (@parts)
	{
		lookup_prepare();
		$progress->("$part->[1]: loading");
		$part->[0]->();
		query('SET client_min_messages = warning; DROP SCHEMA lookups CASCADE');
	}
	for my $case (@list)
	{
		$case->{median} = median(@{ $case->{values} });
		($case->{best}) = sort { $a <=> $b } @{ $case->{values} };
	}
	return @list;
}

1;
