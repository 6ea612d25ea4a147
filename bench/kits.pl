#
# kits.pl
#		The star schema benchmark, TPC-H and TPC-DS.  run.pl loads this file if --kit is given.
#
# The generators and the queries are not part of this repository.  --kit names the directory
# of ssb-dbgen, tpch-kit or tpcds-kit, built for this machine:
#
#	ssb		dbgen, schema.sql (CREATE TABLE statements), queries/*.sql
#	tpch	dbgen/dbgen, dbgen/dss.ddl, and dbgen/qgen with dbgen/queries, or queries/*.sql
#	tpcds	tools/dsdgen, tools/tpcds.sql, and tools/dsqgen with query_templates, or queries/*.sql
#
# Each query runs with bloomfilter.join_filter off and on, in turn, round after round, serial and with
# two workers.  Then every column of a btree index gets a bloomfilter index, and each query runs with
# bloomfilter.lookup_filter off and on.  In the end, it runs with both and with all thresholds at zero.
# With --indexes off, the tables have no indexes and no primary keys, and there is no lookup_filter.
# The answers must be the same.  The CPU time of the server process and its workers decides.  A query
# that fails without filters, or takes longer than --timeout seconds, is listed as failed.
#
use strict;
use warnings;

use Digest::MD5 qw(md5_hex);
use Time::HiRes qw(usleep);

my ($kit, $name, $scale, $rounds, $timeout, $indexes, $work, $progress);
my (%answers, @different);	# of the queries without filters; what differs from them

# Primary keys and other indexes of TPC-H, whose schema file defines none.
my %TPCH_INDEXES = (region => ['r_regionkey'], nation => ['n_nationkey'], part => ['p_partkey'], supplier => ['s_suppkey'], customer => ['c_custkey'],
	partsupp => [ 'ps_partkey, ps_suppkey', 'ps_suppkey' ], orders => [ 'o_orderkey', 'o_custkey' ], lineitem => [ 'l_orderkey, l_linenumber', 'l_partkey, l_suppkey' ]);

sub kit_run
{
	my ($directory, $command) = @_;

	system("cd '$directory' && { $command; } >'$work/kit.log' 2>&1") == 0 or die "failed in the kit: $command\n" . `tail -5 '$work/kit.log'`;
	return;
}

sub slurp
{
	my ($file) = @_;

	open my $in, '<', $file or die "$file: $!\n";
	my $text = join '', <$in>;
	close $in;
	return $text;
}

# ------------------------------------------------------------------
# Data
# ------------------------------------------------------------------

sub kit_generate
{
	my $data = "$work/data";

	mkdir $data or die "$data: $!\n";
	if ($name eq 'tpcds')
	{
		kit_run("$kit/tools", "./dsdgen -SCALE $scale -DIR '$data' -FORCE -QUIET Y");
		return ("$kit/tools/tpcds.sql", glob "$data/*.dat");
	}
	my $directory = $name eq 'tpch' ? "$kit/dbgen" : $kit;
	kit_run($directory, $name eq 'tpch' ? "DSS_PATH='$data' ./dbgen -f -s $scale" : "./dbgen -f -s $scale -T a && { mv *.tbl '$data' || true; }");
	return ($name eq 'tpch' ? "$directory/dss.ddl" : "$kit/schema.sql", glob "$data/*.tbl");
}

