#
# index.pl
#		Benchmarks of indexes.  run.pl loads this file.
#
# Most figures are not query times, so each case has a unit.  CPU time is that of
# the server process, in nanoseconds, as counted by the scheduler: other programs
# do not count.  All data is cached, so nothing waits for a disk.  Every round runs
# all peers in turn.
#
use strict;
use warnings;

use POSIX qw(sysconf _SC_CLK_TCK);
use Time::HiRes qw(sleep);

my ($scale, $rounds, $only, $progress);
my %known;						# cases by group and name
my @list;						# cases in order

# ------------------------------------------------------------------
# Cases
# ------------------------------------------------------------------

# Declare a case: its group ("index: " is prepended), name and unit, and optionally
# a peer with a goal (most, least) or an absolute limit.
sub declare
{
	my ($group, $name, $unit, %more) = @_;
	my $case = { group => "index: $group", name => $name, unit => $unit, values => [], %more };

	return if $known{"$group|$name"};
	$known{"$group|$name"} = $case;
	push @list, $case;
	return;
}

sub sample
{
	my ($group, $name, $value) = @_;
	my $case = $known{"$group|$name"} or die "no case $name in group $group\n";

	push @{ $case->{values} }, $value;
	return;
}

# Add a remark, which is shown in the table.
sub remark { my ($group, $name, $text) = @_; $known{"$group|$name"}{remark} = $text; return; }

sub wanted { my @groups = @_; return scalar grep { "index: $_" =~ /$only/ } @groups; }

