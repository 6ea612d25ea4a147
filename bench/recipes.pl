#
# recipes.pl
#		Benchmarks of docs/recipes.  run.pl loads this file.
#
# Each recipe runs at its intended size and is compared with an exact solution.
# The SQL is read from the pages, so the benchmark measures what people copy.
# Ratios are the recipe's figure divided by that of its peer: lower is better.
# Times of a single session are CPU times of the server process.  Times of
# concurrent sessions are elapsed times divided by the number of transactions.
# WAL is counted without full-page images.
#
# bench/recipes_figures writes the results into the pages.
#
use strict;
use warnings;

my ($scale, $rounds, $only, $progress);
my %known;						# cases by recipe and name
my @list;						# all cases in order
my $recipe;						# name of the running recipe
my $runs = 0;					# runs of pgbench so far

# The key of a pgbench transaction: unique per run, session and transaction, and reproducible.
my $NEXT = "\\set i :i + 1\n";
my $KEY = q{md5(:run::text || ' ' || :client_id::text || ' ' || :i::text)};

# ------------------------------------------------------------------
# Cases
# ------------------------------------------------------------------

# Record a value of a case.  The first value declares the case; $peer names the case to compare with.
sub measured
{
	my ($name, $unit, $value, $peer) = @_;
	my $case = $known{"$recipe|$name"};

	if (!$case)
	{
		$case = { group => "recipes: $recipe", name => $name, unit => $unit, values => [], $peer ? (peer => $peer) : () };
		$known{"$recipe|$name"} = $case;
		push @list, $case;
	}
	push @{ $case->{values} }, $value;
	return;
}

sub recipe_rows { my ($n, $least) = @_; my $count = int($n * $scale); return $count > $least ? $count : $least; }

# The SQL block of a page that contains a text.
sub from_page
{
	my ($page, $text) = @_;

	open my $in, '<', "docs/recipes/$page.md" or die "docs/recipes/$page.md: $!\n";
	my $all = join '', <$in>;
	close $in;
	for my $block ($all =~ /^```sql\n(.*?)^```/msg)
	{
		return $block if index($block, $text) >= 0;
	}
	die "docs/recipes/$page.md has no SQL with $text\n";
}

# ------------------------------------------------------------------
# Measuring
# ------------------------------------------------------------------

sub megabytes { my ($sql) = @_; return query("SELECT $sql") / 1e6; }