sub kit_load
{
	$progress->("$name: generating data");
	my ($schema, @files) = kit_generate();

	die "the kit has generated no data\n" unless @files;
	system("psql -Xq -v ON_ERROR_STOP=1 -f '$schema' >/dev/null") == 0 or die "$schema failed\n";
	for my $file (sort @files)
	{
		my ($base) = $file =~ m{([^/]+)\.\w+$};
		my $table = query("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE '%$base%' ORDER BY length(relname) LIMIT 1");

		next if $table eq '';	# such as dbgen_version
		$progress->("$name: loading $table");
		system("sed 's/|\$//' '$file' | PGCLIENTENCODING=LATIN1 psql -Xq -v ON_ERROR_STOP=1 -c \"COPY $table FROM STDIN (DELIMITER '|', NULL '')\"") == 0 or die "loading $table failed\n";
		unlink $file;
	}
	if ($name eq 'tpch')
	{
		for my $table (sort keys %TPCH_INDEXES)
		{
			my ($key, @more) = @{ $TPCH_INDEXES{$table} };

			query("ALTER TABLE $table ADD PRIMARY KEY ($key)");
			query("CREATE INDEX ON $table ($_)") for @more;
		}
	}
	query(q{DO $$DECLARE statement text; BEGIN
		FOR statement IN SELECT format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', conrelid::regclass, conname)
			FROM pg_constraint WHERE contype IN ('p', 'u') AND connamespace = 'public'::regnamespace
		LOOP EXECUTE statement; END LOOP;
		FOR statement IN SELECT format('DROP INDEX %s', indexrelid::regclass)
			FROM pg_index JOIN pg_class c ON c.oid = indrelid WHERE relnamespace = 'public'::regnamespace
		LOOP EXECUTE statement; END LOOP; END$$}) unless $indexes;
	query('VACUUM (FREEZE, ANALYZE)');
	return;
}

# ------------------------------------------------------------------
# Queries
# ------------------------------------------------------------------

# What the generators print in a dialect that PostgreSQL does not know.
sub kit_dialect
{
	my ($sql) = @_;

	$sql =~ s/^--.*$//mg;
	$sql =~ s/;\s*(?:set rowcount|limit|where rownum <=)\s*(-?\d+)\s*;?/$1 > 0 ? " LIMIT $1;" : ';'/gei;
	$sql =~ s/([-+])\s*(\d+)\s+days\b/$1 interval '$2 days'/gi;
	$sql =~ s/interval '(\d+)' day \(\d+\)/interval '$1' day/gi;
	return $sql =~ /;\s*$/ ? $sql : "$sql;";
}

