#
# fingerprint.pl
#		The part of the benchmark that is about fingerprint indexes; run.pl loads it.
#
# Each case compares `USING fingerprint` with btree and hash on tables of the same rows, in
# turn, round after round.  CPU is that of the server's process, as in index.pl, unless
# the unit says otherwise.  "Beyond no index" is the difference to a table without one in the
# same round, of which the median counts.
#
use strict;
use warnings;

use POSIX qw(ceil);
use Time::HiRes qw(time);

my ($scale, $rounds, $only, $progress);
my %known;						# cases by group and name
my @list;						# the same in order
my $rows;						# of a table before anything is added to it

# ------------------------------------------------------------------
# Cases
# ------------------------------------------------------------------

# Add a value to a case, which the first one declares.  More: a peer with the
# ratio to reach (most, least), an absolute limit, a remark, and "typical" if the median counts
# instead of the best.
sub fingerprint_sample
{
	my ($group, $name, $unit, $value, %more) = @_;
	my $case = $known{"$group|$name"};

	if (!$case)
	{
		$case = { group => "fingerprint: $group", name => $name, unit => $unit, values => [], %more };
		$known{"$group|$name"} = $case;
		push @list, $case;
	}
	push @{ $case->{values} }, $value;
	return;
}

# The same for each index of a type of key: those in %$values.  `goal` is the
# ratio of fingerprint to btree, `hash_goal` that to hash, `limit` a value.
sub compare_indexes
{
	my ($group, $what, $unit, $values, %more) = @_;
	my ($goal, $hash_goal, $limit) = delete @more{ 'goal', 'hash_goal', 'limit' };

	for my $kind (grep { exists $values->{$_} } 'btree', 'hash', 'fingerprint')
	{
		my @peer = $kind eq 'btree' ? () : (peer => "btree, $what");

		push @peer, most => $goal if $goal && $kind eq 'fingerprint';
		@peer = (limit => $limit) if $limit && $kind eq 'fingerprint';
		fingerprint_sample($group, "$kind, $what", $unit, $values->{$kind}, @peer, %more);
	}
	fingerprint_sample($group, "fingerprint, $what, relative to hash", $unit, $values->{fingerprint}, peer => "hash, $what", most => $hash_goal, %more)
	  if $hash_goal;
	return;
}