# CPU time in microseconds and WAL bytes of statements in one session, per item processed.
sub recipe_cpu
{
	my ($things, $before, @statements) = @_;
	my $from = query('SELECT pg_current_wal_insert_lsn()');
	my $cpu = cpu($before, @statements);

	return ($cpu / 1000 / $things, query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$from')") / $things);
}

# Concurrent sessions: elapsed microseconds and WAL bytes per transaction.
sub at_once
{
	my ($clients, $transactions, $script) = @_;
	my $file = "$ENV{BENCH_OUT}/recipe.sql";

	open my $out, '>', $file or die "$file: $!\n";
	print $out $script;
	close $out or die "$file: $!\n";
	my $from = query('SELECT pg_current_wal_insert_lsn()');
	my $each = int($transactions / $clients) || 1;
	my $said = join '', `pgbench -n -M prepared -c $clients -j 2 -t $each -D i=0 -D run=@{[ ++$runs ]} -f $file 2>&1`;
	my ($tps) = $said =~ /^tps = ([0-9.]+)/m;
	my ($done) = $said =~ /^number of transactions actually processed: ([0-9]+)/m;

	unlink $file;
	die $said unless $tps && $done == $each * $clients;
	return (1e6 / $tps, query("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '$from')") / $done);
}

# A script for eight sessions that also runs $statement once per $each transactions.
sub now_and_then
{
	my ($script, $each, $statement) = @_;

	return "$NEXT\\set due (:client_id = 0) AND (:i % " . $each / 8 . " = 0)\n$script\n\\if :due\n$statement\n\\endif\n";
}

# ------------------------------------------------------------------
# The recipes
# ------------------------------------------------------------------

sub cache_penetration
{
	my $rows = recipe_rows(4_000_000, 20_000);
	my $batches = 100;
	# plan each batch as for a client, not all batches as one join
	my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_memoize = off';
	my %way = ('primary key only' => 'exact', 'filter first' => 'products');

	query("CREATE TABLE product AS SELECT md5(n::text) AS sku, 'Product ' || n AS name FROM generate_series(1, $rows) n;
		   ALTER TABLE product ADD PRIMARY KEY (sku);
		   CREATE INDEX product_sku_filter ON product USING bloomfilter (sku);
		   CREATE FUNCTION exact(skus text[]) RETURNS SETOF product LANGUAGE sql STABLE AS 'SELECT p.* FROM unnest(skus) AS asked(sku) JOIN product p ON p.sku = asked.sku'");
	query(from_page('cache-penetration', 'CREATE FUNCTION products'));
	query("CREATE TABLE missing AS SELECT array_agg(md5(CASE WHEN n % 100 = 0 THEN n::text ELSE 'none ' || n END)) AS skus FROM generate_series(1, $batches * 1000) n GROUP BY n / 1000;
		   CREATE TABLE existing AS SELECT array_agg(md5((1 + (n * 7919::bigint) % $rows)::text)) AS skus FROM generate_series(1, $batches * 1000) n GROUP BY n / 1000");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'product', 'missing', 'existing';
	measured('size: primary key', 'MB', megabytes(q{pg_relation_size('product_pkey')}));
	measured('size: filter', 'MB', megabytes(q{pg_relation_size('product_sku_filter')}), 'size: primary key');
	for my $round (1 .. $rounds)
	{
		for my $what ('missing', 'existing')
		{
			my $probed = $what eq 'missing' ? '1% exist' : 'all exist';

			for my $name ('primary key only', 'filter first')
			{
				my $sql = "SELECT count(p.sku) FROM $what, LATERAL $way{$name}(skus) p";
				my $peer = $name eq 'filter first' ? 'primary key only' : undef;

				$progress->("$recipe: $name, $probed");
				measured("$probed: $name", 'us CPU per key', (recipe_cpu($batches * 1000, [ split /; /, $loop ], $sql))[0], $peer && "$probed: $peer");
				measured("$probed: $name, buffers", 'buffers per key', buffers($loop, $sql) / $batches / 1000, $peer && "$probed: $peer, buffers");
			}
		}
		for my $name ('primary key only', 'filter first')
		{
			my $guard = $name eq 'filter first' ? q{ AND bloom_index_contains('product', 'sku', $1)} : '';

			measured("one absent key per query: $name", 'us CPU per query',
				(recipe_cpu(2000, [ 'SET plan_cache_mode = force_generic_plan', "PREPARE q(text) AS SELECT * FROM product WHERE sku = \$1$guard", "EXECUTE q('')" ], map { "EXECUTE q('no $_')" } 1 .. 2000))[0],
				$guard && 'one absent key per query: primary key only');
		}
	}
	return;
}

sub nickname
{
	my $rows = recipe_rows(1_000_000, 20_000);
	my $insert = "\\set n random(1, 1000000000000000)\n";
	my %way = (
		'unique index only' => [ 20_000, $insert . "INSERT INTO unique_only (nickname) VALUES ('New' || :n) ON CONFLICT (nickname_key) DO NOTHING;" ],
		'plus filter index' => [ 20_000, $insert . "INSERT INTO member (nickname) VALUES ('New' || :n) ON CONFLICT (nickname_key) DO NOTHING;" ],
		'plus one filter value' => [ 200, $insert . "WITH new AS (INSERT INTO unique_only (nickname) VALUES ('New' || :n) ON CONFLICT (nickname_key) DO NOTHING RETURNING nickname_key) UPDATE one_filter SET names = bloom_add_all(names, ARRAY(SELECT nickname_key FROM new));" ]);
	my $table = from_page('nickname', 'CREATE TABLE member') =~ s/INSERT.*//sr;
	my $exact = from_page('nickname', 'CREATE FUNCTION suggest') =~ s/FUNCTION suggest/FUNCTION exact_suggest/r =~ s/SELECT \* FROM suggest.*//sr
	  =~ s/NOT bloom_index_contains\('member', 'nickname_key', (.*?)\)\n/NOT EXISTS (SELECT FROM member WHERE nickname_key = $1)\n/r;

	die "the exact solution still uses a filter\n" if $exact =~ /bloom/;
	query($table);
	query(from_page('nickname', 'CREATE FUNCTION suggest') =~ s/SELECT \* FROM suggest.*//sr);
	query($exact);
	query("INSERT INTO member (nickname) SELECT 'Member' || n FROM generate_series(1, $rows) n;
		   CREATE TABLE unique_only (LIKE member INCLUDING ALL); DROP INDEX unique_only_nickname_key_idx;
		   INSERT INTO unique_only (nickname) SELECT nickname FROM member;
		   CREATE TABLE one_filter AS SELECT bloom_agg(nickname_key) AS names FROM member");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'member', 'unique_only', 'one_filter';
	measured('size: unique index', 'MB', megabytes(q{pg_relation_size('member_nickname_key_key')}));
	measured('size: filter index', 'MB', megabytes(q{pg_relation_size('member_nickname_filter')}), 'size: unique index');
	for my $round (1 .. $rounds)
	{
		for my $name ('unique index only', 'plus filter index', 'plus one filter value')
		{
			my $peer = $name eq 'unique index only' ? undef : 'unique index only';
			$progress->("$recipe: $name");
			my ($time, $wal) = at_once(8, recipe_rows($way{$name}[0], $way{$name}[0] / 4), $way{$name}[1]);

			measured("8 sessions register: $name", 'us', $time, $peer && "8 sessions register: $peer");
			measured("8 sessions register: $name, WAL", 'bytes per row', $wal, $peer && "8 sessions register: $peer, WAL");
		}
		for my $way ([ 'unique index', 'exact_suggest' ], [ 'filter index', 'suggest' ])
		{
			my ($name, $function) = @$way;
			my $sql = "SELECT count(s) FROM generate_series(1, 20000) n, LATERAL $function('Somebody' || n, 12) s";

			measured("12 suggestions: $name", 'us CPU per name', (recipe_cpu(240_000, [], $sql))[0], $function eq 'suggest' ? '12 suggestions: unique index' : undef);
		}
	}
	return;
}

sub coupons
{
	my $codes = recipe_rows(1_000_000, 20_000);
	my $guesses = recipe_rows(200_000, 20_000);
	my $pick = "\\set n random(1, $codes)\n";
	my $at_once = 'WITH redeemed AS (DELETE FROM coupon WHERE code = :code RETURNING code) UPDATE coupon_filter SET live = cuckoo_delete_all(live, ARRAY(SELECT code FROM redeemed)) WHERE EXISTS (SELECT FROM redeemed);';
	my %way = (
		'primary key only' => [ 20_000, $pick . "DELETE FROM exact_coupon WHERE code = md5(:n::text);" ],
		'queue, one sweep per 5000' => [ 20_000, now_and_then($pick . 'SELECT redeem(md5(:n::text));', 5000, 'SELECT sweep();') ],
		'filter changed in the transaction' => [ 200, $pick . $at_once =~ s/:code/md5(:n::text)/r ]);

	query(from_page('coupons', 'CREATE TABLE coupon'));
	query("SELECT issue(array_agg(md5(n::text)), 5) FROM generate_series(1, $codes) n");
	query("CREATE TABLE exact_coupon AS TABLE coupon; ALTER TABLE exact_coupon ADD PRIMARY KEY (code);
		   CREATE TABLE guess AS SELECT md5('guess ' || n) AS code FROM generate_series(1, $guesses) n");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'coupon', 'exact_coupon', 'coupon_filter', 'guess';
	measured('size: primary key', 'MB', megabytes(q{pg_relation_size('coupon_pkey')}));
	measured('size: filter', 'MB', megabytes('(cuckoo_stats(live)).bytes FROM coupon_filter'), 'size: primary key');
	for my $round (1 .. $rounds)
	{
		my $scan = (recipe_cpu($guesses, [], 'SELECT count(code) FROM guess'))[0];
		my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off';

		measured('guesses, in bulk: primary key', 'us CPU per guess',
			(recipe_cpu($guesses, [ split /; /, $loop ], 'SELECT count(*) FROM guess g WHERE EXISTS (SELECT FROM coupon c WHERE c.code = g.code)'))[0] - $scan);
		measured('guesses, in bulk: filter', 'us CPU per guess',
			(recipe_cpu($guesses, [], 'SELECT count(*) FROM guess WHERE (SELECT live FROM coupon_filter) @> code'))[0] - $scan, 'guesses, in bulk: primary key');
		for my $name ('primary key only', 'queue, one sweep per 5000', 'filter changed in the transaction')
		{
			my ($count, $script) = @{ $way{$name} };
			my $peer = $name eq 'primary key only' ? undef : 'primary key only';
			$progress->("$recipe: $name");
			my ($time, $wal) = at_once(8, recipe_rows($count, $count / 4), $script);

			measured("8 sessions redeem: $name", 'us', $time, $peer && "8 sessions redeem: $peer");
			measured("8 sessions redeem: $name, WAL", 'bytes per redemption', $wal, $peer && "8 sessions redeem: $peer, WAL");
		}
	}
	die "the filter misses a valid coupon\n" if query('SELECT count(*) FROM coupon, coupon_filter WHERE NOT cuckoo_contains(live, code)');
	return;
}

sub changes
{
	my $keys = recipe_rows(4_000_000, 20_000);
	my $probed = recipe_rows(200_000, 20_000);
	my $count = 8 * recipe_rows(2500, 1250);
	my (@checked, @in_set);
	my %way = (
		'exact table' => [ $count, "${NEXT}INSERT INTO exact_key VALUES ($KEY) ON CONFLICT DO NOTHING;" ],
		'changes, one fold per 10,000' => [ $count, now_and_then("INSERT INTO blocked_change VALUES ($KEY);", 10_000, 'SELECT fold();') ],
		'filter written per key' => [ 80, "${NEXT}UPDATE written_filter SET keys = bloom_add(keys, $KEY);" ]);

	query(from_page('changes', 'CREATE TABLE blocked_filter'));
	query("CREATE TABLE exact_key AS SELECT substr(md5(n::text), 1, 16) AS key FROM generate_series(1, $keys) n;
		   ALTER TABLE exact_key ADD PRIMARY KEY (key);
		   UPDATE blocked_filter SET keys = (SELECT bloom_agg(key, ($keys * 1.1)::bigint, 0.001) FROM exact_key);
		   CREATE TABLE written_filter AS TABLE blocked_filter;
		   CREATE TABLE asked AS SELECT substr(md5('asked ' || n), 1, 16) AS key FROM generate_series(1, $probed) n;
		   INSERT INTO blocked_change SELECT 'change ' || n FROM generate_series(1, 1000) n");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'exact_key', 'blocked_filter', 'blocked_change', 'written_filter', 'asked';
	measured('size: exact table', 'MB', megabytes(q{pg_total_relation_size('exact_key')}));
	measured('size: filter', 'MB', megabytes('(bloom_stats(keys)).bytes FROM blocked_filter'), 'size: exact table');
	for my $round (1 .. $rounds)
	{
		my $scan = (recipe_cpu($probed, [], 'SELECT count(key) FROM asked'))[0];
		my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off';

		measured('absent keys, in bulk: exact table', 'us CPU per key',
			(recipe_cpu($probed, [ split /; /, $loop ], 'SELECT count(*) FROM asked a WHERE EXISTS (SELECT FROM exact_key e WHERE e.key = a.key)'))[0] - $scan);
		measured('absent keys, in bulk: filter and changes', 'us CPU per key',
			(recipe_cpu($probed, [], 'SELECT count(*) FROM asked a WHERE bloom_contains((SELECT keys FROM blocked_filter), key) OR EXISTS (SELECT FROM blocked_change c WHERE c.key = a.key)'))[0] - $scan,
			'absent keys, in bulk: exact table');
		for my $name ('exact table', 'changes, one fold per 10,000', 'filter written per key')
		{
			my ($transactions, $script) = @{ $way{$name} };
			my $peer = $name eq 'exact table' ? undef : 'exact table';
			$progress->("$recipe: $name");
			my ($time, $wal) = at_once(8, $transactions, $script);

			push @checked, $runs if $name =~ /^changes/;
			measured("8 sessions add: $name", 'us', $time, $peer && "8 sessions add: $peer");
			measured("8 sessions add: $name, WAL", 'bytes per key', $wal, $peer && "8 sessions add: $peer, WAL");
		}
	}
	# folds and inserts ran concurrently: no inserted key may be missed
	die "the filter misses a key\n" if query("SELECT count(*) FROM unnest(ARRAY[" . join(', ', @checked) . "]) AS run, generate_series(0, 7) client, generate_series(1, $count / 8) i
		WHERE NOT maybe_blocked(md5(run || ' ' || client || ' ' || i))");
	return;
}

sub small_filters
{
	my $keys = recipe_rows(1_000_000, 20_000);
	my $count = 8 * recipe_rows(2500, 1250);
	my (@checked, @in_set);
	my %way = (
		'exact table' => [ $count, "${NEXT}INSERT INTO exact_key VALUES ($KEY) ON CONFLICT DO NOTHING;" ],
		'1024 small filters' => [ $count, $NEXT . (from_page('small-filters', 'PREPARE add_key') =~ /AS\n(.*?;)/s)[0] =~ s/\$1/$KEY/gr ],
		'filter set' => [ $count, "${NEXT}SELECT bloom_set_add('seen_set', $KEY);" ],
		'filter set with expiry' => [ $count, "${NEXT}SELECT bloom_set_add('recent_set', $KEY);" ],
		'one filter' => [ 200, "${NEXT}UPDATE one_filter SET keys = bloom_add(keys, $KEY) WHERE NOT bloom_contains(keys, $KEY);" ]);
	my $batch = "ARRAY(SELECT md5($KEY || n) FROM generate_series(1, 1000) n)";
	my %batch = (
		'exact table' => "${NEXT}INSERT INTO exact_key SELECT unnest($batch) ON CONFLICT DO NOTHING;",
		'filter set' => "${NEXT}SELECT cardinality(bloom_set_add_all('seen_set', $batch));");

	query("SELECT bloom_set_create('seen_set', ($keys * 1.1)::bigint), bloom_set_create('recent_set', ($keys * 1.1)::bigint, expiry => '7 days')");
	query("SELECT cardinality(bloom_set_add_all(s::regclass, array_agg('message ' || n))) FROM generate_series(1, $keys) n, unnest(ARRAY['seen_set', 'recent_set']) s GROUP BY s");
	query(from_page('small-filters', 'CREATE TABLE seen'));
	query(from_page('small-filters', 'WITH parts') =~ s/100000\)/$keys)/r =~ s/SELECT sum.*//sr);
	query("CREATE TABLE exact_key AS SELECT 'message ' || n AS key FROM generate_series(1, $keys) n;
		   ALTER TABLE exact_key ADD PRIMARY KEY (key);
		   CREATE TABLE one_filter AS SELECT bloom_agg(key, ($keys * 1.1)::bigint) AS keys FROM exact_key");
	query('VACUUM FULL seen');
	query("VACUUM (FREEZE, ANALYZE) $_") for 'seen', 'seen_set', 'recent_set', 'exact_key', 'one_filter';
	measured('size: exact table', 'bytes per key', query(q{SELECT pg_total_relation_size('exact_key')}) / $keys);
	measured('size: 1024 small filters', 'bytes per key', query(q{SELECT pg_total_relation_size('seen')}) / $keys, 'size: exact table');
	measured('size: filter set', 'bytes per key', query(q{SELECT pg_total_relation_size('seen_set')}) / $keys, 'size: exact table');
	measured('size: filter set with expiry', 'bytes per key', query(q{SELECT pg_total_relation_size('recent_set')}) / $keys, 'size: exact table');
	measured('size: one filter', 'bytes per key', query(q{SELECT pg_total_relation_size('one_filter')}) / $keys, 'size: exact table');
	for my $round (1 .. $rounds)
	{
		for my $name ('exact table', '1024 small filters', 'filter set', 'filter set with expiry', 'one filter')
		{
			my $peer = $name eq 'exact table' ? undef : 'exact table';
			$progress->("$recipe: $name");
			my ($time, $wal) = at_once(8, @{ $way{$name} });

			push @checked, $runs if $name =~ /^1024/;
			push @in_set, $runs if $name eq 'filter set';
			measured("8 sessions add: $name", 'us', $time, $peer && "8 sessions add: $peer");
			measured("8 sessions add: $name, WAL", 'bytes per key', $wal, $peer && "8 sessions add: $peer, WAL");
		}
		for my $name ('exact table', 'filter set')
		{
			$progress->("$recipe: batches, $name");
			my ($time) = at_once(8, 80, $batch{$name});

			measured("8 sessions add 1000 keys at a time: $name", 'us', $time, $name eq 'exact table' ? undef : '8 sessions add 1000 keys at a time: exact table');
		}
		query("VACUUM $_") for 'seen', 'seen_set', 'recent_set';
	}
	die "the filter set misses a key\n" if query("SELECT count(*) FROM unnest(ARRAY[" . join(', ', @in_set) . "]) AS run, generate_series(0, 7) client, generate_series(1, $count / 8) i
		WHERE NOT bloom_set_contains('seen_set', md5(run || ' ' || client || ' ' || i))");
	die "the filter misses a key\n" if query("SELECT count(*) FROM unnest(ARRAY[" . join(', ', @checked) . "]) AS run, generate_series(0, 7) client, generate_series(1, $count / 8) i, md5(run || ' ' || client || ' ' || i) AS key
		JOIN seen ON slot = slot(key) WHERE NOT bloom_contains(keys, key)");
	return;
}

sub seen_feed
{
	my $users = recipe_rows(1000, 20);
	my $pages = recipe_rows(1000, 100);
	my $shown = (from_page('seen-feed', 'PREPARE shown') =~ /AS\n(.*?;)/s)[0];
	my $next = (from_page('seen-feed', 'PREPARE next_page') =~ /AS\n(.*?;)/s)[0];
	my %way = (
		'rows' => [ 'SELECT item FROM unnest($2) WITH ORDINALITY AS c(item, rank) WHERE NOT EXISTS (SELECT FROM seen_rows r WHERE r.user_id = $1 AND r.item = c.item) ORDER BY rank LIMIT $3',
			'INSERT INTO seen_rows SELECT $1, unnest($2) ON CONFLICT DO NOTHING' ],
		'array' => [ 'SELECT item FROM unnest($2) WITH ORDINALITY AS c(item, rank) WHERE NOT item = ANY ((SELECT items FROM seen_array WHERE user_id = $1)::bigint[]) ORDER BY rank LIMIT $3',
			'UPDATE seen_array SET items = (items || $2)[cardinality(items) + cardinality($2) - 4999:] WHERE user_id = $1' ],
		'rotating filter' => [ $next =~ s/;$//r, $shown =~ s/;$//r ]);

	query(from_page('seen-feed', 'CREATE TABLE feed_seen'));
	# items of a user differ: the factor has no common divisor with 2^32
	query("CREATE TABLE seen_rows AS SELECT u AS user_id, (n * 2654435761 + u * 40503) % 4294967296 AS item FROM generate_series(1::bigint, $users) u, generate_series(1, 5000) n;
		   ALTER TABLE seen_rows ADD PRIMARY KEY (user_id, item);
		   CREATE TABLE seen_array AS SELECT user_id, array_agg(item) AS items FROM seen_rows GROUP BY user_id;
		   ALTER TABLE seen_array ADD PRIMARY KEY (user_id);
		   INSERT INTO feed_seen SELECT user_id, bloom_add_all(bloom_new(1000, 0.001, max_layers => 6), items) FROM seen_array");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'seen_rows', 'seen_array', 'feed_seen';
	my %table = (rows => 'seen_rows', array => 'seen_array', 'rotating filter' => 'feed_seen');
	my @names = ('rows', 'array', 'rotating filter');
	measured("size: $_", 'KB per user', query("SELECT pg_total_relation_size('$table{$_}')") / $users / 1000, $_ eq 'rows' ? undef : 'size: rows') for @names;
	for my $round (1 .. $rounds)
	{
		my @probed = split /\n/, query("SELECT 1 + (p * 7919) % $users || ', ''{' || string_agg((hashint8extended(p * 1000 + n, 2) & 1073741823)::text, ',') || '}''' FROM generate_series(1, $pages) p, generate_series(1, 200) n GROUP BY p");
		my @added = split /\n/, query("SELECT 1 + (p * 7919) % $users || ', ''{' || string_agg((hashint8extended(p * 1000 + n, 100 + $round) & 1073741823)::text, ',') || '}''' FROM generate_series(1, $pages) p, generate_series(1, 20) n GROUP BY p");

		for my $name (@names)
		{
			my ($probe, $add) = @{ $way{$name} };

			$progress->("$recipe: $name");
			measured("page of 200 candidates: $name", 'us CPU',
				(recipe_cpu($pages, [ "PREPARE q(bigint, bigint[], int) AS $probe", "EXECUTE q(1, '{}', 1)" ], map { "EXECUTE q($_, 20)" } @probed))[0], $name eq 'rows' ? undef : 'page of 200 candidates: rows');
			my ($time, $wal) = recipe_cpu($pages, [ "PREPARE a(bigint, bigint[]) AS $add" ], map { "EXECUTE a($_)" } @added);
			measured("adding 20 items: $name", 'us CPU', $time, $name eq 'rows' ? undef : 'adding 20 items: rows');
			measured("adding 20 items: $name, WAL", 'bytes', $wal, $name eq 'rows' ? undef : 'adding 20 items: rows, WAL');
		}
	}
	return;
}

sub partitions_by_day
{
	my $rows = 60_000;
	my $days = recipe_rows(120, 10);
	my $event = "hashint8extended(n / 5, 5), 'something that happened' FROM generate_series";	# five events per user and day
	my %lookup = (
		'no index' => [ 'SELECT * FROM with_filter WHERE user_id = $1', 3, 'SET enable_bitmapscan = off' ],
		'btrees' => [ 'SELECT * FROM with_btree WHERE user_id = $1', 50, 'SELECT' ],
		'filters, plain query' => [ 'SELECT * FROM with_filter WHERE user_id = $1', 50, 'SELECT' ],
		'filters, bloom_find' => [ q{SELECT * FROM bloom_find(NULL::with_filter, 'user_id', $1)}, 50, 'SELECT' ]);

	for my $table ('no_index', 'with_btree', 'with_filter')
	{
		my $first = $table eq 'no_index' ? $days : 0;	# which needs only the last day

		query("CREATE TABLE $table (day date NOT NULL, user_id bigint NOT NULL, what text) PARTITION BY RANGE (day)");
		query("DO \$\$ BEGIN FOR i IN $first .. $days LOOP
			   EXECUTE format('CREATE TABLE ${table}_%s PARTITION OF $table FOR VALUES FROM (%L) TO (%L)', i, date '2026-01-01' + i, date '2026-01-02' + i);
			   END LOOP; END \$\$");
		query("INSERT INTO $table SELECT date '2026-01-01' + (n / $rows)::int, $event(0, $days * $rows - 1) n") unless $first;
	}
	query('CREATE INDEX btrees ON with_btree (user_id); CREATE INDEX filters ON with_filter USING bloomfilter (user_id)');
	query("VACUUM (FREEZE, ANALYZE) $_") for 'no_index', 'with_btree', 'with_filter';
	my ($btree, $filter) = map { megabytes("sum(pg_relation_size(relid)) FROM pg_partition_tree('$_') WHERE isleaf") } 'btrees', 'filters';
	measured('size: btrees', 'MB', $btree);
	measured('size: filters', 'MB', $filter, 'size: btrees');
	for my $round (1 .. $rounds)
	{
		for my $name ('no index', 'btrees', 'filters, plain query', 'filters, bloom_find')
		{
			my ($sql, $times, $settings) = @{ $lookup{$name} };
			my $peer = $name eq 'no index' ? undef : 'no index';
			my @keys = split /\n/, query("SELECT hashint8extended((i * 7919 + $round) % ($days * $rows / 5), 5) FROM generate_series(1, $times) i");

			$progress->("$recipe: $name");
			measured("lookup of one user: $name", 'us CPU', (recipe_cpu($times, [ $settings, "PREPARE q(bigint) AS $sql", 'EXECUTE q(0)' ], map { "EXECUTE q($_)" } @keys))[0], $peer && "lookup of one user: $peer");
		}
		for my $way ([ 'no index', 'no_index' ], [ 'btrees', 'with_btree' ], [ 'filters', 'with_filter' ])
		{
			my ($name, $table) = @$way;
			my $peer = $name eq 'no index' ? undef : 'no index';
			my ($time, $wal) = recipe_cpu($rows, [], "INSERT INTO $table SELECT date '2026-01-01' + $days, " . $event =~ s/5, 5/5, 100 + $round/r . "(1, $rows) n");

			measured("loading one day: $name", 'us CPU per row', $time, $peer && "loading one day: $peer");
			measured("loading one day: $name, WAL", 'bytes per row', $wal, $peer && "loading one day: $peer, WAL");
			query("TRUNCATE ${table}_$days");
		}
	}
	query("DROP TABLE $_") for 'no_index', 'with_btree', 'with_filter';
	return;
}

sub star_join
{
	my $from = 'FROM joins.sale JOIN joins.product USING (product_key)';
	my $region = q{JOIN joins.shop s USING (shop_key)};
	my $customer = q{JOIN joins.customer c USING (customer_key)};
	my $by_hand = q{ AND bloom_contains((SELECT bloom_agg(product_key) FROM joins.product WHERE category = 'Category 7'), sale.product_key)};
	my @queries = (
		[ 'one dimension', "SELECT count(*), sum(price) $from WHERE category = 'Category 7'", '' ],
		[ 'two dimensions', "SELECT count(*), sum(price) $from $region WHERE category = 'Category 7' AND s.region = 'Region 2'", '' ],
		[ 'three dimensions', "SELECT count(*), sum(price) $from $region $customer WHERE category = 'Category 7' AND s.region = 'Region 2' AND c.country = 'Country 4'", '' ],
		[ 'one dimension, spilling', "SELECT count(*), sum(price) FROM joins.sale $customer WHERE c.region = 'Region 3'", q{SET work_mem = '256kB'} ]);
	my $load = q{LOAD 'bloomfilter'};

	query('CREATE SCHEMA joins');
	star_load();
	for my $round (1 .. $rounds)
	{
		for my $query (@queries)
		{
			my ($name, $sql, $set) = @$query;
			my %answer;

			$progress->("$recipe: $name");
			for my $how ([ 'setting off', "$load; SET bloomfilter.join_filter = off; $set", $sql ], [ 'setting on', "$load; SET bloomfilter.join_filter = on; $set", $sql ],
				[ 'filter in the query', "$load; SET bloomfilter.join_filter = off; $set", $sql . $by_hand ])
			{
				my ($form, $settings, $text) = @$how;

				next if $form eq 'filter in the query' && $name =~ /spilling/;
				$answer{$form} = query("$settings; $text") if $round == 1;
				die "$name, $form: different result\n" if $round == 1 && $answer{$form} ne $answer{'setting off'};
				measured("$name: $form", 'ms', (run_once({ settings => $settings, sql => $text }))[0], $form eq 'setting off' ? undef : "$name: setting off");
			}
		}
	}
	query('SET client_min_messages = warning; DROP SCHEMA joins CASCADE');
	return;
}

sub segments
{
	my $segments = recipe_rows(200, 20);
	my $each = 10_000;
	my $all = $segments * $each;
	my %way = (
		'unpack all segments' => [ 'SELECT id, body -> $1 FROM segment WHERE body ? $1', 1 ],
		'key-to-segment table' => [ 'SELECT s.id, s.body -> $1 FROM segment_of k JOIN segment s USING (id) WHERE k.key = $1', 50 ],
		'one filter per segment' => [ 'SELECT * FROM lookup($1)', 50 ]);

	query(from_page('segments', 'CREATE TABLE segment') =~ s/1000,/$each,/r =~ s/19999/$all - 1/r);
	query(from_page('segments', 'CREATE FUNCTION lookup') =~ s/^SELECT \*.*//msr);
	query("CREATE TABLE segment_of AS SELECT md5(n::text) AS key, n / $each AS id FROM generate_series(0, $all - 1) n; ALTER TABLE segment_of ADD PRIMARY KEY (key)");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'segment', 'segment_of';
	measured('size: key-to-segment table', 'MB', megabytes(q{pg_total_relation_size('segment_of')}));
	measured('size: filters', 'MB', megabytes('sum((bloom_stats(keys)).bytes) FROM segment'), 'size: key-to-segment table');
	for my $round (1 .. $rounds)
	{
		for my $there ('present key', 'absent key')
		{
			for my $name ('unpack all segments', 'key-to-segment table', 'one filter per segment')
			{
				my ($sql, $times) = @{ $way{$name} };
				my $peer = $name eq 'unpack all segments' ? undef : 'unpack all segments';
				my @keys = $there eq 'present key' ? map { "md5('" . ($_ * 7919 + $round) % $all . "')" } 1 .. $times : map { "md5('none $_')" } 1 .. $times;

				$progress->("$recipe: $name");
				measured("$there: $name", 'us CPU', (recipe_cpu($times, [ "PREPARE q(text) AS $sql" ], map { "EXECUTE q($_)" } @keys))[0], $peer && "$there: $peer");
				measured("$there: $name, buffers", 'buffers', buffers('SELECT', $sql =~ s/\$1/$keys[0]/gr), $peer && "$there: $peer, buffers");
			}
		}
	}
	return;
}

sub crawler
{
	my $urls = recipe_rows(10_000_000, 50_000);
	my $hosts = $urls / 50;
	my $batches = recipe_rows(1000, 40);
	# pages 26 to 75 of twenty known hosts, whose pages 1 to 50 are known
	my $batch = "SELECT 'https://www.host' || h || '.example/some/path/' || p || '.html' AS url FROM (SELECT 1 + (hashint8extended(:r::bigint + i, 0) & 2147483647) % $hosts AS h FROM generate_series(1, 20) i) x, generate_series(26, 75) p";
	my $pick = "\\set r random(1, 1000000000000000)\n";
	my %way = (
		'URLs with a primary key' => "INSERT INTO queue_exact (url) SELECT url FROM new_exact(ARRAY($batch)) AS url;",
		'64-bit hashes with a primary key' => "INSERT INTO queue_hash (url) SELECT url FROM new_hash(ARRAY($batch)) AS url;",
		'8192 filters' => "INSERT INTO queue (url) SELECT new_urls(ARRAY($batch));");

	query(from_page('crawler', 'CREATE TABLE seen_url') =~ s/INSERT.*?;//sr);
	query(from_page('crawler', 'CREATE FUNCTION new_urls'));
	query((from_page('crawler', 'CREATE TABLE queue') =~ /(.*?;)/s)[0] . "
		   CREATE TABLE queue_exact (LIKE queue INCLUDING ALL); CREATE TABLE queue_hash (LIKE queue INCLUDING ALL);
		   CREATE TABLE exact_url AS SELECT 'https://www.host' || h || '.example/some/path/' || p || '.html' AS url FROM generate_series(1, $hosts) h, generate_series(1, 50) p;
		   ALTER TABLE exact_url ADD PRIMARY KEY (url);
		   CREATE TABLE url_hash AS SELECT bloom_hash(url) AS h FROM exact_url;
		   ALTER TABLE url_hash ADD PRIMARY KEY (h);
		   SET work_mem = '2GB';
		   INSERT INTO seen_url SELECT n, coalesce(urls, bloom_new(1000, 0.001)) FROM generate_series(0, 8191) n
		     LEFT JOIN (SELECT slot(url) AS slot, bloom_add_all(bloom_new(1000, 0.001), array_agg(url)) AS urls FROM exact_url GROUP BY 1) u ON slot = n;
		   -- in key order, so that concurrent batches do not deadlock
		   CREATE FUNCTION new_exact(batch text[]) RETURNS SETOF text LANGUAGE sql AS \$\$
		     INSERT INTO exact_url SELECT DISTINCT url FROM unnest(batch) AS url ORDER BY 1 ON CONFLICT DO NOTHING RETURNING url \$\$;
		   CREATE FUNCTION new_hash(batch text[]) RETURNS SETOF text LANGUAGE sql AS \$\$
		     WITH asked AS (SELECT DISTINCT ON (bloom_hash(url)) bloom_hash(url) AS h, url FROM unnest(batch) AS url ORDER BY 1),
		          new AS (INSERT INTO url_hash SELECT h FROM asked ON CONFLICT DO NOTHING RETURNING h)
		     SELECT url FROM asked JOIN new USING (h) \$\$");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'exact_url', 'url_hash', 'seen_url';
	my ($exact, $hash, $filters) = map { megabytes("pg_total_relation_size('$_')") } 'exact_url', 'url_hash', 'seen_url';
	measured('size: URLs with a primary key', 'MB', $exact);
	measured('size: 64-bit hashes with a primary key', 'MB', $hash, 'size: URLs with a primary key');
	measured('size: 8192 filters', 'MB', $filters, 'size: URLs with a primary key');
	for my $round (1 .. $rounds)
	{
		for my $name ('URLs with a primary key', '64-bit hashes with a primary key', '8192 filters')
		{
			my $peer = $name =~ /^URLs/ ? undef : 'URLs with a primary key';
			$progress->("$recipe: $name");
			my ($time, $wal) = at_once(4, $batches, $pick . $way{$name});

			measured("4 workers: $name", 'us per link', $time / 1000, $peer && "4 workers: $peer");
			measured("4 workers: $name, WAL", 'bytes per link', $wal / 1000, $peer && "4 workers: $peer, WAL");
		}
	}
	die "a link is queued twice\n" if query('SELECT count(*) - count(DISTINCT url) FROM queue') != 0;
	die "a link that was seen is reported as new\n" if query("SELECT count(*) FROM queue WHERE split_part(split_part(url, '/', 6), '.', 1)::int <= 50") != 0;
	return;
}

sub days_and_months
{
	my $users = recipe_rows(500_000, 5000);
	my $daily = int($users / 5);
	my $probed = recipe_rows(200_000, 5000);
	my $merge = (from_page('days-and-months', 'PREPARE night') =~ /AS\n(.*?);/s)[0];

	query("CREATE TABLE exact_day AS SELECT DISTINCT (hashint8extended(n, d) & 2147483647) % $users AS user_id, date '2026-01-01' + d AS day FROM generate_series(0, 33) d, generate_series(1, $daily) n;
		   ALTER TABLE exact_day ADD PRIMARY KEY (user_id, day);
		   CREATE TABLE active_day (day date PRIMARY KEY, users cuckoo NOT NULL, bloom_users bloom NOT NULL);
		   CREATE TABLE active_month (up_to date NOT NULL, users cuckoo NOT NULL);
		   INSERT INTO active_day SELECT day, cuckoo_agg(user_id, $daily), bloom_agg(user_id, $users) FROM exact_day GROUP BY day;
		   INSERT INTO active_month SELECT '2026-01-30', cuckoo_merge_agg(users) FROM active_day WHERE day <= '2026-01-30';
		   CREATE TABLE bloom_month AS SELECT bloom_union_agg(bloom_users) AS users FROM active_day WHERE day <= '2026-01-30';
		   CREATE TABLE exact_month (user_id bigint, days bigint);
		   CREATE TABLE asked AS SELECT n AS user_id FROM generate_series($users - $probed / 2, $users + $probed / 2) n");
	query("VACUUM (FREEZE, ANALYZE) $_") for 'exact_day', 'active_day', 'active_month', 'bloom_month', 'asked';
	measured('size: rows with a primary key', 'MB', megabytes(q{pg_total_relation_size('exact_day')}) * 30 / 34);
	measured('size: cuckoo, 30 days and their sum', 'MB', megabytes(q{sum(b) FROM (SELECT (cuckoo_stats(users)).bytes AS b FROM active_day WHERE day <= '2026-01-30' UNION ALL SELECT (cuckoo_stats(users)).bytes FROM active_month) x}),
		'size: rows with a primary key');
	measured('size: bloom, 30 days and their union', 'MB', megabytes(q{sum(b) FROM (SELECT (bloom_stats(bloom_users)).bytes AS b FROM active_day WHERE day <= '2026-01-30' UNION ALL SELECT (bloom_stats(users)).bytes FROM bloom_month) x}),
		'size: rows with a primary key');
	for my $round (1 .. $rounds)
	{
		my $day = "date '2026-01-31'";
		my $again = "UPDATE active_month SET up_to = '2026-01-30', users = (SELECT cuckoo_merge_agg(users) FROM active_day WHERE day <= '2026-01-30')";
		my $scan = (recipe_cpu($probed, [], 'SELECT count(user_id) FROM asked'))[0];
		my $loop = 'SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off';

		$progress->("$recipe: round $round");
		for my $night (
			[ 'GROUP BY over 30 days', 'TRUNCATE exact_month', "INSERT INTO exact_month SELECT user_id, count(*) FROM exact_day WHERE day BETWEEN $day - 29 AND $day GROUP BY user_id" ],
			[ 'cuckoo, add a day and subtract one', $again, $merge =~ s/\$1/$day/gr ],
			[ 'bloom, merge 30 days', 'SELECT 1', "UPDATE bloom_month SET users = (SELECT bloom_union_agg(bloom_users) FROM active_day WHERE day BETWEEN $day - 29 AND $day)" ])
		{
			my ($name, $before, $sql) = @$night;
			my $peer = $name eq 'GROUP BY over 30 days' ? undef : 'GROUP BY over 30 days';
			query($before);
			my ($time, $wal) = recipe_cpu(1000, [], $sql);

			measured("nightly update: $name", 'ms CPU', $time, $peer && "nightly update: $peer");
			measured("nightly update: $name, WAL", 'MB', $wal / 1000, $peer && "nightly update: $peer, WAL");
		}
		die "a user is counted too low\n" if query("SELECT count(*) FROM (SELECT user_id, count(*) AS days FROM exact_day WHERE day BETWEEN $day - 29 AND $day GROUP BY user_id) e, active_month m WHERE cuckoo_count(m.users, user_id) < days");
		measured('days per user, in bulk: primary key', 'us CPU per user',
			(recipe_cpu($probed, [ split /; /, $loop ], "SELECT sum(n) FROM asked a, LATERAL (SELECT count(*) AS n FROM exact_day e WHERE e.user_id = a.user_id AND day BETWEEN $day - 29 AND $day) c"))[0] - $scan);
		measured('days per user, in bulk: cuckoo', 'us CPU per user', (recipe_cpu($probed, [], 'SELECT sum(cuckoo_count((SELECT users FROM active_month), user_id)) FROM asked'))[0] - $scan,
			'days per user, in bulk: primary key');
	}
	return;
}

# ------------------------------------------------------------------

my @RECIPES = (
	[ 'cache penetration', \&cache_penetration ],
	[ 'nickname', \&nickname ],
	[ 'crawler', \&crawler ],
	[ 'seen feed', \&seen_feed ],
	[ 'coupons', \&coupons ],
	[ 'partitions', \&partitions_by_day ],
	[ 'star join', \&star_join ],
	[ 'days and months', \&days_and_months ],
	[ 'segments', \&segments ],
	[ 'small filters', \&small_filters ],
	[ 'changes', \&changes ]);

# Run the matching recipes.  Returns the cases with their values.
sub recipes_cases
{
	(my $options, $progress) = @_;
	($scale, $rounds, $only) = @{$options}{ 'scale', 'rounds', 'only' };
	my @wanted = grep { "recipes: $_->[0]" =~ /$only/ } @RECIPES;

	return unless @wanted;
	query('CREATE EXTENSION IF NOT EXISTS bloomfilter');
	query(q{CREATE OR REPLACE FUNCTION cpu_ns() RETURNS bigint LANGUAGE sql AS $$SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::bigint$$});
	query(q{ALTER DATABASE postgres SET search_path = recipes, public; ALTER DATABASE postgres SET maintenance_work_mem = '1GB'});
	full_page_writes('off');
	for my $one (@wanted)
	{
		my $from = time;

		$recipe = $one->[0];
		query('CREATE SCHEMA recipes');
		$progress->("$recipe: loading");
		$one->[1]->();
		query('SET client_min_messages = warning; DROP SCHEMA recipes CASCADE');
		printf STDERR "\n%s: %d s\n", $recipe, time - $from;
	}
	full_page_writes('on');
	query('ALTER DATABASE postgres RESET search_path; ALTER DATABASE postgres RESET maintenance_work_mem');
	for my $case (@list)
	{
		$case->{median} = median(@{ $case->{values} });
		($case->{best}) = sort { $a <=> $b } @{ $case->{values} };
	}
	return @list;
}

1;
