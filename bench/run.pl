#!/usr/bin/perl
#
# run.pl
#		Runs the benchmarks; script/bench calls it in a throwaway cluster.
#
# A case is a query with a peer or a limit to compare it with.  All queries of a
# group run in turn, round after round, so that other load on the machine affects
# all of them alike.  The best and the median of the rounds are kept, and ratios
# are computed from the best.  Times are execution times of EXPLAIN ANALYZE, with
# the timing of nodes off.
#
use strict;
use warnings;

use POSIX qw(strftime);
use Time::HiRes qw(time usleep);

require './bench/index.pl';	# indexes
require './bench/fingerprint.pl';	# fingerprint indexes
require './bench/joins.pl';	# filters in hash joins
require './bench/lookups.pl';	# filters before lookups
require './bench/kits.pl';	# SSB, TPC-H and TPC-DS
require './bench/recipes.pl';	# the pages in docs/recipes
require './bench/charts.pl';	# figures of the charts and of docs/theory.md

my %option = (scale => 1, rounds => 3, only => '.', timeout => 1800, indexes => 'on');
while (@ARGV)
{
	my $name = shift @ARGV;
	die "unknown option $name\n" unless $name =~ /^--(scale|rounds|only|kit|timeout|indexes)$/ && @ARGV;
	$option{$1} = shift @ARGV;
}
my $OUT = $ENV{BENCH_OUT} or die "BENCH_OUT is not set\n";
my $KEYS = int(10_000_000 * $option{scale});
my $FACTS = int(20_000_000 * $option{scale});
my $DIMS = int(1_000_000 * $option{scale});
my $STORED = int(1000 * ($option{scale} < 1 ? $option{scale} : 1)) || 10;
my $MILLION = $KEYS / 10;
my $started = time;
my $version = query('SHOW server_version_num');
my $major = int($version / 10000);

# ------------------------------------------------------------------
# The server
# ------------------------------------------------------------------

sub query
{
	my ($sql) = @_;

	open my $pipe, '-|', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-c', $sql or die "psql: $!\n";
	my $answer = join '', <$pipe>;
	close $pipe or die "failed: $sql\n";
	chomp $answer;
	return $answer;
}

sub progress
{
	my ($done, $all, $what) = @_;
	my $passed = time - $started;

	printf STDERR "\r%3d%%  %4ds passed, %4ds to go  %-50.50s", 100 * $done / $all, $passed,
	  $done > 0 ? $passed * ($all - $done) / $done : 0, $what;
	return;
}

# Run a statement.  Returns milliseconds and the number of buffers accessed.
sub run_once
{
	my ($case) = @_;
	my $settings = $case->{settings} || '';

	return (query("$settings; $case->{sql}"), 0) if $case->{says};	# the statement returns its time
	my $plan = query("$settings; EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, SUMMARY, FORMAT json) $case->{sql}");
	my ($time) = $plan =~ /"Execution Time": ([0-9.]+)/ or die "no time in $plan\n";
	my ($hit) = $plan =~ /"Shared Hit Blocks": ([0-9]+)/;
	my ($read) = $plan =~ /"Shared Read Blocks": ([0-9]+)/;
	return ($time, ($hit || 0) + ($read || 0));
}

# Peak private memory of the backend during a query, in MB.
sub peak_memory
{
	my ($sql) = @_;
	my $peak = 0;

	open my $pipe, '-|', 'psql', '-XAtq', '-c', 'SELECT pg_backend_pid()', '-c', $sql, '-c', 'SELECT 0' or die "psql: $!\n";
	my $pid = <$pipe>;
	chomp $pid;
	my $selector = '';
	vec($selector, fileno $pipe, 1) = 1;
	until (select my $ready = $selector, undef, undef, 0.004)
	{
		open my $status, '<', "/proc/$pid/status" or last;
		my ($now) = join('', <$status>) =~ /RssAnon:\s+([0-9]+)/;
		close $status;
		$peak = $now if defined $now && $now > $peak;
	}
	close $pipe;
	return $peak / 1024;
}

# ------------------------------------------------------------------
# Data
# ------------------------------------------------------------------