sub fingerprint_rows { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

# ------------------------------------------------------------------
# Keys and tables
# ------------------------------------------------------------------

# Name, SQL type, whether keys are near-unique.
my @TYPES = ([ 'uuid', 'uuid', 1 ], [ 'text 16', 'text', 1 ], [ 'text 80', 'text', 1 ], [ 'bigint, 12 rows per key', 'bigint', 0 ]);
my @KINDS = ('none', 'fingerprint', 'btree', 'hash');
my @INDEXES = ('fingerprint', 'btree', 'hash');

# The key of a row, by its number.
sub key_of
{
	my ($name, $i, $salt) = @_;
	my $chunk = int($rows / 20);
	my $text = "md5('$salt' || ($i))";

	return "$text\::uuid" if $name eq 'uuid';
	return "substr($text, 1, 16)" if $name eq 'text 16';
	return "rpad($text, 80, $text)" if $name eq 'text 80';

	# each twentieth of the rows has keys of its own, 12 rows apart from each other
	return "hashint8extended((($i) / $chunk * $chunk + ($i) % ($chunk / 12))::bigint, " . length($salt) . ')';
}

sub table_of { my ($type, $kind) = @_; return 'fp_' . ($type->[0] =~ s/\W.*//r) . ($type->[0] =~ /(80)$/ ? '80' : '') . "_$kind"; }

sub source_of { my ($type) = @_; return table_of($type, 'source'); }

# The bytes per row of each index.
sub sizes_of
{
	my ($type) = @_;
	my $n = query('SELECT count(*) FROM ' . table_of($type, 'none'));

	return { map { $_ => query("SELECT pg_relation_size('" . table_of($type, $_) . "_k')") / $n } @INDEXES };
}

# Insert rows of the source, by their numbers: nanoseconds of CPU and bytes of WAL.
sub insert_rows
{
	my ($type, $kind, $from, $to) = @_;
	my $table = table_of($type, $kind);
	my $wal = "SELECT 'wal ' || (pg_current_wal_insert_lsn() - '0/0')";
	my @lines = session(
		'SET enable_seqscan = off', 'SET enable_bitmapscan = off', $wal, 'SELECT 1', q{SELECT 'cpu ' || cpu_ns()},
		"INSERT INTO $table SELECT k, id FROM " . source_of($type) . " WHERE id > $from AND id <= $to",
		'SELECT 1', q{SELECT 'cpu ' || cpu_ns()}, $wal);
	my @cpu = map { /^cpu ([0-9]+)$/ } @lines;
	my @wal = map { /^wal ([0-9]+)$/ } @lines;

	return ($cpu[1] - $cpu[0], $wal[1] - $wal[0]);
}

# ------------------------------------------------------------------
# Sizes of an index that is built, over a doubling of the rows
# ------------------------------------------------------------------

sub sizes_built
{
	my ($type) = @_;
	my $source = source_of($type);
	my ($sum, $worst, $steps) = (0, 0, 20);

	for my $step (0 .. $steps)
	{
		my $n = $rows + int($rows * $step / $steps);

		$progress->("size, $type->[0]: $n rows");
		query("SET maintenance_work_mem = '1GB'; CREATE INDEX fp_size ON $source USING fingerprint (k) WHERE id <= $n");
		my $bytes = query("SELECT pg_relation_size('fp_size')") / $n;
		query('DROP INDEX fp_size');
		$sum += $bytes;
		$worst = $bytes if $bytes > $worst;
	}
	my $range = sprintf '%.3g to %.3g M rows in %d steps', $rows / 1e6, 2 * $rows / 1e6, $steps;
	fingerprint_sample('size', "fingerprint, built, $type->[0], mean over a doubling", 'bytes per row', $sum / ($steps + 1), remark => $range, $type->[2] ? (limit => 7.2) : ());
	fingerprint_sample('size', "fingerprint, built, $type->[0], worst", 'bytes per row', $worst, $type->[2] ? (limit => 8.1) : ());
	return;
}

# ------------------------------------------------------------------
# Inserts, and sizes of an index that grows from an empty table
# ------------------------------------------------------------------

sub grow
{
	my ($type) = @_;
	my ($name, undef, $unique) = @$type;
	my (%grown, %logged);
	my $some = int($rows * 0.05 / $rounds);
	my $after = int($rows * 0.02);
	my $at = $rows;

	for my $kind (@KINDS)
	{
		my $table = table_of($type, $kind);

		query("CREATE TABLE $table (k $type->[1], v int)");
		query("CREATE INDEX ${table}_k ON $table USING $kind (k)") if $kind ne 'none';
	}
	fingerprint_full_page_writes('off');
	for my $kind (@KINDS)
	{
		$progress->("inserts, $name: $kind from empty");
		my ($cpu, $wal) = insert_rows($type, $kind, 0, $rows);
		$grown{$kind} = $cpu / $rows / 1000;
		$logged{$kind} = $wal / $rows;
	}
	compare_indexes('inserts', "$name, from empty", 'us CPU per row beyond no index', { map { $_ => $grown{$_} - $grown{none} } @INDEXES }, goal => 0.35);
	compare_indexes('WAL', "$name, from empty", 'bytes per row beyond no index', { map { $_ => $logged{$_} - $logged{none} } @INDEXES }, goal => 1, remark => 'all growth included');
	compare_indexes('size', "$name, grown row by row", 'bytes per row', sizes_of($type), $unique ? (limit => 8.8) : ());

	for my $round (1 .. $rounds)
	{
		my (%cpu, %wal);

		for my $kind (@KINDS)
		{
			$progress->("inserts, $name: $kind into $at rows");
			($cpu{$kind}, $wal{$kind}) = map { $_ / $some } insert_rows($type, $kind, $at, $at + $some);
		}
		$at += $some;
		compare_indexes('inserts', "$name, into a large table", 'us CPU per row beyond no index', { map { $_ => ($cpu{$_} - $cpu{none}) / 1000 } @INDEXES }, goal => 0.35, typical => 1);
		compare_indexes('WAL', "$name, into a large table", 'bytes per row beyond no index', { map { $_ => $wal{$_} - $wal{none} } @INDEXES },
			typical => 1, remark => 'much or little growth, depending on the number of rows');
	}
	compare_indexes('size', "$name, grown row by row, 5% more rows", 'bytes per row', sizes_of($type), $unique ? (limit => 8.8) : ());
	fingerprint_full_page_writes('on');
	for my $round (1 .. $rounds)
	{
		my %wal;

		for my $kind (@KINDS)
		{
			$progress->("WAL after a checkpoint, $name: $kind");
			query('CHECKPOINT');
			(undef, $wal{$kind}) = map { $_ / $after } insert_rows($type, $kind, $at, $at + $after);
		}
		$at += $after;
		compare_indexes('WAL', "$name, first rows after a checkpoint", 'bytes per row beyond no index', { map { $_ => $wal{$_} - $wal{none} } @INDEXES },
			goal => 0.4, typical => 1, remark => "$after rows into $rows");
	}
	return;
}

sub fingerprint_full_page_writes
{
	my ($setting) = @_;

	query("ALTER SYSTEM SET full_page_writes = $setting");
	query('SELECT pg_reload_conf()');
	query('CHECKPOINT');
	sleep 1;
	return;
}

# ------------------------------------------------------------------
# Building
# ------------------------------------------------------------------

sub builds
{
	my ($type) = @_;

	for my $memory ('64MB', '1GB')
	{
		for my $round (1 .. $rounds)
		{
			my %cpu;

			for my $kind (@INDEXES)
			{
				$progress->("build, $type->[0]: $kind with $memory");
				query('CHECKPOINT');
				$cpu{$kind} = cpu([ "SET maintenance_work_mem = '$memory'", 'SET max_parallel_maintenance_workers = 0' ], 'REINDEX INDEX ' . table_of($type, $kind) . '_k') / 1e6;
			}
			compare_indexes('build', "$type->[0], $memory", 'ms CPU', \%cpu, goal => $memory eq '1GB' ? 0.35 : 0.6);
		}
	}
	compare_indexes('size', "$type->[0], built", 'bytes per row', sizes_of($type));
	return;
}

# ------------------------------------------------------------------
# Lookups
# ------------------------------------------------------------------

# One statement per key, in a function; and arrays of 1000 keys.
sub lookup_functions
{
	my ($type) = @_;

	for my $kind (@INDEXES)
	{
		my $table = table_of($type, $kind);

		query("CREATE FUNCTION ${table}_look(keys $type->[1]\[]) RETURNS void LANGUAGE plpgsql AS \$\$
			   DECLARE x $type->[1];
			   BEGIN
			     FOREACH x IN ARRAY keys LOOP
			       PERFORM v FROM $table WHERE k = x;
			     END LOOP;
			   END \$\$;
			   CREATE FUNCTION ${table}_any() RETURNS bigint LANGUAGE plpgsql AS \$\$
			   DECLARE x $type->[1]\[]; n bigint; total bigint := 0;
			   BEGIN
			     FOR x IN SELECT ks FROM fp_arrays LOOP
			       SELECT count(v) INTO n FROM $table WHERE k = ANY (x);
			       total := total + n;
			     END LOOP;
			     RETURN total;
			   END \$\$");
	}
	return;
}

my $FP_PLAIN = 'SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_generic_plan';
my $FP_LOOP = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_bitmapscan = off; SET enable_seqscan = off';

sub lookups
{
	my ($type) = @_;
	my ($name, undef, $unique) = @$type;
	my $probes = fingerprint_rows(100_000, 20_000);
	my $source = source_of($type);
	my $any = int($probes / 1000);

	# present keys in an order that has nothing to do with that of the table
	query("SET client_min_messages = warning; DROP TABLE IF EXISTS fp_hits, fp_misses, fp_mixed, fp_arrays;
		   SET enable_hashjoin = off; SET enable_mergejoin = off;
		   CREATE UNLOGGED TABLE fp_hits AS SELECT s.k FROM generate_series(1, $probes) i JOIN $source s ON s.id = 1 + i * 7368787::bigint % $rows;
		   CREATE UNLOGGED TABLE fp_misses AS SELECT " . key_of($name, 'i', 'miss') . " AS k FROM generate_series(1, $probes) i;
		   CREATE UNLOGGED TABLE fp_mixed AS (SELECT k FROM fp_hits LIMIT $probes / 2) UNION ALL (SELECT k FROM fp_misses LIMIT $probes / 2);
		   CREATE UNLOGGED TABLE fp_arrays AS SELECT array_agg(k) AS ks FROM (SELECT k, row_number() OVER () AS i FROM fp_hits) x GROUP BY i / 1000 HAVING count(*) = 1000");
	lookup_functions($type);
	query('VACUUM ANALYZE fp_hits, fp_misses, fp_mixed, fp_arrays');
	query('VACUUM (FREEZE, ANALYZE) ' . table_of($type, $_)) for @INDEXES;

	my @cases = (
		[ 'hit', 'us CPU per key', $probes, $FP_PLAIN, sub { "SELECT $_[0]_look((SELECT array_agg(k) FROM fp_hits))" }, $unique ? (goal => 0.8) : (), hash_goal => 1.1 ],
		[ 'miss', 'us CPU per key', $probes, $FP_PLAIN, sub { "SELECT $_[0]_look((SELECT array_agg(k) FROM fp_misses))" }, $unique ? (goal => 0.75) : (), hash_goal => 1.1 ],
		[ 'nested loop', 'us CPU per key', $probes, $FP_LOOP, sub { "SELECT count(t.v) FROM fp_mixed p JOIN $_[0] t ON t.k = p.k" }, $unique ? (goal => 0.55) : () ],
		[ '= ANY of 1000 keys', 'us CPU per key', $any * 1000, 'SET enable_seqscan = off; SET plan_cache_mode = force_custom_plan', sub { "SELECT $_[0]_any()" }, $unique ? (goal => 0.7) : () ],
		[ '= ANY of 1000 keys, generic plan', 'us CPU per key', $any * 1000, 'SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan', sub { "SELECT $_[0]_any()" } ]);

	for my $case (@cases)
	{
		my ($what, $unit, $n, $settings, $sql, %goals) = @$case;

		for my $round (1 .. $rounds)
		{
			my %cpu;

			for my $kind (@INDEXES)
			{
				my $table = table_of($type, $kind);

				$progress->("$what, $name: $kind");
				if ($round == 1 && $what eq 'nested loop')
				{
					my $plan = query("$settings; EXPLAIN " . $sql->($table));

					die "no loop over the index: $plan\n" unless $plan =~ /Nested Loop.*Index Scan using ${table}_k/s;
				}
				$cpu{$kind} = cpu([ split(/; */, $settings), $sql->($table) ], $sql->($table)) / $n / 1000;
			}
			compare_indexes('lookups', "$what, $name", $unit, \%cpu, %goals);
		}
	}
	return;
}

# ------------------------------------------------------------------
# VACUUM
# ------------------------------------------------------------------

# What VACUUM spends on an index: more than on the same table with an index of no rows, which
# makes it read the table as often.
sub vacuums
{
	my ($type) = @_;

	query('CREATE INDEX ON ' . table_of($type, 'none') . ' (v) WHERE v < 0');
	query('VACUUM (FREEZE) ' . table_of($type, $_)) for @KINDS;
	for my $round (1 .. $rounds)
	{
		my %cpu;

		for my $kind (@KINDS)
		{
			my $table = table_of($type, $kind);

			$progress->("vacuum, $type->[0]: $kind");
			query("DELETE FROM $table WHERE v % 10 = $round; CHECKPOINT");
			$cpu{$kind} = cpu([ "SET maintenance_work_mem = '1GB'", 'SET vacuum_cost_delay = 0' ], "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF, PARALLEL 0) $table") / 1e6;
		}
		compare_indexes('vacuum', $type->[0], 'ms CPU for the index', { map { $_ => $cpu{$_} - $cpu{none} } @INDEXES }, goal => 1, typical => 1, remark => 'a tenth of the rows deleted');
	}
	return;
}

# ------------------------------------------------------------------
# Clients
# ------------------------------------------------------------------

my $FP_CLIENTS = 8;

# Inserts, one row per transaction.
sub clients
{
	my ($type) = @_;
	my $n = $FP_CLIENTS * fingerprint_rows(25_000, 5000);
	my $file = "$ENV{BENCH_OUT}/insert.sql";

	for my $round (1 .. $rounds)
	{
		my (%us, %cpu);

		for my $kind (@KINDS)
		{
			my $table = table_of($type, $kind);

			$progress->("8 clients: $kind");
			open my $script, '>', $file or die "$file: $!\n";
			print $script "INSERT INTO $table VALUES (gen_random_uuid(), 1);\n";
			close $script or die "$file: $!\n";
			query('CHECKPOINT');
			my $cpu = ended_cpu();
			my $out = `pgbench -n -M prepared -c $FP_CLIENTS -j 2 -t @{[ $n / $FP_CLIENTS ]} -f $file 2>&1`;
			my ($tps) = $out =~ /tps = ([0-9.]+)/ or die $out;
			$us{$kind} = 1e6 / $tps;
			$cpu{$kind} = (ended_cpu() - $cpu) / $n / 1000;
		}
		unlink $file;
		for my $kind ('none', 'btree', 'hash', 'fingerprint')
		{
			fingerprint_sample('clients', "time per transaction, $kind", 'us', $us{$kind}, $kind =~ /none|btree/ ? () : (peer => 'time per transaction, btree', least => $kind eq 'fingerprint' ? 1.1 : 0));
			fingerprint_sample('clients', "CPU per transaction, $kind", 'us CPU', $cpu{$kind}, $kind =~ /none|btree/ ? () : (peer => 'CPU per transaction, btree'));
		}
	}
	return;
}

# ------------------------------------------------------------------
# One key of many rows
# ------------------------------------------------------------------

# Without hash: its inserts walk through all pages of the key.
sub one_key
{
	my $n = $rows < 1_000_000 ? $rows : 1_000_000;
	my @kinds = ('none', 'fingerprint', 'btree');

	for my $round (1 .. $rounds)
	{
		my (%insert, %limit, %all, %bitmap);

		for my $kind (@kinds)
		{
			$progress->("one key: $kind");
			query("CREATE TABLE fp_one_$kind (k text, v int)");
			query("CREATE INDEX fp_one_${kind}_k ON fp_one_$kind USING $kind (k)") if $kind ne 'none';
			$insert{$kind} = cpu([], "INSERT INTO fp_one_$kind SELECT 'always the same', i FROM generate_series(1, $n) i") / 1000 / $n;
		}
		for my $kind (@kinds[ 1 .. 2 ])
		{
			my $sql = "SELECT count(v) FROM fp_one_$kind WHERE k = 'always the same'";

			query("VACUUM (FREEZE, ANALYZE) fp_one_$kind");
			$limit{$kind} = cpu([ $FP_PLAIN, "PREPARE q AS SELECT v FROM fp_one_$kind WHERE k = 'always the same' LIMIT 1", 'EXECUTE q' ], ('EXECUTE q') x 1000) / 1e6;	# us per statement
			$all{$kind} = cpu([ $FP_PLAIN, $sql ], $sql) / 1e6;
			$bitmap{$kind} = cpu([ 'SET enable_seqscan = off', 'SET enable_indexscan = off', $sql ], $sql) / 1e6;
		}
		compare_indexes('one key', 'insert', 'us CPU per row beyond no index', { map { $_ => $insert{$_} - $insert{none} } @kinds[ 1 .. 2 ] }, goal => 1.5, typical => 1, remark => "$n rows");
		compare_indexes('one key', 'LIMIT 1', 'us CPU', \%limit, goal => 2);
		compare_indexes('one key', 'all rows, index scan', 'ms CPU', \%all, goal => 1.3);
		compare_indexes('one key', 'all rows, bitmap scan', 'ms CPU', \%bitmap, goal => 1.3);
		query('DROP TABLE fp_one_' . join ', fp_one_', @kinds);
	}
	return;
}

# ------------------------------------------------------------------
# The slowest single insert while an index grows
# ------------------------------------------------------------------

# The same rows three times: what takes long in each run is the work of that row, not
# the machine.
sub latency
{
	my ($type) = @_;
	my $from = $rows;
	my $n = int($rows / 10);

	query('CREATE UNLOGGED TABLE fp_latency (kind text, i int, us float8)');
	for my $run (1 .. 3)
	{
		for my $kind (@KINDS)
		{
			my $table = "fp_grow_$kind";

			$progress->("slowest insert: $kind, run $run");
			query("CREATE TABLE $table (k $type->[1], v int)");
			query("CREATE INDEX ON $table USING $kind (k)") if $kind ne 'none';
			query("INSERT INTO $table SELECT k, id FROM " . source_of($type) . " WHERE id <= $from; CHECKPOINT");
			query("DO \$\$
				   DECLARE keys $type->[1]\[]; start timestamptz; us float8; i int := 0; x $type->[1];
				   BEGIN
				     SELECT array_agg(k ORDER BY id) INTO keys FROM " . source_of($type) . " WHERE id > $from AND id <= $from + $n;
				     FOREACH x IN ARRAY keys LOOP
				       start := clock_timestamp();
				       INSERT INTO $table VALUES (x, i);
				       us := extract(epoch FROM clock_timestamp() - start) * 1e6;
				       i := i + 1;
				       IF us > 25 THEN
				         INSERT INTO fp_latency VALUES ('$kind', i, us);
				       END IF;
				     END LOOP;
				   END \$\$");
			query("DROP TABLE $table");
		}
	}
	for my $kind ('none', 'btree', 'hash', 'fingerprint')
	{
		my $worst = query("SELECT coalesce(max(us), 25) FROM (SELECT min(us) AS us FROM fp_latency WHERE kind = '$kind' GROUP BY i HAVING count(*) = 3) x");
		my $often = query("SELECT count(*) FROM (SELECT min(us) AS us FROM fp_latency WHERE kind = '$kind' GROUP BY i HAVING count(*) = 3) x WHERE us > 200");

		fingerprint_sample('slowest insert', $kind, 'us', $worst, remark => "$often of $n inserts took more than 200 us", $kind eq 'none' ? () : (peer => 'none'));
	}
	query('DROP TABLE fp_latency');
	return;
}

# ------------------------------------------------------------------
# An index that is larger than shared_buffers
# ------------------------------------------------------------------

sub restart_with
{
	my ($buffers) = @_;

	query($buffers ? "ALTER SYSTEM SET shared_buffers = '$buffers'" : 'ALTER SYSTEM RESET shared_buffers');
	system('pg_ctl', '-s', '-w', '-t', '600', '-D', query('SHOW data_directory'), '-l', query('SHOW data_directory') . '/../log', '-m', 'fast', 'restart') == 0 or die "cannot restart\n";
	return;
}

sub small_buffers
{
	my (@types) = @_;
	my $buffers = ceil($rows * 6.7 / 1024) . 'kB';	# 64 MB for 10 million rows

	restart_with($buffers);
	for my $type (@types)
	{
		my $source = source_of($type);
		my $few = int($rows / 100);

		# keys of any rows; and of the newest hundredth, whose pages of the table are few
		for my $which ([ 'any rows', "1 + i * 7368787::bigint % $rows" ], [ 'recent rows', "$rows - i * 7368787::bigint % $few" ])
		{
			query("SET client_min_messages = warning; DROP TABLE IF EXISTS fp_hits; SET enable_hashjoin = off; SET enable_mergejoin = off;
				   CREATE UNLOGGED TABLE fp_hits AS SELECT s.k FROM generate_series(1, 50000) i JOIN $source s ON s.id = $which->[1]");
			for my $round (1 .. $rounds)
			{
				my (%us, %cpu);

				for my $kind (@INDEXES)
				{
					my $look = 'SELECT ' . table_of($type, $kind) . '_look((SELECT array_agg(k) FROM fp_hits))';
					my $at = q{SELECT 'at ' || extract(epoch FROM clock_timestamp()) || ' ' || cpu_ns()};

					$progress->("small shared_buffers, $type->[0], $which->[0]: $kind");
					my @at = map { [/^at ([0-9.]+) ([0-9]+)$/] } grep { /^at / } session(split(/; */, $FP_PLAIN), $look, 'SELECT 1', $at, $look, 'SELECT 1', $at);
					$us{$kind} = ($at[1][0] - $at[0][0]) * 1e6 / 50_000;
					$cpu{$kind} = ($at[1][1] - $at[0][1]) / 1000 / 50_000;
				}
				compare_indexes('small shared_buffers', "hit, $type->[0], $which->[0]", 'us', \%us, goal => 0.6, remark => "shared_buffers = $buffers");
				compare_indexes('small shared_buffers', "hit, $type->[0], $which->[0], CPU", 'us CPU', \%cpu);
			}
		}
	}
	restart_with();
	return;
}

# ------------------------------------------------------------------

# Run what matches; the cases with their values.
sub fingerprint_cases
{
	(my $options, $progress) = @_;
	($scale, $rounds, $only) = @{$options}{ 'scale', 'rounds', 'only' };
	my @groups = ('size', 'inserts', 'WAL', 'build', 'lookups', 'vacuum', 'clients', 'one key', 'slowest insert', 'small shared_buffers');
	my $wanted = sub { return scalar grep { "fingerprint: $_" =~ /$only/ } @_; };

	return unless $wanted->(@groups);
	$rows = fingerprint_rows(10_000_000, 100_000);
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	my @types = $wanted->('size', 'inserts', 'WAL', 'build', 'lookups', 'vacuum') ? @TYPES :
	  $wanted->('small shared_buffers') ? grep { $_->[0] =~ /uuid|80/ } @TYPES :
	  $wanted->('clients', 'slowest insert') ? grep { $_->[0] eq 'uuid' } @TYPES : ();
	for my $type (@types)
	{
		my $source = source_of($type);
		my $key = key_of($type->[0], 'i', '');

		$progress->("loading, $type->[0]");
		query("CREATE UNLOGGED TABLE $source AS SELECT i AS id, $key AS k FROM generate_series(1, 2 * $rows) i; CREATE INDEX ON $source (id)");
		query("VACUUM (ANALYZE) $source");
		sizes_built($type) if $wanted->('size');
		grow($type);
		builds($type) if $wanted->('build', 'lookups', 'size');
		lookups($type) if $wanted->('lookups', 'small shared_buffers');
		latency($type) if $type->[0] eq 'uuid' && $wanted->('slowest insert');
		small_buffers($type) if $type->[0] =~ /uuid|80/ && $wanted->('small shared_buffers');
		clients($type) if $type->[0] eq 'uuid' && $wanted->('clients');
		vacuums($type) if $wanted->('vacuum');
		query('SET client_min_messages = warning; DROP TABLE ' . join(', ', $source, map { table_of($type, $_) } @KINDS) . ' CASCADE');
	}
	one_key() if $wanted->('one key');
	my %order;
	$order{ $_->{group} } //= scalar keys %order for @list;
	for my $case (@list)
	{
		$case->{median} = median(@{ $case->{values} });
		($case->{best}) = $case->{typical} ? $case->{median} : sort { $a <=> $b } @{ $case->{values} };
	}
	return sort { $order{ $a->{group} } <=> $order{ $b->{group} } } grep { $_->{group} =~ /$only/ } @list;
}

1;