sub scaled { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

# ------------------------------------------------------------------
# Measuring
# ------------------------------------------------------------------

# Run statements in one session.  Returns their output, line by line.
sub session
{
	my (@statements) = @_;
	my $file = "$ENV{BENCH_OUT}/session.sql";

	open my $script, '>', $file or die "$file: $!\n";
	print $script "$_;\n" for @statements;
	close $script or die "$file: $!\n";
	open my $pipe, '-|', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f', $file or die "psql: $!\n";
	my @lines = <$pipe>;
	close $pipe or die "failed: @statements[0 .. ($#statements < 4 ? $#statements : 4)]\n";
	unlink $file;
	chomp @lines;
	return @lines;
}

# CPU time of statements, in nanoseconds.  The scheduler updates its count when a
# process goes to sleep, hence the statement before each reading.
sub cpu
{
	my ($before, @statements) = @_;
	my @lines = session(@$before, 'SELECT 1', q{SELECT 'cpu ' || cpu_ns()}, @statements, 'SELECT 1', q{SELECT 'cpu ' || cpu_ns()});
	my ($from, $to) = map { /^cpu ([0-9]+)$/ } @lines;

	return $to - $from;
}

# CPU time of all server processes that have ended.
sub ended_cpu
{
	my ($postmaster) = split /\n/, query(q{SELECT pg_read_file('postmaster.pid')});

	sleep 0.3;
	open my $stat, '<', "/proc/$postmaster/stat" or die "/proc/$postmaster/stat: $!\n";
	my @fields = split ' ', (<$stat> =~ s/.*\) //r);
	close $stat;
	return ($fields[13] + $fields[14]) * 1e9 / sysconf(_SC_CLK_TCK);
}

sub buffers
{
	my ($settings, $sql) = @_;
	my ($ms, $touched) = run_once({ settings => $settings, sql => $sql });

	return $touched;
}

# ------------------------------------------------------------------
# Peers
# ------------------------------------------------------------------

# The indexes to compare, for a number of text keys.
sub peers
{
	my ($keys) = @_;

	return (
		['no index', undef],
		['bloomfilter', "USING bloomfilter (k) WITH (fpp = 0.01, capacity = $keys)"],
		['fingerprint', 'USING fingerprint (k)'],
		['btree', 'USING btree (k)'],
		['hash', 'USING hash (k)'],
		['contrib bloom', 'USING bloom (k)'],
		# ranges as large as possible with a filter that fits a page
		['BRIN bloom', 'USING brin (k text_bloom_ops (n_distinct_per_range = -1, false_positive_rate = 0.01)) WITH (pages_per_range = 16)']);
}

# ------------------------------------------------------------------
# Inserts, one row per transaction
# ------------------------------------------------------------------

my $CLIENTS = 8;

sub pgbench
{
	my ($table, $rows) = @_;
	my $file = "$ENV{BENCH_OUT}/insert.sql";

	open my $script, '>', $file or die "$file: $!\n";
	print $script "\\set k random(1000000000000000, 9999999999999999)\nINSERT INTO $table (k, payload) VALUES (:k, '", 'x' x 50, "');\n";
	close $script or die "$file: $!\n";
	my $from = query('SELECT pg_current_wal_insert_lsn()');
	my $cpu = ended_cpu();
	system("pgbench -n -M prepared -c $CLIENTS -j 2 -t " . int($rows / $CLIENTS) . " -f $file >$ENV{BENCH_OUT}/pgbench.log 2>&1") == 0
	  or die `cat $ENV{BENCH_OUT}/pgbench.log`;
	$cpu = (ended_cpu() - $cpu) / $rows;
	unlink $file, "$ENV{BENCH_OUT}/pgbench.log";
	return ($cpu, query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$from')") / $rows);
}

sub full_page_writes
{
	my ($setting) = @_;

	query("ALTER SYSTEM SET full_page_writes = $setting");
	query('SELECT pg_reload_conf()');
	query('CHECKPOINT');
	sleep 0.5;
	return;
}

sub inserts
{
	my $there = scaled(1_000_000, 10_000);
	my $rows = $CLIENTS * scaled(25_000, 1000);
	my @peers = peers($there + $rows * (2 * $rounds + 1));
	my %wal;
	my $n = 0;

	for my $peer (@peers)
	{
		my ($name, $how) = @$peer;
		my $table = 'insert_' . ($name =~ s/\W/_/gr);

		declare('inserts', $name, 'ns CPU per row', $how ? (peer => 'no index') : (), $name eq 'bloomfilter' ? (most => 1.15) : ());
		declare('WAL', "$name, beyond no index", 'bytes per row', $name eq 'bloomfilter' ? (limit => 100) : ()) if $how;
		declare('WAL', "$name, full-page images after a checkpoint", 'bytes per row');
		query("CREATE TABLE $table (k text, payload text);
			   INSERT INTO $table SELECT substr(md5(i::text), 1, 16), repeat('x', 50) FROM generate_series(1, $there) i");
		query("CREATE INDEX ON $table $how") if $how;
	}
	query('VACUUM (FREEZE, ANALYZE)');
	for my $round (1 .. $rounds)
	{
		my %plain;

		# without, then with full-page images
		for my $images ('off', 'on')
		{
			full_page_writes($images);
			for my $peer (@peers)
			{
				my ($name, $how) = @$peer;
				my $table = 'insert_' . ($name =~ s/\W/_/gr);

				query('CHECKPOINT') if $images eq 'on';
				my ($cpu, $wal) = pgbench($table, $rows);
				$progress->("inserts: $name");
				if ($images eq 'off')
				{
					$plain{$name} = $wal;
					sample('inserts', $name, $cpu);
					sample('WAL', "$name, beyond no index", $wal - $plain{'no index'}) if $how;
				}
				else
				{
					sample('WAL', "$name, full-page images after a checkpoint", $wal - $plain{$name});
				}
			}
		}
	}
	remark('WAL', "$_->[0], full-page images after a checkpoint", "in the first $rows rows after it") for @peers;
	query('DROP TABLE ' . join ', ', map { 'insert_' . ($_->[0] =~ s/\W/_/gr) } @peers);
	return;
}

# ------------------------------------------------------------------
# Build time, size, and lookups of absent keys
# ------------------------------------------------------------------

# Look up every row of one table in another by a nested loop over an index.
my $LOOP = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off; SET enable_bitmapscan = off; SET enable_seqscan = off';

sub build
{
	my ($table, $how, $memory) = @_;

	query('CHECKPOINT');
	return cpu(["SET maintenance_work_mem = '$memory'", 'SET max_parallel_maintenance_workers = 0'], "CREATE INDEX built ON $table $how");
}

# Look up absent keys, one per statement: planned and executed.
sub one_miss
{
	my ($table, $name, $node, $settings, @keys) = @_;
	my $n = @keys;
	my $plan = query("$settings; EXPLAIN SELECT * FROM $table WHERE k = $keys[0]");
	my $cpu = cpu([ $settings, "SELECT * FROM $table WHERE k = 'none'" ], map { "SELECT * FROM $table WHERE k = $_" } @keys);

	sample('one miss', $name, $cpu / 1000 / $n);
	remark('one miss', $name, "plan without $node") unless $plan =~ /$node/;
	return;
}

sub misses
{
	my ($type, $table, $name, $scan, $probes) = @_;
	my ($kind) = $name =~ /^(\w+)/;
	my $sql = $kind eq 'bloomfilter' ? "SELECT count(*) FROM probes_$type p WHERE bloom_index_contains('$table', 'k', p.k)"
	  : "SELECT count(*) FROM probes_$type p WHERE EXISTS (SELECT FROM $table t WHERE t.k = p.k)";
	my $settings = $kind eq 'bloomfilter' ? 'SELECT' : $LOOP;

	if ($kind ne 'bloomfilter')
	{
		my $plan = query("$settings; EXPLAIN $sql");
		my $node = $kind eq 'btree' ? 'Index Only Scan using built' : 'Index Scan using built';

		die "no loop over the index: $plan\n" unless $plan =~ /Nested Loop.*$node/s;
	}
	sample('misses', "$name, $type", (cpu([ split /; */, $settings ], $sql) - $scan) / $probes);
	my $touched = buffers($settings, $sql) - buffers('SELECT', "SELECT count(k) FROM probes_$type");
	sample('misses', "buffers: $name, $type", $touched / $probes);
	return;
}

sub built
{
	my $keys = scaled(10_000_000, 10_000);
	my $probes = scaled(1_000_000, 20_000);
	my %table = (text => 'keys_text', bigint => 'keys_bigint');

	query("CREATE TABLE keys_text AS SELECT substr(md5(i::text), 1, 16) AS k FROM generate_series(1, $keys) i;
		   CREATE TABLE probes_text AS SELECT substr(md5('miss' || i), 1, 16) AS k FROM generate_series(1, $probes) i;
		   CREATE TABLE keys_bigint AS SELECT hashint8extended(i, 1) AS k FROM generate_series(1, $keys) i;
		   CREATE TABLE probes_bigint AS SELECT hashint8extended(-i, 1) AS k FROM generate_series(1, $probes) i");
	query('VACUUM (FREEZE, ANALYZE)');
	for my $type ('text', 'bigint')
	{
		my @peers = (peers($keys), ['bloomfilter, defaults', 'USING bloomfilter (k)']);

		@peers = grep { $_->[0] !~ /contrib|BRIN/ } @peers if $type eq 'bigint';
		for my $peer (@peers)
		{
			my ($name, $how) = @$peer;
			my $filter = $name =~ /^bloomfilter/;

			if ($how)
			{
				declare('build', "$name, $type, $_", 'ms CPU', $name ne 'btree' ? (peer => "btree, $type, $_") : (),
					$name eq 'bloomfilter' && $type eq 'text' ? (most => 0.15) : ())
				  for $type eq 'text' ? ('64MB', '1GB') : '64MB';
				declare('size', "$name, $type", 'bytes per key', $name eq 'bloomfilter' && $type eq 'text' ? (limit => 1.35) : ());
			}
			if ($name =~ /^(bloomfilter|fingerprint|btree|hash)/)
			{
				declare('misses', "$name, $type", 'ns CPU per key', $name ne 'btree' ? (peer => "btree, $type") : (), $filter ? (most => 0.2) : ());
				declare('misses', "buffers: $name, $type", 'buffers per key', $filter ? (limit => 1.01) : ());
			}
			elsif ($how)
			{
				declare('misses', "buffers: $name, $type", 'buffers per key');
				remark('misses', "buffers: $name, $type", 'of one lookup');
			}
			if ($type eq 'text')
			{
				declare('one miss', $name, 'us CPU', $filter ? (peer => 'btree') : ());
				declare('one miss', "$name, without false positives", 'us CPU', peer => 'btree') if $filter;
			}
		}
		if ($type eq 'text' && query(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'hll'}))
		{
			query('CREATE EXTENSION IF NOT EXISTS hll');
			declare('size', 'hll, which counts and finds nothing', 'bytes per set');
			sample('size', 'hll, which counts and finds nothing', query('SELECT pg_column_size(hll_add_agg(hll_hash_text(k))) FROM keys_text'));
		}
		for my $round (1 .. $rounds)
		{
			my $scan = cpu([], "SELECT count(k) FROM probes_$type");

			for my $peer (@peers)
			{
				my ($name, $how) = @$peer;

				$progress->("built: $name, $type");
				if ($how)
				{
					if ($type eq 'text')
					{
						sample('build', "$name, $type, 1GB", build($table{$type}, $how, '1GB') / 1e6);
						query('DROP INDEX built');
					}
					sample('build', "$name, $type, 64MB", build($table{$type}, $how, '64MB') / 1e6);
					sample('size', "$name, $type", query("SELECT pg_relation_size('built')") / $keys);
				}
				misses($type, $table{$type}, $name, $scan, $probes) if $name =~ /^(bloomfilter|fingerprint|btree|hash)/;
				if ($type eq 'text')
				{
					my $whole = $name =~ /contrib|BRIN/;
					my $node = !$how ? 'Seq Scan' : $whole || $name =~ /^bloomfilter/ ? 'Bitmap Index Scan' : 'Index (Only )?Scan';

					my @keys = map { sprintf "'%016d'", $_ } 1 .. (!$how || $whole ? 3 : 1000);

					sample('misses', "buffers: $name, $type", buffers('SET enable_seqscan = off', "SELECT * FROM $table{$type} WHERE k = $keys[0]")) if $whole;
					one_miss($table{$type}, $name, $node, $whole ? 'SET enable_seqscan = off' : 'SELECT', @keys);
					if ($name =~ /^bloomfilter/)
					{
						my $no = join ' UNION ALL ', map { "SELECT $_ AS k" } @keys;

						@keys = map { "'$_'" } split /\n/, query("SELECT k FROM ($no) x WHERE NOT bloom_index_contains('$table{$type}', 'k', k)");
						one_miss($table{$type}, "$name, without false positives", $node, 'SELECT', @keys);
					}
				}
				query('DROP INDEX built') if $how;
			}
		}
	}
	query('DROP TABLE keys_text, probes_text, keys_bigint, probes_bigint');
	return;
}

# ------------------------------------------------------------------
# Partitions
# ------------------------------------------------------------------

my $PARTITIONS = 365;

sub partitions
{
	my $rows = scaled(30_000, 300);
	my @keys = split /\n/, query("SELECT hashint8extended((i * 7919) % ($PARTITIONS * $rows), 5) FROM generate_series(1, 100) i");
	my @missing = split /\n/, query('SELECT hashint8extended(-i, 5) FROM generate_series(1, 100) i');
	my $generic = 'SET plan_cache_mode = force_generic_plan';
	my $btrees = 'SELECT * FROM with_btrees WHERE k = $1';
	my $alone = 'SELECT * FROM with_filters WHERE k = $1';
	my @cases = (
		{ name => 'btrees, generic plan', sql => $btrees, settings => $generic },
		{ name => 'bloom_find over btrees and filters at 1%', sql => q{SELECT * FROM bloom_find(NULL::with_btrees, 'k', $1)}, peer => 'btrees, generic plan', most => 0.25 },
		{ name => 'bloom_find over filters alone, defaults', sql => q{SELECT * FROM bloom_find(NULL::with_filters, 'k', $1)}, peer => 'btrees, generic plan', most => 0.25 },
		{ name => 'btrees, planned for each key', sql => $btrees, settings => 'SET plan_cache_mode = force_custom_plan', peer => 'btrees, generic plan' },
		{ name => 'no index', sql => $alone, settings => 'SET enable_bitmapscan = off', times => 2 },
		{ name => 'filters alone, planned for each key', sql => $alone, settings => 'SET plan_cache_mode = force_custom_plan', peer => 'no index', most => 0.05, times => 20 },
		{ name => 'filters alone, generic plan', sql => $alone, settings => $generic, peer => 'no index', most => 0.05, times => 20 });

	for my $table ('with_btrees', 'with_filters')
	{
		query("CREATE TABLE $table (day date, k bigint, payload text) PARTITION BY RANGE (day)");
		query("DO \$\$ BEGIN FOR i IN 0 .. $PARTITIONS - 1 LOOP
			   EXECUTE format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES FROM (%L) TO (%L)', i, date '2025-01-01' + i, date '2025-01-01' + i + 1);
			   END LOOP; END \$\$");
		query("INSERT INTO $table SELECT date '2025-01-01' + (i / $rows)::int, hashint8extended(i, 5), repeat('x', 40) FROM generate_series(0, $PARTITIONS * $rows - 1) i");
	}
	query('CREATE INDEX btrees ON with_btrees (k)');
	query('CREATE INDEX loose ON with_btrees USING bloomfilter (k) WITH (fpp = 0.01)');
	query('CREATE INDEX strict ON with_filters USING bloomfilter (k)');
	query('VACUUM (FREEZE, ANALYZE)');

	my ($btree, $loose, $strict) = map { query("SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('$_') WHERE isleaf") / 1e6 } 'btrees', 'loose', 'strict';
	declare('partitions', 'btrees', 'MB');
	declare('partitions', 'filters at 1%', 'MB', peer => 'btrees', most => 0.1);
	declare('partitions', 'filters, defaults', 'MB', peer => 'btrees', most => 0.1);
	sample('partitions', 'btrees', $btree);
	sample('partitions', 'filters at 1%', $loose);
	sample('partitions', 'filters, defaults', $strict);

	for my $key ('found', 'missing')
	{
		for my $case (@cases)
		{
			declare('partitions', "$case->{name}, key $key", 'ms CPU', $case->{peer} ? (peer => "$case->{peer}, key $key") : (),
				map { $_ => $case->{$_} } grep { $case->{$_} } 'most');
		}
	}
	for my $round (1 .. $rounds)
	{
		for my $key ('found', 'missing')
		{
			for my $case (@cases)
			{
				my $times = $case->{times} || 100;
				my @some = ($key eq 'found' ? @keys : @missing)[0 .. $times - 1];
				my @before = ("PREPARE q(bigint) AS $case->{sql}", 'EXECUTE q(0)');

				unshift @before, $case->{settings} if $case->{settings};
				sample('partitions', "$case->{name}, key $key", cpu(\@before, map { "EXECUTE q($_)" } @some) / 1e6 / $times);
				$progress->("partitions: $case->{name}");
			}
		}
	}
	query('DROP TABLE with_btrees');
	query('DROP TABLE with_filters');
	return;
}

# ------------------------------------------------------------------
# Growth
# ------------------------------------------------------------------

sub growth
{
	my $keys = scaled(1_000_000, 100_000);
	my $probes = scaled(4_000_000, 400_000);
	my %fpp = ('fpp 0.001 (default)' => ['grown_strict', 0.001], 'fpp 0.01' => ['grown_loose', 0.01]);

	query('CREATE TABLE grown (k text)');
	query("CREATE INDEX $fpp{$_}[0] ON grown USING bloomfilter (k) WITH (fpp = $fpp{$_}[1])") for keys %fpp;
	query("DO \$\$ BEGIN FOR i IN 1 .. $keys LOOP INSERT INTO grown VALUES (substr(md5(i::text), 1, 16)); END LOOP; END \$\$");
	for my $name (sort keys %fpp)
	{
		my ($index, $fpp) = @{ $fpp{$name} };
		my ($layers, $bytes) = split /\|/, query("SELECT layers, bytes FROM bloom_index_stats('$index')");

		$progress->("growth: $name");
		declare('growth', "layers, $name", 'layers', limit => 5);
		declare('growth', "measured fpp, $name", 'times the target', limit => 1.1);
		declare('growth', "size, $name", 'bytes per key');
		sample('growth', "layers, $name", $layers);
		sample('growth', "measured fpp, $name",
			query("SELECT count(*) FROM generate_series(1, $probes) i WHERE bloom_index_contains('grown', '$index', 'miss ' || i)") / $probes / $fpp);
		sample('growth', "size, $name", $bytes / $keys);
	}
	query('DROP TABLE grown');
	return;
}

# ------------------------------------------------------------------

# Run the matching parts.  Returns the cases with their values.
sub index_cases
{
	(my $options, $progress) = @_;
	($scale, $rounds, $only) = @{$options}{ 'scale', 'rounds', 'only' };
	my @parts = (
		[ \&inserts, 'inserts', 'WAL' ],
		[ \&built, 'build', 'size', 'misses', 'one miss' ],
		[ \&partitions, 'partitions' ],
		[ \&growth, 'growth' ]);

	@parts = grep { my (undef, @groups) = @$_; wanted(@groups) } @parts;
	return unless @parts;
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter; CREATE EXTENSION IF NOT EXISTS bloom');
	query(q{CREATE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	$_->[0]->() for @parts;
	my %order;
	$order{ $_->{group} } //= scalar keys %order for @list;
	for my $case (@list)
	{
		$case->{median} = median(@{ $case->{values} });
		($case->{best}) = $case->{unit} eq 'bytes per row' ? $case->{median} : sort { $a <=> $b } @{ $case->{values} };
	}
	return sort { $order{ $a->{group} } <=> $order{ $b->{group} } } grep { $_->{group} =~ /$only/ } @list;
}

1;