sub load
{
	my @jobs = (
		"CREATE UNLOGGED TABLE keys AS SELECT i AS id, substr(md5(i::text), 1, 16) AS k FROM generate_series(1, $KEYS) i;
		 CREATE UNLOGGED TABLE zipf AS SELECT substr(md5((power(${KEYS}::float8 / 5, (('x' || substr(md5('z' || i), 1, 13))::bit(52)::bigint)::float8 / 4503599627370496))::bigint::text), 1, 16) AS k FROM generate_series(1, $KEYS) i;
		 CREATE UNLOGGED TABLE few AS SELECT substr(md5((i % 1000)::text), 1, 16) AS k FROM generate_series(1, $KEYS) i;
		 CREATE UNLOGGED TABLE million AS SELECT * FROM keys LIMIT $MILLION;
		 CREATE UNLOGGED TABLE arrays AS SELECT array_agg(substr(md5((i * 7)::text), 1, 16)) AS ks FROM generate_series(1, $MILLION) i GROUP BY i % greatest($MILLION / 1000, 1);
		 CREATE UNLOGGED TABLE singles AS SELECT unnest(ks) AS k FROM arrays",
		"CREATE UNLOGGED TABLE dim AS SELECT i::bigint AS id, ((hashint8extended(i, 7) & 1023) * 1000 / 1024)::int AS attr, 'dim ' || i AS name FROM generate_series(1, $DIMS) i;
		 CREATE UNLOGGED TABLE fact AS SELECT i::bigint AS id, 1 + (hashint8extended(i, 1) & 2147483647) % $DIMS AS fk, substr(md5(i::text), 1, 16) AS key,
		   1 + (hashint8extended(i, 2) & 2147483647) % $DIMS AS fk2, 1 + (hashint8extended(i, 3) & 2147483647) % $DIMS AS fk3, repeat(chr(97 + i % 26), 100) AS payload
		   FROM generate_series(1, $FACTS) i");
	my @children;

	query('CREATE EXTENSION bloomfilter');
	for my $job (@jobs)
	{
		my $child = fork // die "fork: $!\n";

		push @children, $child;
		next if $child;
		query($job);
		exit 0;
	}
	for my $child (@children)
	{
		waitpid $child, 0;
		die "loading failed\n" if $?;
	}
	query('VACUUM (FREEZE, ANALYZE)');
	query("CREATE UNLOGGED TABLE filters (name text PRIMARY KEY, b bloom, c cuckoo);
		   INSERT INTO filters SELECT 'small', bloom_agg(k), cuckoo_agg(k) FROM keys WHERE id <= $KEYS / 1000;
		   INSERT INTO filters SELECT 'middle', bloom_agg(k), cuckoo_agg(k) FROM million;
		   INSERT INTO filters SELECT 'large', bloom_agg(k), NULL FROM keys;
		   INSERT INTO filters SELECT 'grown', bloom_new(1024), NULL");
	# grown in steps of 1000 keys
	query("DO \$\$
		   DECLARE f bloom; part text[];
		   BEGIN
		     SELECT b INTO f FROM filters WHERE name = 'grown';
		     FOR part IN SELECT array_agg(k) FROM million GROUP BY id / 1000 LOOP
		       f := bloom_add_all(f, part);
		     END LOOP;
		     UPDATE filters SET b = f WHERE name = 'grown';
		   END \$\$");
	query("CREATE UNLOGGED TABLE stored AS SELECT i, bloom_add(b, i::text) AS f FROM filters, generate_series(1, $STORED) i WHERE name = 'middle';
		   CREATE FUNCTION one_byte(bloom, int) RETURNS int LANGUAGE internal IMMUTABLE STRICT AS 'byteaGetByte';
		   -- milliseconds of the loop alone
		   CREATE FUNCTION sum_loop() RETURNS float8 LANGUAGE plpgsql AS \$f\$
		   DECLARE s bigint := 0; start timestamptz := clock_timestamp();
		   BEGIN
		     FOR i IN 1 .. 100000 LOOP
		       s := s + i;
		     END LOOP;
		     RETURN extract(epoch FROM clock_timestamp() - start) * 1000;
		   END \$f\$;
		   CREATE FUNCTION add_loop() RETURNS float8 LANGUAGE plpgsql AS \$f\$
		   DECLARE f bloom; start timestamptz;
		   BEGIN
		     SELECT bloom_agg(n, 1000000) INTO f FROM generate_series(1, 900000) n;
		     f := bloom_add(f, 0);
		     start := clock_timestamp();
		     FOR i IN 1 .. 100000 LOOP
		       f := bloom_add(f, -i);
		     END LOOP;
		     RETURN extract(epoch FROM clock_timestamp() - start) * 1000;
		   END \$f\$");
	query('VACUUM (FREEZE, ANALYZE) filters');
	query('VACUUM (FREEZE, ANALYZE) stored');
	return;
}

# ------------------------------------------------------------------
# Cases.  A goal is a ratio to the case named by "peer": "most => 1.25" is at most
# 1.25 times its time, "least => 2" is at least twice as fast.
# ------------------------------------------------------------------

sub filter { my ($name, $column) = @_; return '(SELECT ' . ($column || 'b') . " FROM filters WHERE name = '$name')"; }

sub cases
{
	my $workers = 'SET max_parallel_workers_per_gather = 2; SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0';
	my $join = 'SELECT count(*), sum(length(payload)) FROM fact JOIN dim ON fact.fk = dim.id WHERE dim.attr';
	my $prefilter = 'bloom_contains((SELECT bloom_agg(id) FROM dim WHERE attr';
	my $three = 'SELECT count(*) FROM fact JOIN dim d1 ON fact.fk = d1.id JOIN dim d2 ON fact.fk2 = d2.id JOIN dim d3 ON fact.fk3 = d3.id WHERE d1.attr < 100 AND d2.attr < 100 AND d3.attr < 100';
	my $hll = query("SELECT count(*) FROM pg_available_extensions WHERE name = 'hll'");
	my @cases = (
		{ group => 'build', name => 'count(k)', sql => 'SELECT count(k) FROM keys' },
		{ group => 'build', name => 'bloom_agg(k, n, 0.01)', sql => "SELECT bloom_agg(k, $KEYS, 0.01) IS NULL FROM keys", peer => 'count(k)', most => 1.25 },
		{ group => 'build', name => 'bloom_agg(k), all distinct', sql => 'SELECT bloom_agg(k) IS NULL FROM keys', peer => 'count(k)', most => 1.65, memory => 100 },
		{ group => 'build', name => 'count(k), Zipf', sql => 'SELECT count(k) FROM zipf' },
		{ group => 'build', name => 'bloom_agg(k), Zipf', sql => 'SELECT bloom_agg(k) IS NULL FROM zipf', peer => 'count(k), Zipf', most => 1.4, memory => 25 },
		{ group => 'build', name => 'count(k), 1000 distinct', sql => 'SELECT count(k) FROM few' },
		{ group => 'build', name => 'bloom_agg(k), 1000 distinct', sql => 'SELECT bloom_agg(k) IS NULL FROM few', peer => 'count(k), 1000 distinct', most => 1.3, memory => 5 },
		{ group => 'build', name => 'bloom_agg(k, n, 0.01), 2 workers', sql => "SELECT bloom_agg(k, $KEYS, 0.01) IS NULL FROM keys", settings => $workers, peer => 'bloom_agg(k, n, 0.01)', least => 1.4 },
		{ group => 'build', name => 'bloom_agg(k), 1 M keys', sql => 'SELECT bloom_agg(k) IS NULL FROM million' },
		{ group => 'build', name => 'cuckoo_agg(k), 1 M keys', sql => 'SELECT cuckoo_agg(k) IS NULL FROM million', peer => 'bloom_agg(k), 1 M keys', most => 3, memory => 100 },

		{ group => 'scan', name => 'count(*)', sql => 'SELECT count(*) FROM keys' },
		{ group => 'scan', name => 'bloom_contains, 10 k keys', sql => 'SELECT count(*) FROM keys WHERE bloom_contains(' . filter('small') . ', k)', peer => 'count(*)', most => 1.2 },
		{ group => 'scan', name => 'bloom_contains, 1 M keys', sql => 'SELECT count(*) FROM keys WHERE bloom_contains(' . filter('middle') . ', k)', peer => 'count(*)', most => 1.7 },
		{ group => 'scan', name => 'bloom_contains, 10 M keys', sql => 'SELECT count(*) FROM keys WHERE bloom_contains(' . filter('large') . ', k)', peer => 'count(*)', most => 4.2 },
		{ group => 'scan', name => 'cuckoo_contains, 1 M keys', sql => 'SELECT count(*) FROM keys WHERE cuckoo_contains(' . filter('middle', 'c') . ', k)', peer => 'bloom_contains, 1 M keys', most => 1.5 },
		{ group => 'scan', name => 'bloom_contains, grown from 1024 to 1 M', sql => 'SELECT count(*) FROM keys WHERE bloom_contains(' . filter('grown') . ', k)', peer => 'bloom_contains, 1 M keys', most => 3 },

		{ group => 'stored', name => 'detoast each filter', sql => 'SELECT count(*) FROM stored WHERE one_byte(f, 100) < 0' },
		{ group => 'stored', name => 'one key against all filters', sql => q{SELECT count(*) FROM stored WHERE bloom_contains(f, '77')}, peer => 'detoast each filter', least => 25, buffers => 8, rows => $STORED },

		{ group => 'arrays', name => 'keys one by one', sql => 'SELECT count(*) FROM singles WHERE bloom_contains(' . filter('large') . ', k)' },
		{ group => 'arrays', name => 'bloom_contains_each, 1000 keys', sql => 'SELECT sum(cardinality(bloom_contains_each(' . filter('large') . ', ks))) FROM arrays', peer => 'keys one by one', least => 4 },
		{ group => 'arrays', name => 'bloom_contains_all, 1000 keys', sql => 'SELECT count(*) FROM arrays WHERE bloom_contains_all(' . filter('large') . ', ks)', peer => 'keys one by one', least => 4 },

		{ group => 'join', name => 'plain, 1%', sql => "$join < 10" },
		{ group => 'join', name => 'prefiltered, 1%', sql => "$join < 10 AND $prefilter < 10), fact.fk)", peer => 'plain, 1%', least => 1.2 },
		{ group => 'join', name => 'plain, 10%', sql => "$join < 100" },
		{ group => 'join', name => 'prefiltered, 10%', sql => "$join < 100 AND $prefilter < 100), fact.fk)", peer => 'plain, 10%', least => 1.5 },
		{ group => 'join', name => 'plain, 10%, spilling', sql => "$join < 100", settings => "SET work_mem = '1MB'" },
		{ group => 'join', name => 'prefiltered, 10%, spilling', sql => "$join < 100 AND $prefilter < 100), fact.fk)", settings => "SET work_mem = '1MB'", peer => 'plain, 10%, spilling', least => 2.2 },
		{ group => 'join', name => 'plain, three dimensions of 10%', sql => $three },
		{ group => 'join', name => 'prefiltered, three dimensions of 10%',
		  sql => "$three AND $prefilter < 100), fact.fk) AND $prefilter < 100), fact.fk2) AND $prefilter < 100), fact.fk3)", peer => 'plain, three dimensions of 10%', least => 2.1 });

	# the peer is another extension, which may not be installed
	splice @cases, 2, 0,
	  { group => 'build', name => 'hll_add_agg(hll_hash_text(k))', sql => 'SELECT hll_add_agg(hll_hash_text(k)) IS NULL FROM keys' },
	  { group => 'build', name => 'bloom_agg(k, n, 0.01) again', sql => "SELECT bloom_agg(k, $KEYS, 0.01) IS NULL FROM keys", peer => 'hll_add_agg(hll_hash_text(k))', most => 1 }
	  if $hll && query('CREATE EXTENSION IF NOT EXISTS hll; SELECT 1');
	push @cases,
	  { group => 'PL/pgSQL', name => 'adding to a bigint, 100 k times', says => 1, sql => 'SELECT sum_loop()' },
	  { group => 'PL/pgSQL', name => 'bloom_add to 1.2 MB, 100 k times', says => 1, sql => 'SELECT add_loop()', peer => 'adding to a bigint, 100 k times', most => 3 }
	  if $major >= 18;
	return grep { $_->{group} =~ /$option{only}/ } @cases;
}

# ------------------------------------------------------------------
# Running and reporting
# ------------------------------------------------------------------

sub median { my @sorted = sort { $a <=> $b } @_; return ($sorted[ $#sorted / 2 ] + $sorted[ @sorted / 2 ]) / 2; }

# Builds have the tightest goals and vary most, so they get more rounds.
sub rounds { my ($group) = @_; return $option{rounds} + ($group eq 'build' ? 2 : 0); }

sub judge
{
	my ($case, $by_name) = @_;

	if ($case->{limit})
	{
		$case->{target} = "<= $case->{limit}";
		$case->{met} = $case->{best} <= $case->{limit};
	}
	if ($case->{none})
	{
		$case->{target} = 'none';
		$case->{met} = $case->{best} == 0;
	}
	return unless $case->{peer};
	my $peer = $by_name->{"$case->{group}|$case->{peer}"} or return;

	if (defined $case->{least})
	{
		$case->{ratio} = $peer->{best} / $case->{best};
		return unless $case->{least};	# a speedup without a goal
		$case->{target} = ">= $case->{least}";
		$case->{met} = $case->{ratio} >= $case->{least};
		return;
	}
	$case->{ratio} = $case->{best} / $peer->{best};
	if ($case->{most})
	{
		$case->{target} = "<= $case->{most}";
		$case->{met} = $case->{ratio} <= $case->{most};
	}
	return;
}

# The best or median value of a case, formatted according to its unit.
sub figure { my ($case, $which) = @_; return sprintf $case->{unit} && $case->{$which} < 100 ? '%.3g' : $case->{unit} ? '%.0f' : '%.1f', $case->{$which}; }

sub report
{
	my ($date, @cases) = @_;
	my $machine = machine();
	my %groups;

	open my $csv, '>', "$OUT/$date.csv" or die "$OUT: $!\n";
	open my $md, '>', "$OUT/$date.md" or die "$OUT: $!\n";
	print $csv "group,case,best,median,peer,ratio,target,met,buffers per row,memory MB,unit\n";
	my $data = $option{kit} ? " of $option{only}" : " ($KEYS keys of 16 characters)";
	print $md "# Benchmark of $date\n\n$machine Commit $ENV{BENCH_COMMIT}.\n\nBest of $option{rounds} interleaved rounds" . ($option{kit} ? '' : ' (builds and joins: two more)') . "; scale $option{scale}$data" . ($option{indexes} eq 'off' ? ', without indexes. ' : '. ')
	  . "A ratio is the case divided by its peer; with a goal of \">=\" and in star schemas it is the inverse, how many times as fast the case is. Noise is about 10%.\n";
	for my $case (@cases)
	{
		printf $csv "%s,\"%s\",%s,%s,\"%s\",%s,%s,%s,%s,%s,%s\n", $case->{group}, $case->{name}, figure($case, 'best'), figure($case, 'median'), $case->{peer} || '',
		  defined $case->{ratio} ? sprintf('%.2f', $case->{ratio}) : '', $case->{target} || '', defined $case->{met} ? ($case->{met} ? 'yes' : 'no') : '',
		  defined $case->{rows} ? sprintf('%.1f', $case->{touched} / $case->{rows}) : '', defined $case->{peak} ? sprintf('%.0f', $case->{peak}) : '', $case->{unit} || 'ms';
		my @units = $case->{unit} ? ('best', 'median', 'unit') : ('best ms', 'median ms');
		print $md "\n## $case->{group}\n\n| ", join(' | ', 'case', @units, 'peer', 'ratio', 'goal'), ' | |', "\n|", '---|' x (@units + 5), "\n" unless $groups{ $case->{group} }++;
		my @notes;
		push @notes, sprintf '%.1f buffers per filter (<= %d)', $case->{touched} / $case->{rows}, $case->{buffers} if $case->{buffers};
		push @notes, sprintf 'peak memory %.0f MB%s', $case->{peak}, $case->{memory} ? " (<= $case->{memory})" : '' if defined $case->{peak};
		push @notes, $case->{remark} if $case->{remark};
		push @notes, 'goal not met' if defined $case->{met} && !$case->{met};
		printf $md "| %s | %s | %s | %s | %s | %s | %s |\n", $case->{name}, $case->{unit} ? figure($case, 'best') : sprintf('%.0f', $case->{best}),
		  $case->{unit} ? figure($case, 'median') . " | $case->{unit}" : sprintf('%.0f', $case->{median}), $case->{peer} || '',
		  defined $case->{ratio} ? sprintf('%.2f', $case->{ratio}) : '', $case->{target} || '', join '; ', @notes;
	}
	costs($md) if 'costs' =~ /$option{only}/;
	core($md, $csv) if 'core' =~ /$option{only}/;
	close $csv or die "$!\n";
	close $md or die "$!\n";
	return;
}

sub machine
{
	my ($cpu) = join('', map { chomp; "$_\n" } `lscpu 2>/dev/null`) =~ /Model name:\s*(.*)/;
	my $cores = `nproc`;
	my ($memory) = `cat /proc/meminfo` =~ /MemTotal:\s*([0-9]+)/;

	chomp $cores;
	return sprintf 'PostgreSQL %s on %s, %d cores, %.0f GB, %s.', query('SHOW server_version'), $cpu || 'an unknown processor', $cores, $memory / 1024 / 1024, query("SELECT split_part(version(), ',', 1)");
}

# Memory, bytes and WAL of operations, and cost by the number of keys and groups.
sub costs
{
	my ($md) = @_;

	print $md "\n## cost as the number of keys grows: bloom_agg(k), cuckoo_agg(k)\n\n| keys | bloom ms | cuckoo ms | count(k) ms | bloom ns per key beyond count | bloom bytes | cuckoo bytes |\n|---|---|---|---|---|---|---|\n";
	for my $n (grep { $_ <= $KEYS } map { 10**$_ } 3 .. 7)
	{
		my ($bloom, $cuckoo, $count) = map {
			my $sql = "SELECT $_ FROM (SELECT k FROM keys LIMIT $n) x";
			(sort { $a <=> $b } map { (run_once({ sql => $sql }))[0] } 1 .. 3)[0]
		} 'bloom_agg(k) IS NULL', 'cuckoo_agg(k) IS NULL', 'count(k)';

		progress(97, 100, "bloom_agg of $n keys");
		printf $md "| %d | %.1f | %.1f | %.1f | %.0f | %s | %s |\n", $n, $bloom, $cuckoo, $count, ($bloom - $count) * 1e6 / $n,
		  split /\|/, query("SELECT (bloom_stats(bloom_agg(k))).bytes, (cuckoo_stats(cuckoo_agg(k))).bytes FROM (SELECT k FROM keys LIMIT $n) x");
	}
	print $md "\n## cost as the number of groups grows\n\n| groups | bloom_agg ms | count ms | ratio | memory MB, bloom_agg | memory MB, count |\n|---|---|---|---|---|---|\n";
	for my $groups (grep { $_ <= $MILLION } map { 10**$_ } 0 .. 6)
	{
		my %settings = (settings => "SET work_mem = '2GB'; SET hash_mem_multiplier = 4; SET enable_sort = off");
		my ($bloom, $count) = map { "SELECT count(*) FROM (SELECT $_ AS x FROM keys GROUP BY id % $groups) y WHERE x IS NULL" } 'bloom_agg(k)', 'nullif(count(k), 0)';
		my ($bloom_time, $count_time) = map { my $sql = $_; (run_once({ sql => $sql, %settings }))[0] } $bloom, $count;

		progress(98, 100, "bloom_agg in $groups groups");
		printf $md "| %d | %.0f | %.0f | %.2f | %.0f | %.0f |\n", $groups, $bloom_time, $count_time, $bloom_time / $count_time,
		  peak_memory("SET work_mem = '2GB'; SET hash_mem_multiplier = 4; SET enable_sort = off; $bloom"), peak_memory("SET work_mem = '2GB'; SET hash_mem_multiplier = 4; SET enable_sort = off; $count");
	}
	print $md "\n## bytes and WAL of one update that adds one key to a stored filter\n\n| keys in it | bloom bytes | WAL | cuckoo bytes | WAL |\n|---|---|---|---|---|\n";
	for my $n (100, 1000, 10000, 100000, 1000000)
	{
		my @row;

		for my $type ('bloom', 'cuckoo')
		{
			query("DROP TABLE IF EXISTS one; CREATE TABLE one AS SELECT ${type}_agg(i) AS f FROM generate_series(1, $n) i; CHECKPOINT; UPDATE one SET f = ${type}_add(f, -1)");
			my $before = query('SELECT pg_current_wal_lsn()');
			query("UPDATE one SET f = ${type}_add(f, -2)");
			push @row, query("SELECT (${type}_stats(f)).bytes FROM one"), query("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '$before')");
		}
		printf $md "| %d | %s |\n", $n, join ' | ', @row;
	}
	return;
}

# The core in a plain C program.
sub core
{
	my ($md, $csv) = @_;
	my @sizes = ($MILLION, $KEYS);
	my $sources = join ' ', glob 'src/core/*.c';
	my %ns;

	progress(99, 100, 'the core in a plain C program');
	system("gcc -std=gnu11 -O2 -ffp-contract=off -o $OUT/core bench/core.c $sources -lm") == 0 or die "bench/core.c does not compile\n";
	print $md "\n## core: ns per key, in a plain C program\n\n| structure | keys | operation | one by one | batched | batched / one by one | bits per key |\n|---|---|---|---|---|---|---|\n";
	for my $line (`$OUT/core @sizes`)
	{
		chomp $line;
		my ($structure, $keys, $operation, $mode, $ns, $bits) = split /,/, $line;

		next if $keys eq 'keys';
		print $csv "core,\"$structure $operation $mode, $keys keys\",$ns,,,,,,,,ns\n";
		$ns{"$structure|$keys|$operation"}{$mode} = $ns;
		$ns{"$structure|$keys|$operation"}{bits} = $bits;
	}
	for my $key (sort { (split /\|/, $a)[1] <=> (split /\|/, $b)[1] || $a cmp $b } keys %ns)
	{
		my $case = $ns{$key};

		printf $md "| %s | %s | %s | %s | %s |\n", join(' | ', split /\|/, $key), $case->{'one by one'}, $case->{batched} // '',
		  $case->{batched} ? sprintf('%.2f', $case->{batched} / $case->{'one by one'}) : '', $case->{bits};
	}
	unlink "$OUT/core";
	return;
}

sub main
{
	my @cases;
	my $done = 0;
	my $date = strftime('%Y-%m-%d', gmtime) . "-pg$major" . ($option{only} eq '.' ? '' : '-' . ($option{only} =~ s/\W+/-/gr =~ s/^-|-$//gr)) . ($option{indexes} eq 'off' ? '-no-indexes' : '');

	# load data only for the selected groups
	@cases = $option{kit} ? () : cases();
	if (@cases || 'costs' =~ /$option{only}/)
	{
		print STDERR "loading $KEYS keys, $FACTS facts, $STORED filters ...\n";
		load();
	}
	my $all = 0;
	$all += rounds($_->{group}) for @cases;
	printf STDERR "loaded in %d s; %d cases\n", time - $started, scalar @cases;
	for my $group (do { my %seen; grep { !$seen{$_}++ } map { $_->{group} } @cases })
	{
		my @members = grep { $_->{group} eq $group } @cases;

		for my $round (1 .. rounds($group))
		{
			for my $case (@members)
			{
				my ($time, $buffers) = run_once($case);

				push @{ $case->{times} }, $time;
				$case->{touched} = $buffers;
				progress(++$done, $all * 1.3, "$group: $case->{name}");
			}
		}
	}
	for my $case (@cases)
	{
		$case->{median} = median(@{ $case->{times} });
		($case->{best}) = sort { $a <=> $b } @{ $case->{times} };
		if ($case->{memory})
		{
			my $base = peak_memory('SELECT count(*) FROM few');

			$case->{peak} = peak_memory($case->{sql}) - $base;
		}
	}
	push @cases, kits_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "@_"; }) if $option{kit};
	push @cases, index_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "index, @_"; });
	push @cases, fingerprint_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "fingerprint, @_"; });
	push @cases, joins_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "@_"; });
	push @cases, lookups_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "@_"; });
	push @cases, recipes_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "@_"; });
	push @cases, charts_cases(\%option, sub { printf STDERR "\r%5ds elapsed  %-60.60s", time - $started, "@_"; });
	my %by_name = map { ("$_->{group}|$_->{name}" => $_) } @cases;
	judge($_, \%by_name) for @cases;
	report($date, @cases);
	progress(100, 100, 'done');
	print STDERR "\n";
	open my $md, '<', "$OUT/$date.md" or die "$!\n";
	print while <$md>;
	return 0;
}

exit main();