# The queries: name and statements.
sub kit_queries
{
	my @files = sort { ($a =~ m{(\d+)\D*$})[0] <=> ($b =~ m{(\d+)\D*$})[0] || $a cmp $b } grep { m{\d+\D*$} } glob "$kit/queries/*.sql";

	return map { [ m{([^/]+)\.sql$}, kit_dialect(slurp($_)) ] } @files if @files;
	if ($name eq 'tpch')
	{
		return map { [ "$_", kit_dialect(scalar `cd '$kit/dbgen' && DSS_QUERY=queries ./qgen -d -s $scale $_`) ] } 1 .. 22;
	}
	die "$kit/queries has no *.sql files\n" if $name eq 'ssb';
	kit_run("$kit/tools", "./dsqgen -DIRECTORY ../query_templates -INPUT ../query_templates/templates.lst -DIALECT netezza -SCALE $scale -RNGSEED 1 -OUTPUT_DIR '$work'");
	my @queries;
	for my $text (split /^-- start query (?=\d)/m, slurp("$work/query_0.sql"))
	{
		# the stream is a permutation of the templates, of which a few have two statements
		my ($number) = $text =~ /using template query(\d+)/ or next;
		my @statements = grep { /\w/ } split /;/, kit_dialect($text =~ s/^.*\n//r);

		push @queries, map { [ $number . (@statements > 1 ? chr(ord('a') + $_) : ''), "$statements[$_];" ] } 0 .. $#statements;
	}
	return sort { ($a->[0] =~ /(\d+)/)[0] <=> ($b->[0] =~ /(\d+)/)[0] || $a->[0] cmp $b->[0] } @queries;
}

# Run a query.  Returns its answer as a hash and CPU milliseconds; or an error.
sub kit_run_query
{
	my ($sql, $settings) = @_;
	my $script = "$work/query.sql";

	open my $out, '>', $script or die "$script: $!\n";
	print $out "\\set ON_ERROR_STOP on\nLOAD 'bloomfilter';\n$settings;\nSELECT pg_backend_pid();\nSELECT cpu_ns() AS before \\gset\n\\o $work/answer\n$sql\n\\o\nSELECT (cpu_ns() - :before) / 1e6;\n";
	close $out or die "$script: $!\n";
	my $output = `psql -XAtq -f '$script' 2>'$work/error'`;
	my $failed = $?;
	my ($pid) = $output =~ /^(\d+)$/m;
	usleep(1000) while $pid && -e "/proc/$pid";	# until the postmaster has added its time to that of the workers
	return { error => (slurp("$work/error") =~ /(?:ERROR|FATAL): *(.*)/)[0] // 'failed' } if $failed;
	my ($cpu) = $output =~ /([\d.]+)\n$/;
	return { answer => md5_hex(join "\n", sort split /\n/, slurp("$work/answer")), cpu => $cpu };
}

# ------------------------------------------------------------------
# Running
# ------------------------------------------------------------------

# Run a query with filters.  What it returns must be the answer without, unless only the choice between rows
# that sort equally differs: a final LIMIT is then left out on both sides.  An error is a difference if
# the query succeeds under the same settings without filters.
sub kit_run_filtered
{
	my ($group, $number, $sql, $filters, $settings) = @_;
	my $whole = $sql =~ s/\blimit\s+\d+\s*;\s*$/;/ir;
	my $slow = "SET statement_timeout = '" . 3 * $timeout . "s'; $settings";
	my $run = kit_run_query($sql, "$slow; $filters");
	my $answer = $run->{answer} // '';

	return $run if $answer eq $answers{$number};
	if ($run->{error})
	{
		return $run if kit_run_query($sql, $slow)->{error};
	}
	elsif ($whole ne $sql)
	{
		my ($with, $without) = map { kit_run_query($whole, "$slow; $_") } $filters, 'SELECT';

		return $run if !$with->{error} && !$without->{error} && $with->{answer} eq $without->{answer};
	}
	push @different, "$group, query $number" . ($run->{error} ? " ($run->{error})" : '');
	return $run;
}

# Run all queries under some settings, with and without filters.  Returns cases with the best times, slower
# queries first.
sub kit_measure
{
	my ($group, $settings, $filters, @queries) = @_;
	my (@failed, @pairs);

	for my $query (@queries)
	{
		my ($number, $sql) = @$query;
		my %best;

		for my $round (1 .. $rounds)
		{
			$progress->("$group: query $number, round $round");
			my %run;

			# the second of two runs can be slower; the first one without filters has the answer
			for my $form ($round % 2 ? ('off', 'on') : ('on', 'off'))
			{
				$run{$form} = $form eq 'on' ? kit_run_filtered($group, $number, $sql, $filters, $settings) :
				  kit_run_query($sql, "SET statement_timeout = '${timeout}s'; $settings");
				last if $run{$form}{error};
				$answers{$number} = $run{off}{answer} if $form eq 'off';
			}
			push @failed, "$number ($run{off}{error})" if $run{off} && $run{off}{error};
			last if grep { $_->{error} } values %run;
			push @{ $best{$_} }, $run{$_}{cpu} for 'off', 'on';
		}
		push @pairs, [ $number, \%best ] if $best{on};
	}
	my $least = sub { return (sort { $a <=> $b } @_)[0]; };
	my @cases;
	my ($log, $faster, $slower, %total) = (0, 0, 0);

	@pairs = sort { $least->(@{ $a->[1]{off} }) / $least->(@{ $a->[1]{on} }) <=> $least->(@{ $b->[1]{off} }) / $least->(@{ $b->[1]{on} }) } @pairs;
	for my $pair (@pairs)
	{
		my ($number, $best) = @$pair;

		for my $form ('off', 'on')
		{
			my @values = @{ $best->{$form} };
			my $case = { group => $group, name => "query $number" . ($form eq 'off' ? ', off' : ''), best => $least->(@values), median => median(@values),
				unit => 'ms CPU' };

			@{$case}{ 'peer', 'least' } = ("query $number, off", 0) if $form eq 'on';
			$total{$form} += $case->{best};
			push @cases, $case;
		}
		my $ratio = $cases[-2]{best} / $cases[-1]{best};

		$log += log $ratio;
		$faster++ if $ratio > 1.05;
		$slower++ if $ratio < 1 / 1.05;
	}
	die "$group: no query ran\n" unless @cases;
	push @cases, { group => $group, name => 'total, off', best => $total{off}, median => $total{off}, unit => $cases[0]{unit} };
	push @cases, { group => $group, name => 'total', best => $total{on}, median => $total{on}, unit => $cases[0]{unit}, peer => 'total, off', least => 0,
		remark => sprintf('geometric mean of %d queries: %.2f; by more than 5%%, %d are faster and %d slower', scalar @pairs, exp($log / @pairs), $faster, $slower) . (@failed ? '; failed without filters: ' . join(', ', @failed) : '') };
	return @cases;
}

# Add a bloomfilter index to every column of a btree index.
sub kit_filter_indexes
{
	$progress->("$name: building filters");
	query(q{DO $$DECLARE statement text; BEGIN
		FOR statement IN SELECT DISTINCT format('CREATE INDEX ON %s USING bloomfilter (%I)', indrelid::regclass, attname)
			FROM pg_index JOIN pg_class c ON c.oid = indrelid AND relnamespace = 'public'::regnamespace
				JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
		LOOP EXECUTE statement; END LOOP; END$$});
	return;
}

# Run all queries once with filters wherever they can be, and compare the answers.
sub kit_everywhere
{
	my ($group, $settings, @queries) = @_;
	my $filters = 'SET bloomfilter.join_filter = on; SET bloomfilter.lookup_filter = on; ' . join '; ', map { "SET bloomfilter.${_}_filter_min_rows = 0; SET bloomfilter.${_}_filter_max_share = 1" } 'join', 'lookup';

	for my $query (@queries)
	{
		$progress->("$group: query $query->[0]");
		kit_run_filtered($group, @$query, $filters, $settings);
	}
	return;
}

# The time to count the rows of the largest table, to compare with scans whose rows are discarded.
sub kit_floor
{
	my $table = query("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relpages DESC LIMIT 1");
	my @times = sort { $a <=> $b } map { kit_run_query("SELECT count(*) FROM $table;", 'SET max_parallel_workers_per_gather = 0')->{cpu} } 1 .. $rounds;

	return { group => "$name: floor", name => "count(*) of $table", best => $times[0], median => median(@times), unit => 'ms CPU' };
}

sub kits_cases
{
	(my $options, $progress) = @_;
	($kit, $name, $scale, $rounds, $timeout) = @{$options}{ 'kit', 'only', 'scale', 'rounds', 'timeout' };
	die "--kit needs --only ssb, --only tpch or --only tpcds\n" unless $name =~ /^(ssb|tpch|tpcds)$/;
	die "--indexes is on or off\n" unless $options->{indexes} =~ /^(on|off)$/;
	$indexes = $options->{indexes} eq 'on';
	$work = "$ENV{PGTMP}/kit";
	mkdir $work or die "$work: $!\n";
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	# workers are children of the postmaster, whose count of time has a resolution of 10 ms
	query(q{CREATE OR REPLACE FUNCTION process_stat(text, int) RETURNS bigint LANGUAGE sql AS $$SELECT split_part(regexp_replace(pg_read_file('/proc/' || $1 || '/stat'), '^.*\) ', ''), ' ', $2)::bigint$$});
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint
		+ 10000000 * (process_stat(process_stat('self', 2)::text, 14) + process_stat(process_stat('self', 2)::text, 15))$$});
	kit_load();
	my @queries = kit_queries();
	my ($serial, $parallel) = map { "SET max_parallel_workers_per_gather = $_" } 0, 2;
	my @cases = (kit_floor(), kit_measure("$name: serial", $serial, 'SET bloomfilter.join_filter = on', @queries));

	@queries = grep { $answers{ $_->[0] } } @queries;	# those that did not fail
	push @cases, kit_measure("$name: 2 workers", $parallel, 'SET bloomfilter.join_filter = on', @queries);
	if ($indexes)
	{
		kit_filter_indexes();
		push @cases, kit_measure("$name: lookups, serial", $serial, 'SET bloomfilter.lookup_filter = on', @queries);
		push @cases, kit_measure("$name: lookups, 2 workers", $parallel, 'SET bloomfilter.lookup_filter = on', @queries);
	}
	kit_everywhere("$name: filters everywhere, serial", $serial, @queries);
	kit_everywhere("$name: filters everywhere, 2 workers", $parallel, @queries);
	push @cases, { group => "$name: answers", name => 'different with filters', best => scalar @different, median => scalar @different, unit => 'queries', none => 1,
		remark => join '; ', scalar(@queries) . ' queries compared', @different };
	return @cases;
}

1;
