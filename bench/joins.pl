#
# joins.pl
#		Benchmarks of filters in hash joins.  run.pl loads this file.
#
# Every query runs with the setting off and on, in turn, round after round; ratios
# are computed from the best times.  Before that, both forms run once and must return
# the same rows; a plan must have a filter only if the setting is on.  The cost of a
# filter that discards too little is below the noise of a clock.  It is counted in
# instructions, by cachegrind on a single-user server, and also measured as CPU time.
#
use strict;
use warnings;

my ($scale, $rounds, $only, $progress);
my @list;						# cases in order

my $HERE = q{SET search_path = joins, public; LOAD 'bloomfilter'};
my $OFF = "$HERE; SET bloomfilter.join_filter = off";
my $ON = "$HERE; SET bloomfilter.join_filter = on";
my $BY_ROW = "$ON; SET bloomfilter.join_filter_batches = off";
my $WORKERS = 'SET max_parallel_workers_per_gather = 2';

# ------------------------------------------------------------------
# Cases
# ------------------------------------------------------------------

sub join_case
{
	my ($group, $name, %more) = @_;
	my $case = { group => "joins: $group", name => $name, values => [], %more };

	push @list, $case;
	return $case;
}

sub join_wanted { my @groups = @_; return scalar grep { "joins: $_" =~ /$only/ } @groups; }

