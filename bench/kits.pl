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
# Each query runs with the setting off and on, in turn, round after round, serial and with
# two workers.  The answers must be the same.  The CPU time of the server process decides in serial
# runs, the elapsed time in parallel ones.  A query that fails without filters is listed as failed.
#
use strict;
use warnings;

use Digest::MD5 qw(md5_hex);

my ($kit, $name, $scale, $rounds, $work, $progress);

# Primary keys and other indexes of TPC-H, whose schema file defines none.
my %TPCH_INDEXES = (region => ['r_regionkey'], nation => ['n_nationkey'], part => ['p_partkey'], supplier => ['s_suppkey'], customer => ['c_custkey'],
	partsupp => [ 'ps_partkey, ps_suppkey', 'ps_suppkey' ], orders => [ 'o_orderkey', 'o_custkey' ], lineitem => [ 'l_orderkey, l_linenumber', 'l_partkey, l_suppkey' ]);

sub kit_run
{
	my ($directory, $command) = @_;

	system("cd '$directory' && $command >'$work/kit.log' 2>&1") == 0 or die "failed in the kit: $command\n" . `tail -5 '$work/kit.log'`;
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
	my $n = 0;
	return map { [ ++$n, "$_;" ] } grep { /\w/ } split /;/, kit_dialect(slurp("$work/query_0.sql"));
}

# Run a query.  Returns its answer as a hash, CPU and elapsed milliseconds; or an error.
sub kit_run_query
{
	my ($sql, $settings) = @_;
	my $script = "$work/query.sql";

	open my $out, '>', $script or die "$script: $!\n";
	print $out "\\set ON_ERROR_STOP on\n$settings;\nSELECT cpu_ns() AS before, clock_timestamp() AS start \\gset\n\\o $work/answer\n$sql\n\\o\n",
	  "SELECT (cpu_ns() - :before) / 1e6, extract(epoch FROM clock_timestamp() - :'start') * 1000;\n";
	close $out or die "$script: $!\n";
	my $times = `psql -XAtq -f '$script' 2>'$work/error'`;
	return { error => (slurp("$work/error") =~ /(?:ERROR|FATAL): *(.*)/)[0] // 'failed' } if $?;
	my ($cpu, $elapsed) = (split /\n/, $times)[-1] =~ /^([\d.]+)\|([\d.]+)$/;
	return { answer => md5_hex(join "\n", sort split /\n/, slurp("$work/answer")), cpu => $cpu, elapsed => $elapsed };
}

# ------------------------------------------------------------------
# Running
# ------------------------------------------------------------------

# Run all queries under some settings.  Returns cases with the best times, slower queries first.
sub kit_measure
{
	my ($group, $settings, $which, @queries) = @_;
	my (@off, @failed, @pairs);

	for my $query (@queries)
	{
		my ($number, $sql) = @$query;
		my %best;

		for my $round (1 .. $rounds)
		{
			for my $form ('off', 'on')
			{
				$progress->("$group: query $number, $form, round $round");
				my $run = kit_run_query($sql, "LOAD 'bloomfilter'; SET statement_timeout = '30min'; SET bloomfilter.join_filter = $form; $settings");

				die "$group, query $number: fails only with filters: $run->{error}\n" if $run->{error} && $form eq 'on' && $best{off};
				last if $run->{error} && push @failed, "$number ($run->{error})";
				die "$group, query $number: different answers\n" if $best{answer} && $best{answer} ne $run->{answer};
				$best{answer} = $run->{answer};
				push @{ $best{$form} }, $run->{$which};
			}
			last unless $best{on};
		}
		push @pairs, [ $number, \%best ] if $best{on};
	}
	my $least = sub { return (sort { $a <=> $b } @_)[0]; };
	my @cases;
	my ($log, %total) = (0);

	@pairs = sort { $least->(@{ $a->[1]{off} }) / $least->(@{ $a->[1]{on} }) <=> $least->(@{ $b->[1]{off} }) / $least->(@{ $b->[1]{on} }) } @pairs;
	for my $pair (@pairs)
	{
		my ($number, $best) = @$pair;

		for my $form ('off', 'on')
		{
			my @values = @{ $best->{$form} };
			my $case = { group => $group, name => "query $number" . ($form eq 'off' ? ', off' : ''), best => $least->(@values), median => median(@values),
				unit => $which eq 'cpu' ? 'ms CPU' : 'ms' };

			@{$case}{ 'peer', 'least' } = ("query $number, off", 0) if $form eq 'on';
			$total{$form} += $case->{best};
			push @cases, $case;
		}
		$log += log($cases[-2]{best} / $cases[-1]{best});
	}
	die "$group: no query ran\n" unless @cases;
	push @cases, { group => $group, name => 'total, off', best => $total{off}, median => $total{off}, unit => $cases[0]{unit} };
	push @cases, { group => $group, name => 'total', best => $total{on}, median => $total{on}, unit => $cases[0]{unit}, peer => 'total, off', least => 0,
		remark => sprintf('geometric mean of %d queries: %.2f', scalar @pairs, exp($log / @pairs)) . (@failed ? '; failed without filters: ' . join(', ', @failed) : '') };
	return @cases;
}

# The time to count the rows of the largest table: no sequential scan can be faster.
sub kit_floor
{
	my $table = query("SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relpages DESC LIMIT 1");
	my @times = sort { $a <=> $b } map { kit_run_query("SELECT count(*) FROM $table;", 'SET max_parallel_workers_per_gather = 0')->{cpu} } 1 .. $rounds;

	return { group => "$name: floor", name => "count(*) of $table", best => $times[0], median => median(@times), unit => 'ms CPU' };
}

sub kits_cases
{
	(my $options, $progress) = @_;
	($kit, $name, $scale, $rounds) = @{$options}{ 'kit', 'only', 'scale', 'rounds' };
	die "--kit needs --only ssb, --only tpch or --only tpcds\n" unless $name =~ /^(ssb|tpch|tpcds)$/;
	$work = "$ENV{PGTMP}/kit";
	mkdir $work or die "$work: $!\n";
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	kit_load();
	my @queries = kit_queries();
	return (kit_floor(), kit_measure("$name: serial", 'SET max_parallel_workers_per_gather = 0', 'cpu', @queries),
		kit_measure("$name: 2 workers", 'SET max_parallel_workers_per_gather = 2', 'elapsed', @queries));
}

1;
