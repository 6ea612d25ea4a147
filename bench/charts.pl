#
# charts.pl
#		Measures the figures of the charts and of docs/theory.md.  run.pl loads this
#		file; draw.pl draws the charts.
#
# A case is named "series: x".  Cases that are compared run in turn, round after round,
# and the best value is kept.  Probes are measured in CPU time of the server process;
# inserts and joins in elapsed time, so they require a quiet machine.
#
use strict;
use warnings;

my ($scale, $rounds, $only, $progress);
my %known;
my @list;

# ------------------------------------------------------------------

# Record a value of a case.  The unit determines whether more is better.
sub figure_of
{
	my ($group, $series, $x, $value, $unit) = @_;
	my $case = $known{"$group|$series|$x|$unit"};

	if (!$case)
	{
		$case = { group => $group, name => "$series: $x", unit => $unit, values => [] };
		$known{"$group|$series|$x|$unit"} = $case;
		push @list, $case;
	}
	push @{ $case->{values} }, $value;
	return;
}

sub sized { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

# ------------------------------------------------------------------
# Bytes per key
# ------------------------------------------------------------------

sub chart_bytes
{
	my $keys = sized(1_000_000, 10_000);
	my @kinds = ([ 'bigint', 'hashint8extended(i, 1)' ], [ 'text of 16 characters', 'substr(md5(i::text), 1, 16)' ], [ 'URL of 80 characters', q{'https://www.example.com/' || md5(i::text) || '/' || substr(md5('p' || i), 1, 23)} ]);
	my @made = (
		[ 'bloom, 1%', '(bloom_stats(bloom_agg(k))).bytes' ], [ 'cuckoo, 1%', '(cuckoo_stats(cuckoo_agg(k))).bytes' ], [ 'bloomfilter index, 0.1%', 'USING bloomfilter (k)' ],
		[ 'fingerprint index', 'USING fingerprint (k)' ], [ 'exact set (array)', 'pg_column_size(array_agg(k))' ], [ 'hash index', 'USING hash (k)' ], [ 'btree index', 'USING btree (k)' ]);

	for my $made (@made)
	{
		my ($name, $how) = @$made;

		for my $kind (@kinds)
		{
			my $table = 'bytes_' . substr $kind->[0], 0, 3;

			$progress->("bytes: $name, $kind->[0]");
			query("CREATE UNLOGGED TABLE IF NOT EXISTS $table AS SELECT $kind->[1] AS k FROM generate_series(1, $keys) i") if $made == $made[0];
			my $bytes = $how !~ /^USING/ ? query("SELECT $how FROM $table") : query("CREATE INDEX measured ON $table $how; SELECT pg_relation_size('measured'); DROP INDEX measured");

			figure_of('charts: bytes', $name, $kind->[0], $bytes / $keys, 'bytes per key');
		}
	}
	query("DROP TABLE bytes_big, bytes_tex, bytes_URL");
	return;
}

# ------------------------------------------------------------------
# Inserts per second, for each way to maintain a filter
# ------------------------------------------------------------------

sub chart_inserts
{
	my $there = sized(1_000_000, 10_000);
	my $seconds = $scale < 0.5 ? 1 : 5;
	my $script = "$ENV{BENCH_OUT}/insert.sql";
	my $update = 'CREATE FUNCTION keep_%s() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN %s; RETURN NULL; END$$; CREATE TRIGGER keep AFTER INSERT ON keep_%1$s FOR EACH ROW EXECUTE FUNCTION keep_%1$s()';
	my @ways = (
		[ 'no filter', 'none', '' ],
		[ 'bloomfilter index', 'index', 'CREATE INDEX ON keep_index USING bloomfilter (k)' ],
		[ 'btree index', 'btree', 'CREATE INDEX ON keep_btree (k)' ],
		[ 'table of changes, folded', 'changes', 'CREATE TABLE keep_filter_changes AS SELECT bloom_agg(k, $there * 2) AS f FROM keep_changes; CREATE TABLE keep_pending (k text); ' . sprintf($update, 'changes', 'INSERT INTO keep_pending VALUES (NEW.k)') ],
		[ 'trigger, 1024 small filters', 'small', 'CREATE TABLE keep_filter_small WITH (fillfactor = 40) AS SELECT (bloom_hash(k) & 1023)::int AS part, bloom_add_all(bloom_new($there / 512), array_agg(k)) AS f FROM keep_small GROUP BY 1; '
			. 'ALTER TABLE keep_filter_small ADD PRIMARY KEY (part); ' . sprintf($update, 'small', 'UPDATE keep_filter_small SET f = bloom_add(f, NEW.k) WHERE part = (bloom_hash(NEW.k) & 1023)::int') ],
		[ 'trigger, one filter', 'one', 'CREATE TABLE keep_filter_one AS SELECT bloom_agg(k, $there * 2) AS f FROM keep_one; ' . sprintf($update, 'one', 'UPDATE keep_filter_one SET f = bloom_add(f, NEW.k)') ]);

	for my $way (@ways)
	{
		my ($name, $table, $sql) = @$way;

		$progress->("inserts: $name");
		query("CREATE TABLE keep_$table (k text, payload text); INSERT INTO keep_$table SELECT substr(md5(i::text), 1, 16), repeat('x', 50) FROM generate_series(1, $there) i");
		query($sql =~ s/\$there/$there/gr) if $sql;
	}
	query('VACUUM (FREEZE, ANALYZE)');
	for my $round (1 .. $rounds)
	{
		for my $way (@ways)
		{
			my ($name, $table) = @$way;
			my $all = $seconds;

			$progress->("inserts: $name, round $round");
			query('CHECKPOINT');
			open my $out, '>', $script or die "$script: $!\n";
			print $out "\\set k random(1000000000000000, 9999999999999999)\nINSERT INTO keep_$table (k, payload) VALUES (:k, '", 'x' x 50, "');\n";
			close $out or die "$script: $!\n";
			my $printed = `pgbench -n -M prepared -c 8 -j 2 -T $seconds -f $script 2>&1`;
			my ($done) = $printed =~ /actually processed: ([0-9]+)/ or die "pgbench: $printed\n";

			# the time to fold the pending keys into the filter counts, too
			$all += (run_once({ sql => 'WITH moved AS (DELETE FROM keep_pending RETURNING k) UPDATE keep_filter_changes SET f = bloom_add_all(f, ARRAY(SELECT k FROM moved))' }))[0] / 1000 if $table eq 'changes';
			figure_of('charts: inserts', $name, '8 clients', $done / $all, 'inserts per second');
		}
	}
	unlink $script;
	query('DROP TABLE keep_none, keep_index, keep_btree, keep_changes, keep_small, keep_one, keep_pending, keep_filter_changes, keep_filter_small, keep_filter_one');
	query('DROP FUNCTION keep_changes, keep_small, keep_one');
	return;
}

# ------------------------------------------------------------------
# A hash join with and without a filter, by the share of rows that survive
# ------------------------------------------------------------------

sub chart_dimension
{
	my $facts = sized(4_000_000, 20_000);
	my $dims = sized(1_000_000, 10_000);
	my $settings = q{LOAD 'bloomfilter'; SET work_mem = '256MB'; SET bloomfilter.join_filter_max_share = 1; SET bloomfilter.join_filter_min_rows = 0; SET bloomfilter.join_filter};

	$progress->('dimension: loading');
	query("CREATE UNLOGGED TABLE chart_dim AS SELECT i::bigint AS id, ((hashint8extended(i, 7) & 1048575) * 1000 / 1048576)::int AS attr, 'dim ' || i AS name FROM generate_series(1, $dims) i;
		   CREATE UNLOGGED TABLE chart_fact AS SELECT i::bigint AS id, 1 + (hashint8extended(i, 1) & 2147483647) % $dims AS fk, repeat(chr(97 + i % 26), 60) AS payload FROM generate_series(1, $facts) i");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'chart_dim', 'chart_fact';
	die "no filter in the join\n" unless query("$settings = on; EXPLAIN SELECT count(*) FROM chart_fact JOIN chart_dim ON fk = chart_dim.id WHERE attr < 10") =~ /Runtime Filter/;
	for my $round (1 .. $rounds)
	{
		for my $permille (1, 3, 10, 30, 100, 200, 400, 600, 800, 1000)
		{
			my $sql = "SELECT count(*), sum(length(payload)) FROM chart_fact JOIN chart_dim ON fk = chart_dim.id WHERE attr < $permille";

			for my $how ('off', 'on')
			{
				$progress->("dimension: $permille in a thousand, $how, round $round");
				figure_of('charts: dimension', $how, $permille / 10, (run_once({ settings => "$settings = $how", sql => $sql }))[0], 'ms');
			}
		}
	}
	query('DROP TABLE chart_dim, chart_fact');
	return;
}

# ------------------------------------------------------------------
# Lookups of absent keys, by the number of keys present
# ------------------------------------------------------------------

sub chart_probes
{
	my $probes = sized(300_000, 20_000);
	my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off; SET enable_bitmapscan = off; SET enable_seqscan = off';
	my $exists = 'SELECT count(*) FROM chart_asked p WHERE EXISTS (SELECT FROM %s t WHERE t.k = p.k)';
	my @ways = (
		[ 'bloom_contains', undef, 'SELECT count(*) FROM chart_asked p WHERE bloom_contains((SELECT f FROM chart_filter), p.k)' ],
		[ 'bloom_index_contains', 'USING bloomfilter (k)', q{SELECT count(*) FROM chart_asked p WHERE bloom_index_contains('%s', 'k', p.k)} ],
		[ 'hash lookup', 'USING hash (k)', $exists ],
		[ 'btree lookup', 'USING btree (k)', $exists ]);

	query("CREATE UNLOGGED TABLE chart_asked AS SELECT substr(md5('miss' || i), 1, 16) AS k FROM generate_series(1, $probes) i");
	for my $n (grep { $_ <= sized(10_000_000, 10_000) } map { 10**$_ } 3 .. 7)
	{
		$progress->("probes: $n keys");
		query("CREATE UNLOGGED TABLE chart_keys AS SELECT substr(md5(i::text), 1, 16) AS k FROM generate_series(1, $n) i; CREATE UNLOGGED TABLE chart_filter AS SELECT bloom_agg(k) AS f FROM chart_keys");
		query("VACUUM (FREEZE, ANALYZE) $_") for 'chart_asked', 'chart_keys', 'chart_filter';
		for my $way (@ways)
		{
			my ($name, $how, $sql) = @$way;
			my $settings = $sql eq $exists ? $loop : 'SELECT';

			$sql = sprintf $sql, 'chart_keys' if $how;
			query("CREATE INDEX probed ON chart_keys $how") if $how;
			die "no loop over the index\n" if $settings eq $loop && query("$settings; EXPLAIN $sql") !~ /Nested Loop.*using probed/s;
			for my $round (1 .. $rounds)
			{
				$progress->("probes: $n keys, $name, round $round");
				my $scan = cpu([], 'SELECT count(*) FROM chart_asked WHERE k IS NULL');

				figure_of('charts: probes', $name, $n, (cpu([ split /; */, $settings ], $sql) - $scan) / $probes, 'ns CPU per key');
			}
			query('DROP INDEX probed') if $how;
		}
		query('DROP TABLE chart_keys, chart_filter');
	}
	query('DROP TABLE chart_asked');
	return;
}

# ------------------------------------------------------------------
# The core and its alternatives, as plain programs
# ------------------------------------------------------------------

sub plain_program
{
	my ($source, @arguments) = @_;
	my $program = "$ENV{BENCH_OUT}/program";

	$progress->("$source @arguments");
	system("gcc -std=gnu11 -O2 -ffp-contract=off -o $program bench/$source.c src/core/*.c -lm") == 0 or die "bench/$source.c does not compile\n";
	for my $line (`$program @arguments`)
	{
		my ($group, $series, $x, $value, $unit) = $line =~ /^([^,]+),"?([^"]+?)"?,([^,]+),([^,]+),([^,]+)\n$/ or die "$source: $line\n";

		figure_of($group, $series, $x, $value, $unit);
	}
	unlink $program;
	return;
}