sub join_rows { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

# Run cases in turn.  A case with a peer must return the same rows as the peer.
sub join_measure
{
	my (@cases) = @_;
	my %rows;

	for my $case (@cases)
	{
		my $plan = query("$case->{settings}; EXPLAIN $case->{sql}");
		my $answer = query("$case->{settings}; SELECT md5(string_agg(q::text, ';' ORDER BY q::text)) FROM ($case->{sql}) q");

		$rows{ $case->{name} } = $answer;
		if ($case->{peer})
		{
			die "$case->{group}, $case->{name}: different rows than $case->{peer}\n" if $answer ne $rows{ $case->{peer} };
			$case->{remark} = 'no filter in the plan' if $plan !~ /Runtime Filter/;
		}
		elsif ($plan =~ /Runtime Filter/)
		{
			die "$case->{group}, $case->{name}: a filter in the plan\n";
		}
	}
	for my $round (1 .. $rounds)
	{
		for my $case (@cases)
		{
			$progress->("$case->{group}: $case->{name}, round $round");
			push @{ $case->{values} }, (run_once($case))[0];
		}
	}
	return;
}

# ------------------------------------------------------------------
# One fact table, one dimension of a million rows
# ------------------------------------------------------------------

my $FORMS_GROUP = 'fact and dim';

sub join_forms
{
	my $facts = join_rows(8_000_000, 10_000);
	my $dims = join_rows(1_000_000, 1000);
	my $one = 'SELECT count(*), sum(length(payload)) FROM fact JOIN dim ON fact.fk = dim.id WHERE dim.attr <';
	my $three = 'SELECT count(*) FROM fact JOIN dim d1 ON fact.fk = d1.id JOIN dim d2 ON fact.fk2 = d2.id JOIN dim d3 ON fact.fk3 = d3.id WHERE d1.attr < 100 AND d2.attr < 100 AND d3.attr < 100';
	# name, query, settings, goals: a page at a time, row by row, two workers
	my @queries = (
		[ '1%', "$one 10", 'SELECT', 2.0, 1.25, 1.8 ],
		[ '10%', "$one 100", 'SELECT', 1.6, 1.3, 1.6 ],
		[ '10%, spilling', "$one 100", q{SET work_mem = '1MB'}, 2.8, 2.3, 0 ],
		[ 'three dimensions of 10%', $three, 'SELECT', 3.3, 2.3, 2.3 ]);
	my @cases;

	query("CREATE UNLOGGED TABLE joins.dim (id bigint NOT NULL, attr int NOT NULL, name text);
		   INSERT INTO joins.dim SELECT i, (hashint8extended(i, 7) & 1023) * 1000 / 1024, 'dim ' || i FROM generate_series(1, $dims) i;
		   CREATE UNLOGGED TABLE joins.fact (id bigint, fk bigint, key text, fk2 bigint, fk3 bigint, payload text);
		   INSERT INTO joins.fact SELECT i, 1 + (hashint8extended(i, 1) & 2147483647) % $dims, substr(md5(i::text), 1, 16),
		     1 + (hashint8extended(i, 2) & 2147483647) % $dims, 1 + (hashint8extended(i, 3) & 2147483647) % $dims, repeat(chr(97 + i % 26), 100)
		     FROM generate_series(1, $facts) i");
	query("VACUUM (FREEZE, ANALYZE) joins.$_") for 'dim', 'fact';
	for my $query (@queries)
	{
		my ($name, $sql, $more, $batched, $by_row, $workers) = @$query;
		my $declare = sub {
			my ($form, $settings, @goal) = @_;
			push @cases, join_case($FORMS_GROUP, "$name, $form", sql => $sql, settings => "$settings; $more", @goal);
			return "$name, $form";
		};

		my $off = $declare->('off', $OFF);
		$declare->('a page at a time', $ON, peer => $off, least => $batched);
		$declare->('row by row', $BY_ROW, peer => $off, least => $by_row);
		$off = $declare->('2 workers, off', "$OFF; $WORKERS");
		$declare->('2 workers', "$ON; $WORKERS", peer => $off, least => $workers);
	}
	join_measure(@cases);
	return;
}

# ------------------------------------------------------------------
# A star schema
# ------------------------------------------------------------------

# Sales of a chain of shops over seven years.
sub star_load
{
	my $sales = join_rows(6_000_000, 10_000);
	my $customers = join_rows(100_000, 1000);
	my $products = join_rows(40_000, 1000);
	my $shops = 2000;
	my $days = 2557;

	query("CREATE UNLOGGED TABLE joins.day AS SELECT n AS day_key, d AS day, extract(year FROM d)::int AS year, extract(quarter FROM d)::int AS quarter,
		     extract(month FROM d)::int AS month, extract(week FROM d)::int AS week, extract(isodow FROM d)::int AS weekday, extract(isodow FROM d) > 5 AS weekend
		     FROM (SELECT n, date '2019-01-01' + n - 1 AS d FROM generate_series(1, $days) n) x;
		   CREATE UNLOGGED TABLE joins.customer AS SELECT n AS customer_key, 'Customer ' || n AS name, 'Region ' || city / 50 AS region, 'Country ' || city / 10 AS country,
		     'City ' || city AS city, (ARRAY['consumer', 'office', 'factory', 'school', 'state'])[1 + n % 5] AS segment
		     FROM (SELECT n, hashint4extended(n, 11) & 1023 AS h, ((hashint4extended(n, 11) & 65535) % 250)::int AS city FROM generate_series(1, $customers) n) x;
		   CREATE UNLOGGED TABLE joins.product AS SELECT n AS product_key, 'Product ' || n AS name, 'Maker ' || brand / 200 AS maker, 'Category ' || brand / 40 AS category,
		     'Brand ' || brand AS brand, (ARRAY['red', 'green', 'blue', 'white', 'black', 'grey', 'brown', 'pink'])[1 + n % 8] AS colour
		     FROM (SELECT n, ((hashint4extended(n, 12) & 65535) % 1000)::int AS brand FROM generate_series(1, $products) n) x;
		   CREATE UNLOGGED TABLE joins.shop AS SELECT n AS shop_key, 'Shop ' || n AS name, 'Region ' || city / 50 AS region, 'Country ' || city / 10 AS country,
		     'City ' || city AS city, CASE WHEN n % 10 = 0 THEN 'online' ELSE 'street' END AS kind
		     FROM (SELECT n, ((hashint4extended(n, 13) & 65535) % 250)::int AS city FROM generate_series(1, $shops) n) x;
		   CREATE UNLOGGED TABLE joins.sale AS SELECT n::bigint AS sale_id, (1 + (hashint4extended(n, 1) & 2147483647) % $days)::int AS day_key,
		     (1 + (hashint4extended(n, 2) & 2147483647) % $customers)::int AS customer_key, (1 + (hashint4extended(n, 3) & 2147483647) % $products)::int AS product_key,
		     (1 + (hashint4extended(n, 4) & 2147483647) % $shops)::int AS shop_key, (1 + (hashint4extended(n, 5) & 65535) % 50)::int AS quantity,
		     ((hashint4extended(n, 6) & 65535) % 11)::int AS discount, (100 + (hashint4extended(n, 7) & 65535) % 10000)::int AS price,
		     (50 + (hashint4extended(n, 8) & 65535) % 5000)::int AS cost, (ARRAY['card', 'cash', 'invoice'])[1 + n % 3] AS payment
		     FROM generate_series(1, $sales) n");
	query("ALTER TABLE joins.$_ ADD PRIMARY KEY (${_}_key)") for 'day', 'customer', 'product', 'shop';
	query("VACUUM (FREEZE, ANALYZE) joins.$_") for 'day', 'customer', 'product', 'shop', 'sale';
	return;
}

# Reports over one to four dimensions.
my @STAR = (
	[ '1.1 a quarter', 'SELECT sum(price * discount) FROM sale JOIN day USING (day_key) WHERE year = 2023 AND quarter = 2 AND discount BETWEEN 1 AND 3 AND quantity < 25' ],
	[ '1.2 a category', q{SELECT brand, count(*), sum(price * quantity) FROM sale JOIN product USING (product_key) WHERE category = 'Category 7' GROUP BY brand ORDER BY brand} ],
	[ '1.3 a country', q{SELECT city, sum(price - cost), avg(quantity) FROM sale JOIN shop USING (shop_key) WHERE country = 'Country 12' GROUP BY city ORDER BY city} ],
	[ '2.1 a year, a region', q{SELECT month, country, sum(price * quantity) FROM sale JOIN day USING (day_key) JOIN shop USING (shop_key) WHERE year = 2024 AND region = 'Region 2' GROUP BY month, country ORDER BY 1, 2} ],
	[ '2.2 a category, a region', q{SELECT brand, sum(price) FROM sale JOIN product USING (product_key) JOIN shop USING (shop_key) WHERE category = 'Category 3' AND region = 'Region 1' GROUP BY brand ORDER BY brand} ],
	[ '2.3 customers of a segment', q{SELECT year, quarter, count(DISTINCT customer_key), sum(price) FROM sale JOIN customer USING (customer_key) JOIN day USING (day_key) WHERE country = 'Country 4' AND segment = 'office' AND year >= 2022 GROUP BY year, quarter ORDER BY 1, 2} ],
	[ '3.1 between regions', q{SELECT c.country, s.country AS from_country, year, sum(price) FROM sale JOIN customer c USING (customer_key) JOIN shop s USING (shop_key) JOIN day USING (day_key) WHERE c.region = 'Region 3' AND s.region = 'Region 3' AND year BETWEEN 2020 AND 2024 GROUP BY 1, 2, 3 ORDER BY 3, 4 DESC} ],
	[ '3.2 within a country', q{SELECT c.city, s.city AS from_city, year, sum(price) FROM sale JOIN customer c USING (customer_key) JOIN shop s USING (shop_key) JOIN day USING (day_key) WHERE c.country = 'Country 9' AND s.country = 'Country 9' AND year BETWEEN 2020 AND 2024 GROUP BY 1, 2, 3 ORDER BY 3, 4 DESC} ],
	[ '3.3 weekends, red, online', q{SELECT year, month, sum(price * (100 - discount) / 100) FROM sale JOIN product USING (product_key) JOIN shop USING (shop_key) JOIN day USING (day_key) WHERE colour = 'red' AND kind = 'online' AND weekend GROUP BY 1, 2 ORDER BY 1, 2} ],
	[ '4.1 profit of makers', q{SELECT year, c.country, sum(price - cost) FROM sale JOIN customer c USING (customer_key) JOIN shop s USING (shop_key) JOIN product USING (product_key) JOIN day USING (day_key) WHERE c.region = 'Region 1' AND s.region = 'Region 1' AND maker IN ('Maker 1', 'Maker 2') GROUP BY 1, 2 ORDER BY 1, 2} ],
	[ '4.2 profit of two years', q{SELECT year, s.country, category, sum(price - cost) FROM sale JOIN customer c USING (customer_key) JOIN shop s USING (shop_key) JOIN product USING (product_key) JOIN day USING (day_key) WHERE c.region = 'Region 1' AND s.region = 'Region 1' AND maker IN ('Maker 1', 'Maker 2') AND year IN (2023, 2024) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3} ],
	[ '4.3 profit of brands', q{SELECT year, s.city, brand, sum(price - cost) FROM sale JOIN customer c USING (customer_key) JOIN shop s USING (shop_key) JOIN product USING (product_key) JOIN day USING (day_key) WHERE c.region = 'Region 1' AND s.country = 'Country 6' AND category = 'Category 12' AND year IN (2023, 2024) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3} ]);
my @STAR_GROUPS = ([ 'star', 'SELECT', 2.5 ], [ 'star with 2 workers', $WORKERS, 2.0 ]);

sub star
{
	star_load();
	for my $how (grep { join_wanted($_->[0]) } @STAR_GROUPS)
	{
		my ($group, $settings, $goal) = @$how;
		my @cases;

		for my $query (@STAR)
		{
			my ($name, $sql) = @$query;

			push @cases, join_case($group, "$name, off", sql => $sql, settings => "$OFF; $settings");
			push @cases, join_case($group, $name, sql => $sql, settings => "$ON; $settings", peer => "$name, off", least => 0);
		}
		join_measure(@cases);
		join_case($group, 'total, off', sum => [ grep { !$_->{peer} } @cases ]);
		join_case($group, 'total', sum => [ grep { $_->{peer} } @cases ], peer => 'total, off', least => $goal);
	}
	return;
}

# ------------------------------------------------------------------
# Partitions and pages that are not read; statements that change rows
# ------------------------------------------------------------------

my $SKIP_GROUP = 'skipping';

# Five years of rows in the order of the date, partitioned by month, and in one table with a BRIN index.
sub skip_load
{
	my $rows = join_rows(8_000_000, 100_000);

	query("CREATE UNLOGGED TABLE joins.calendar AS SELECT d::date AS day, extract(year FROM d)::int AS year, extract(quarter FROM d)::int AS quarter
		     FROM generate_series(timestamp '2020-01-01', '2024-12-31', '1 day') d;
		   CREATE UNLOGGED TABLE joins.events (day date NOT NULL, v int NOT NULL, note text);
		   INSERT INTO joins.events SELECT date '2020-01-01' + (n * 1827 / $rows)::int, n % 1000, 'note ' || n FROM generate_series(0, $rows - 1::bigint) n;
		   CREATE INDEX events_day ON joins.events USING brin (day) WITH (pages_per_range = 64);
		   CREATE TABLE joins.by_month (day date NOT NULL, v int NOT NULL, note text) PARTITION BY RANGE (day);
		   DO \$\$ BEGIN
		     FOR i IN 0 .. 59 LOOP
		       EXECUTE format('CREATE UNLOGGED TABLE joins.by_month_%s PARTITION OF joins.by_month FOR VALUES FROM (%L) TO (%L)', i, date '2020-01-01' + i * interval '1 month', date '2020-01-01' + (i + 1) * interval '1 month');
		     END LOOP;
		   END \$\$;
		   INSERT INTO joins.by_month SELECT * FROM joins.events");
	query("VACUUM (FREEZE, ANALYZE) joins.$_") for 'calendar', 'events', 'by_month';
	return;
}

# A statement that changes rows, rolled back; returns milliseconds.
sub changing_time
{
	my ($settings, $sql) = @_;
	my $time = (run_once({ settings => "$settings; BEGIN", sql => $sql }))[0];

	query('VACUUM joins.events');
	return $time;
}

sub skipping
{
	my $hash = 'SET enable_nestloop = off; SET enable_mergejoin = off';
	my $quarter = 'year = 2023 AND quarter = 2';
	my $three = '(year, quarter) IN (VALUES (2020, 3), (2022, 1), (2024, 4))';
	my @cases;
	my @changes = (
		[ 'UPDATE of three days', "UPDATE events e SET v = v + 1 FROM calendar c WHERE e.day = c.day AND c.year = 2023 AND extract(doy FROM c.day) BETWEEN 100 AND 102", 12 ],
		[ 'MERGE of a month', "MERGE INTO events e USING (SELECT * FROM calendar WHERE year = 2023 AND extract(month FROM day) = 5) c ON e.day = c.day WHEN MATCHED AND e.v < 5 THEN UPDATE SET v = 0 WHEN NOT MATCHED THEN INSERT VALUES (c.day, 0)", 1.8 ]);

	skip_load();
	for my $table ([ 'partitions', 'by_month' ], [ 'BRIN', 'events' ])
	{
		for my $keys ([ 'a quarter', $quarter, 8, 5 ], [ 'three quarters', $three, 3, 0 ])
		{
			for my $workers ([ '', 'SELECT', $keys->[2] ], [ ', 2 workers', $WORKERS, $keys->[3] ])
			{
				my $name = "$table->[0], $keys->[0]$workers->[0]";
				my $sql = "SELECT count(*), sum(v) FROM $table->[1] JOIN calendar USING (day) WHERE $keys->[1]";

				push @cases, join_case($SKIP_GROUP, "$name, off", sql => $sql, settings => "$OFF; $hash; $workers->[1]");
				push @cases, join_case($SKIP_GROUP, $name, sql => $sql, settings => "$ON; $hash; $workers->[1]", peer => "$name, off", least => $workers->[2]);
			}
		}
	}
	join_measure(@cases);
	for my $change (@changes)
	{
		my ($name, $sql, $goal) = @$change;
		my ($off, $on) = (join_case($SKIP_GROUP, "$name, off"), join_case($SKIP_GROUP, $name, peer => "$name, off", least => $goal));
		my ($rows_off, $rows_on) = map { query("$_; $hash; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) $sql; ROLLBACK") =~ /Hash \w*\s*Join \(actual rows=([\d.]+)/ } "$OFF; BEGIN", "$ON; BEGIN";

		die "$name: different rows\n" if $rows_off != $rows_on;
		query('VACUUM joins.events');
		for my $round (1 .. $rounds)
		{
			$progress->("$SKIP_GROUP: $name, round $round");
			push @{ $off->{values} }, changing_time("$OFF; $hash", $sql);
			push @{ $on->{values} }, changing_time("$ON; $hash", $sql);
		}
	}
	return;
}

# ------------------------------------------------------------------
# Filters that discard too little
# ------------------------------------------------------------------

my $USELESS_GROUP = 'useless filters';

# Nine of ten rows have a match.  The planner cannot estimate the condition, and
# assumes that it keeps a third of the rows.
my @USELESS = (
	[ 'one filter', 'SELECT count(*), sum(length(name)) FROM orders JOIN goods ON orders.fk = goods.id WHERE goods.attr + 0 < 900' ],
	[ 'three filters', 'SELECT count(*) FROM orders JOIN goods g1 ON orders.fk = g1.id JOIN goods g2 ON orders.fk2 = g2.id JOIN goods g3 ON orders.fk3 = g3.id WHERE g1.attr + 0 < 900 AND g2.attr + 0 < 900 AND g3.attr + 0 < 900' ],
	[ 'one filter of text', 'SELECT count(*) FROM orders JOIN goods ON orders.label = goods.name WHERE goods.attr + 0 < 900' ]);

# Plans that should not change: most rows are known to survive, or no row may be dropped.
my @NO_FILTER = (
	'SELECT count(*) FROM orders JOIN goods ON orders.fk = goods.id WHERE goods.attr < 900',
	'SELECT count(*) FROM orders JOIN goods ON orders.fk = goods.id',
	'SELECT count(*) FROM orders LEFT JOIN (SELECT * FROM goods WHERE attr < 10) g ON orders.fk = g.id',
	'SELECT count(*) FROM orders FULL JOIN goods ON orders.fk = goods.id',
	'SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT FROM goods WHERE goods.id = orders.fk AND attr < 10)',
	'SELECT count(*) FROM orders WHERE fk = 1',
	'SELECT count(*) FROM (SELECT * FROM orders LIMIT 1000) o JOIN goods ON o.fk = goods.id WHERE goods.attr < 10',
	'SELECT fk, count(*) FROM orders GROUP BY fk ORDER BY 2 DESC, 1 LIMIT 10',
	'UPDATE orders SET fk = fk FROM goods WHERE orders.fk = goods.id AND goods.attr < 900');

# One statement per line, as the single-user server requires.
sub useless_tables
{
	my ($orders, $goods) = @_;

	return ("CREATE TABLE goods AS SELECT i::bigint AS id, ((hashint8extended(i, 7) & 1023) * 1000 / 1024)::int AS attr, 'goods ' || i AS name FROM generate_series(1, $goods) i",
		"CREATE TABLE orders AS SELECT i::bigint AS id, 1 + (hashint8extended(i, 1) & 2147483647) % $goods AS fk, 1 + (hashint8extended(i, 2) & 2147483647) % $goods AS fk2, "
		  . "1 + (hashint8extended(i, 3) & 2147483647) % $goods AS fk3, 'goods ' || 1 + (hashint8extended(i, 4) & 2147483647) % $goods AS label FROM generate_series(1, $orders) i",
		'VACUUM (FREEZE, ANALYZE) goods', 'VACUUM (FREEZE, ANALYZE) orders');
}

# Run statements in a single-user server.  Returns the output of the server and its wrapper.
sub single
{
	my ($data, $wrapper, @statements) = @_;
	my $file = "$ENV{BENCH_OUT}/single.sql";

	open my $script, '>', $file or die "$file: $!\n";
	print $script "$_\n" for @statements;
	close $script or die "$file: $!\n";
	my $server = query('SHOW data_directory') =~ s/data$/stage.conf/r;
	my @options = map { chomp; s/ = '?(.*?)'?$/=$1/r } grep { / = / } `cat $server`;
	my $command = join ' ', $wrapper, 'postgres', '--single', "-D $data", '-c shared_buffers=512MB', '-c max_parallel_workers_per_gather=0', '-c work_mem=64MB', '-c jit=off', (map { "-c '$_'" } @options), 'postgres';
	my $printed = `$command <$file 2>&1`;

	unlink $file;
	die "the single-user server failed: $printed\n" if $? || $printed =~ /(ERROR|FATAL):/;
	return $printed;
}

# Millions of instructions of a query: half the difference between three runs and one.
sub instructions
{
	my ($data, $settings, $sql) = @_;
	my @counts = map {
		my $printed = single($data, 'valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null', split(/; */, $settings), ($sql) x $_);
		$printed =~ /I\s+refs:\s+([0-9,]+)/ or die "no count: $printed\n";
		$1 =~ s/,//gr;
	} 1, 3;

	return ($counts[1] - $counts[0]) / 2e6;
}

sub count_instructions
{
	my $data = query('SHOW data_directory') =~ s/data$/single/r;
	my $set = 'SET max_parallel_workers_per_gather = 0';

	if (system('command -v valgrind >/dev/null 2>&1') != 0)
	{
		print STDERR "\nno valgrind: instructions are not counted\n";
		return;
	}
	system("initdb -D $data -U postgres -A trust -N --no-locale -E UTF8 >/dev/null 2>&1") == 0 or die "initdb failed\n";
	single($data, '', 'CREATE SCHEMA joins', 'CREATE EXTENSION bloomfilter', 'SET search_path = joins, public', useless_tables(200_000, 25_000));
	for my $query (@USELESS)
	{
		my ($name, $sql) = @$query;
		my %count;

		for my $form ([ 'off', $OFF ], [ 'a page at a time', $ON ], [ 'row by row', $BY_ROW ])
		{
			$progress->("$USELESS_GROUP: $name, $form->[0], instructions");
			join_case($USELESS_GROUP, "$name, $form->[0], instructions", unit => 'million', values => [ instructions($data, "$form->[1]; $set", $sql) ],
				$form->[0] ne 'off' ? (peer => "$name, off, instructions", most => 1.02) : ());
		}
	}
	system("rm -rf $data");
	return;
}

sub useless
{
	my @cpu;

	query(join '; ', 'SET search_path = joins', (useless_tables(join_rows(4_000_000, 10_000), join_rows(500_000, 1000)))[ 0, 1 ]);
	query("VACUUM (FREEZE, ANALYZE) joins.$_") for 'goods', 'orders';
	for my $query (@USELESS)
	{
		my ($name, $sql) = @$query;

		for my $form ([ 'off', $OFF ], [ 'a page at a time', $ON ], [ 'row by row', $BY_ROW ])
		{
			push @cpu, join_case($USELESS_GROUP, "$name, $form->[0]", unit => 'ms CPU', sql => $sql, settings => $form->[1], $form->[0] ne 'off' ? (peer => "$name, off") : ());
			$cpu[-1]{remark} = 'no filter in the plan' if $form->[0] ne 'off' && query("$form->[1]; EXPLAIN $sql") !~ /Runtime Filter/;
		}
	}
	for my $round (1 .. $rounds)
	{
		for my $case (@cpu)
		{
			$progress->("$case->{group}: $case->{name}, round $round");
			push @{ $case->{values} }, cpu([ split /; */, $case->{settings} ], $case->{sql}) / 1e6;
		}
	}
	count_instructions();

	my @changed = grep { query("$OFF; EXPLAIN (VERBOSE) $_") ne query("$ON; EXPLAIN (VERBOSE) $_") } @NO_FILTER;
	join_case($USELESS_GROUP, scalar(@NO_FILTER) . ' queries that need no filter', unit => 'plans that change', values => [ scalar @changed ], none => 1, remark => join '; ', @changed);
	return;
}

# ------------------------------------------------------------------

# Run the matching parts.  Returns the cases with their values.
sub joins_cases
{
	(my $options, $progress) = @_;
	($scale, $only) = @{$options}{ 'scale', 'only' };
	$rounds = $options->{rounds} + 2;
	my @parts = ([ \&join_forms, $FORMS_GROUP ], [ \&star, map { $_->[0] } @STAR_GROUPS ], [ \&skipping, $SKIP_GROUP ], [ \&useless, $USELESS_GROUP ]);

	@parts = grep { my (undef, @groups) = @$_; join_wanted(@groups) } @parts;
	return unless @parts;
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	for my $part (@parts)
	{
		query('CREATE SCHEMA joins');
		$progress->("$part->[1]: loading");
		$part->[0]->();
		query('SET client_min_messages = warning; DROP SCHEMA joins CASCADE');
	}
	for my $case (@list)
	{
		if (my $sum = $case->{sum})
		{
			$case->{best} += $_->{best}, $case->{median} += $_->{median} for @$sum;
			next;
		}
		$case->{median} = median(@{ $case->{values} });
		($case->{best}) = sort { $a <=> $b } @{ $case->{values} };
	}
	return @list;
}

1;