# ------------------------------------------------------------------

# Run the matching parts.  Returns the cases with their values.
sub charts_cases
{
	(my $options, $progress) = @_;
	($scale, $rounds, $only) = @{$options}{ 'scale', 'rounds', 'only' };
	my $exact = $scale < 0.5 ? 20 : 400;	# false positives in a measurement
	my @parts = (
		[ 'charts: bytes', \&chart_bytes ], [ 'charts: inserts', \&chart_inserts ], [ 'charts: dimension', \&chart_dimension ], [ 'charts: probes', \&chart_probes ],
		[ 'charts: fpp', sub { plain_program('theory', $exact, 'fpp') } ],
		[ 'theory: fill, groups, growth, hash', sub { plain_program('theory', $exact, 'fill', 'groups', 'growth', 'hash') } ],
		[ 'theory: alternatives', sub { plain_program('alternatives', map { sized($_, 10_000) } 1_000_000, 10_000_000) } ]);

	@parts = grep { $_->[0] =~ /$only/ } @parts;
	return unless @parts;
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	$_->[1]->() for @parts;
	for my $case (@list)
	{
		my @sorted = sort { $a <=> $b } @{ $case->{values} };

		$case->{median} = median(@sorted);
		$case->{best} = $case->{unit} =~ /per second/ ? $sorted[-1] : $sorted[0];
	}
	return @list;
}

1;
