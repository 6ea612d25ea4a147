#!/usr/bin/perl
# bench/draw.pl FILE.csv... FOLDER
#
# Draw the charts of the documentation with gnuplot, from benchmark results: every chart
# whose figures are in the files.  A case is named "series: x".  Charts are 700 pixels wide.
# Their background is transparent.  All colors have a contrast of at least 3 (text: 4) with white
# and with the dark background of GitHub, so that charts are readable in light and dark mode.
use strict;
use warnings;

use List::Util qw(max min);

my $folder = pop @ARGV or die "usage: bench/draw.pl FILE.csv... FOLDER\n";
my %value;						# best value by group, series and x
my %order;						# series by group, in the order of the file
my %at;							# x by group, in the same order

while (my $line = <>)
{
	my ($group, $name, $best) = $line =~ /^"?([^,"]+)"?,"([^"]*)",([^,]*),/ or next;
	my ($series, $x) = $group =~ /^(charts|theory)/ ? $name =~ /^(.*): (.*)$/ : ($name =~ /^(.*?)(?:, (off))?$/)[ 0, 1 ];

	$x //= 'on';
	push @{ $order{$group} }, $series unless exists $value{$group}{$series};
	push @{ $at{$group} }, $x unless grep { $_ eq $x } @{ $at{$group} };
	$value{$group}{$series}{$x} = $best;
}

my @COLOURS = ('#3f7cc4', '#d0742c', '#3b8f5a', '#a066b4', '#7a7a7a');
my $GREY = '#8c8c8c';
my $TEXT = '#7a7a7a';
my $GRID = '#c0808080';		# mostly transparent

# Draw one chart.  The title states the result; a smaller line below it states the setup.
sub plot
{
	my ($name, $height, $title, $small, @commands) = @_;

	open my $pipe, '|-', 'gnuplot' or die "gnuplot: $!\n";
	print $pipe "set terminal svg noenhanced size 700,$height font 'Helvetica,Arial,sans-serif,14'\nset output '$folder/$name.svg'\n";
	printf $pipe "set label \"%s\" at screen 0.02,%f left font ',16' tc rgb '$TEXT'\nset label \"%s\" at screen 0.02,%f left font ',13' tc rgb '$TEXT'\n", $title, 1 - 20 / $height, $small, 1 - 43 / $height;
	# a legend of two rows between them and the plot, if there is one
	printf $pipe "set tmargin at screen %f\nset key at screen 0.02,%f left top horizontal maxrows 2 Left reverse samplen 2 width -3 font ',13'\n",
	  1 - ((grep { /^plot.* title / } @commands) ? 105 : 66) / $height, 1 - 58 / $height;
	print $pipe "set border 3 lc rgb '$GREY'\nset tics nomirror textcolor rgb '$TEXT'\nset grid lc rgb '$GRID' lt 1\nset style fill solid noborder\n";
	print $pipe "set key textcolor rgb '$TEXT'\nset xlabel textcolor rgb '$TEXT'\nset ylabel textcolor rgb '$TEXT'\n";
	print $pipe map { "$_\n" } @commands;
	close $pipe or die "no chart $name\n";
	print "$folder/$name.svg\n";
	return;
}

# The points of a series as gnuplot data, ordered by x.
sub points
{
	my ($group, $series) = @_;
	my $of = $value{$group}{$series};

	return join("\n", map { "$_ $of->{$_}" } sort { $a <=> $b } keys %$of) . "\ne";
}

# Horizontal bars, the first on top: [label, value, color, text beside the bar].
sub bars
{
	my ($height, @bars) = @_;

	return ("set yrange [-0.6:" . ($#bars + 0.6) . "]", names(map { $_->[0] } @bars), 'set grid noytics',
		'plot ' . join(', ', map { "'-' using (\$2/2):1:(\$2/2):($height) with boxxyerrorbars lc rgb '$_->[2]' notitle" } @bars) . ", '-' using 2:1:3 with labels left offset 0.5,0 tc rgb '$TEXT' notitle",
		(map { ($#bars - $_) . " $bars[$_][1]\ne" } 0 .. $#bars),
		(map { ($#bars - $_) . " $bars[$_][1] \"$bars[$_][3]\"" } 0 .. $#bars), 'e');
}

# Names along the y axis, the first on top.  gnuplot takes a % there as a format.
sub names
{
	my (@names) = @_;

	return 'set ytics scale 0 (' . join(', ', map { '"' . ($names[$_] =~ s/%/%%/gr) . '" ' . ($#names - $_) } 0 .. $#names) . ')';
}

# Three significant digits: 12345.6 becomes 12,300.
sub readable
{
	my ($n) = @_;
	my $text = $n < 10 ? sprintf('%.3g', $n) : $n < 100 ? sprintf('%.0f', $n) : sprintf('%.0f', sprintf('%.3g', $n));

	1 while $text =~ s/^(\d+)(\d{3})/$1,$2/;
	return $text;
}

# The x from which on a filter gains less than 2%, interpolated; undef if it always gains more.
sub break_even
{
	my (@rows) = @_;			# x, without, with
	my ($first) = grep { $rows[$_][1] <= 1.02 * $rows[$_][2] } 0 .. $#rows;

	return unless defined $first;
	return $rows[0][0] if $first == 0;
	my $last = $first - 1;
	my ($before, $after) = map { log($_->[1] / $_->[2]) } @rows[ $last, $last + 1 ];
	my $share = $after < 0 ? $before / ($before - $after) : 1;

	return exp(log($rows[$last][0]) * (1 - $share) + log($rows[ $last + 1 ][0]) * $share);
}

# ------------------------------------------------------------------

sub draw_bytes
{
	my $group = 'charts: bytes';
	my $of = $value{$group};
	my @kinds = @{ $at{$group} };
	my @series = @{ $order{$group} };
	my $all = 0.8 / @kinds;
	my @rows;

	for my $s (0 .. $#series)
	{
		for my $k (0 .. $#kinds)
		{
			push @rows, [ $#series - $s + 0.4 - $all * ($k + 0.5), $of->{ $series[$s] }{ $kinds[$k] }, $k ];
		}
	}
	my $filter = $of->{'bloom, 1%'}{ $kinds[-1] };

	# the numbers beside the bars need the height of a line
	plot('bytes', 180 + 19 * @rows, sprintf('A filter at 1%% takes %s bytes per key, regardless of key length', readable($filter)), 'one million distinct keys; size of each structure divided by the number of keys',
		'set xlabel "bytes per key"', 'set xrange [0:' . 1.12 * max(map { $_->[1] } @rows) . ']', 'set yrange [-0.6:' . ($#series + 0.6) . ']', 'set grid noytics',
		names(@series),
		'plot ' . join(', ', map { "'-' using (\$2/2):1:(\$2/2):(" . $all * 0.45 . ") with boxxyerrorbars lc rgb '$COLOURS[$_]' title '$kinds[$_]'" } 0 .. $#kinds)
		  . ", '-' using 2:1:3 with labels left offset 0.5,0 font ',12' tc rgb '$TEXT' notitle",
		(map { my $k = $_; join("\n", map { "$_->[0] $_->[1]" } grep { $_->[2] == $k } @rows) . "\ne" } 0 .. $#kinds),
		join("\n", map { "$_->[0] $_->[1] \"" . readable($_->[1]) . '"' } @rows) . "\ne");
	return;
}

sub draw_inserts
{
	my $group = 'charts: inserts';
	my $of = $value{$group};
	my @series = @{ $order{$group} };
	my %rate = map { ($_ => (values %{ $of->{$_} })[0]) } @series;
	my $none = $rate{'no filter'};
	my %share = map { ($_ => 100 * $rate{$_} / $none) } @series;
	my @bars = map { [ $_, $rate{$_}, $_ eq 'no filter' || /btree/ ? $GREY : $COLOURS[0], sprintf($share{$_} < 1 ? '%s (%.1f%%)' : '%s (%.0f%%)', readable($rate{$_}), $share{$_}) ] } @series;

	plot('inserts', 110 + 44 * @bars, sprintf('A bloomfilter index keeps %.0f%% of the insert rate, a trigger %.1f%%', min(100, $share{'bloomfilter index'}), $share{'trigger, one filter'}),
		'single-row inserts by 8 clients into a table of a million rows; higher is better', 'set xlabel "inserts per second"', 'set xrange [0:' . 1.3 * max(values %rate) . ']', 'set format x "%.0f"', 'set lmargin 28', bars(0.3, @bars));
	return;
}

sub draw_joins
{
	my $group = 'charts: dimension';
	my $of = $value{$group};
	my @rows = map { [ $_, $of->{off}{$_}, $of->{on}{$_} ] } sort { $a <=> $b } keys %{ $of->{off} };
	my ($gain) = sort { $b <=> $a } map { $_->[1] / $_->[2] } @rows;
	my $even = break_even(@rows);
	my $top = 1.1 * max(map { @$_[ 1, 2 ] } @rows);
	my $what = defined $even ? sprintf('break-even: %.0f%%', $even) : 'faster at every share';
	my $x = $even // 100;

	plot('joins', 420, sprintf('A hash join with a filter: up to %.1f times as fast', $gain),
		'4 million facts joined with part of a dimension of a million rows', 'set logscale x', 'set xrange [0.1:100]', "set yrange [0:$top]", 'set xlabel "share of the facts that have a match, %"', 'set ylabel "query time, ms"',
		'set xtics (0.1, 0.3, 1, 3, 10, 30, 100)',
		defined $even ? ("set arrow from $x,0 to $x,$top nohead dt 2 lc rgb '$GREY'", "set label \"$what \" at $x," . 0.05 * $top . " right tc rgb '$TEXT'") : "set label \"$what \" at 90," . 0.05 * $top . " right tc rgb '$TEXT'",
		"plot '-' with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '$COLOURS[1]' title 'without', '-' with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '$COLOURS[0]' title 'with bloomfilter.join_filter'",
		points($group, 'off'), points($group, 'on'));
	return;
}

sub draw_probes
{
	my $group = 'charts: probes';
	my @series = @{ $order{$group} };
	my $most = max(keys %{ $value{$group}{ $series[0] } });
	my ($btree, $filter) = map { $value{$group}{$_}{$most} } 'btree lookup', 'bloom_contains';

	plot('probes', 420, sprintf('With %s keys, a filter is %.0f times as fast as a btree', readable($most), $btree / $filter),
		'absent text keys, many per query; CPU time minus that of the scan that reads the keys', 'set logscale xy', 'set format x "10^%T"', 'set termoption enhanced', "set xrange [800:" . 1.3 * $most . ']',
		'set xlabel "keys in the filter or index"', 'set ylabel "nanoseconds per key"',
		'plot ' . join(', ', map { "'-' with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '$COLOURS[$_]' title '" . ($series[$_] =~ s/_/\\_/gr) . "'" } 0 .. $#series),
		map { points($group, $_) } @series);
	return;
}

sub draw_fpp
{
	my $group = 'charts: fpp';
	my @series = @{ $order{$group} };
	my $worst = max(map { values %{ $value{$group}{$_} } } grep { !/textbook/ } @series);

	plot('fpp', 420, 'The measured false-positive rate meets the target', sprintf('100,000 keys; bloom and cuckoo: at most %.2f times the target', $worst), 'set logscale xy', 'set xrange [0.7:7e-7]',
		'set format x "10^{%T}"', 'set termoption enhanced', 'set yrange [0.2:40]', 'set ytics (0.25, 0.5, 1, 2, 4, 8, 16, 32)', 'set xlabel "target fpp"', 'set ylabel "measured fpp / target"',
		"set arrow from graph 0, first 1 to graph 1, first 1 nohead lw 1.5 lc rgb '$TEXT'", "set label \"target\" at graph 0.99, first 1.15 right font ',12' tc rgb '$TEXT'",
		'plot ' . join(', ', map { "'-' with linespoints lw 2.5 pt 7 ps 0.6 lc rgb '" . ($series[$_] =~ /textbook/ ? $GREY : $COLOURS[$_]) . "' title '$series[$_]'" } 0 .. $#series),
		map { points($group, $_) } @series);
	return;
}

sub draw_fill
{
	my $group = 'theory: fill';
	my @lines = ([ 'bloom predicted', "lines lw 2 lc rgb '$COLOURS[0]'" ], [ 'bloom measured', "points pt 7 ps 0.9 lc rgb '$COLOURS[0]'" ], [ 'bloom textbook', "lines lw 2 dt 2 lc rgb '$GREY'" ],
		[ 'cuckoo predicted', "lines lw 2 lc rgb '$COLOURS[1]'" ], [ 'cuckoo measured', "points pt 5 ps 0.8 lc rgb '$COLOURS[1]'" ]);

	plot('fill', 420, 'False-positive rate of a filter made for 1% while it fills', 'capacity 100,000; ten million lookups of keys that were not added', 'set logscale y', 'set yrange [0.0001:30]', 'set xrange [10:210]',
		'set xlabel "keys added, % of the capacity"', 'set ylabel "false positives, %"', 'set ytics ("0.0001" 0.0001, "0.001" 0.001, "0.01" 0.01, "0.1" 0.1, "1" 1, "10" 10)',
		'plot ' . join(', ', map { "'-' with $_->[1] title '$_->[0]'" } @lines), map { points($group, $_->[0]) } @lines);
	return;
}

sub draw_groups
{
	my $group = 'theory: groups';
	my @series = @{ $order{$group} };
	my @lines = map { [ $series[$_], $series[$_] eq 'chosen' ? "lines lw 6 lc rgb '#80808080'" : "lines lw 2.5 lc rgb '$COLOURS[$_]'" ] } $#series, 0 .. $#series - 1;

	plot('groups', 400, 'Two to four lines per key save space at small targets', 'bits per key relative to a classic Bloom filter; gray: what the extension uses', 'set logscale x', 'set xrange [0.1:1e-9]', 'set yrange [1:1.6]', 'unset mxtics', 'set format x "10^{%T}"', 'set termoption enhanced',
		'set xlabel "target fpp"', 'set ylabel "bits / bits of a classic filter"',
		'plot ' . join(', ', map { "'-' with $_->[1] title '$_->[0]'" } @lines), map { points($group, $_->[0]) } @lines);
	return;
}

sub draw_star
{
	my $group = 'joins: star';
	my $of = $value{$group};
	my @queries = grep { $_ ne 'total' } @{ $order{$group} };
	my @gains = map { $_->{off} / $_->{on} } @{$of}{@queries};

	plot('star', 130 + 34 * @queries, sprintf('A star schema: %.1f times as fast in total, each query %.1f to %.1f times', $of->{total}{off} / $of->{total}{on}, min(@gains), max(@gains)), 'twelve reports over 6 million sales and one to four dimensions',
		'set yrange [-0.6:' . ($#queries + 0.6) . ']', 'set xrange [0:' . 1.12 * max(map { $_->{off} } @{$of}{@queries}) . ']', 'set grid noytics', 'set xlabel "query time, ms"', 'set lmargin 27',
		names(@queries),
		"plot '-' using (\$2/2):(\$1+0.19):(\$2/2):(0.18) with boxxyerrorbars lc rgb '$GREY' title 'without', '-' using (\$2/2):(\$1-0.19):(\$2/2):(0.18) with boxxyerrorbars lc rgb '$COLOURS[0]' title 'with bloomfilter.join_filter', "
		  . "'-' using 2:1:3 with labels left offset 0.5,0 tc rgb '$TEXT' notitle",
		(map { my $which = $_; join("\n", map { ($#queries - $_) . " $of->{$queries[$_]}{$which}" } 0 .. $#queries) . "\ne" } 'off', 'on'),
		join("\n", map { ($#queries - $_) . sprintf(' %s "%.1f x"', $of->{ $queries[$_] }{off}, $of->{ $queries[$_] }{off} / $of->{ $queries[$_] }{on}) } 0 .. $#queries) . "\ne");
	return;
}

sub draw_fingerprint
{
	my $of = $value{'fingerprint: size'};
	my %colour = (btree => $GREY, hash => $COLOURS[1], fingerprint => $COLOURS[0]);
	my @bars;

	for my $type ('uuid', 'text 16', 'text 80', 'bigint, 12 rows per key')
	{
		for my $kind ('btree', 'hash', 'fingerprint')
		{
			my $bytes = $of->{"$kind, $type, built"}{on} or return;

			push @bars, [ $kind eq 'btree' ? "$type: btree" : $kind, $bytes, $colour{$kind}, readable($bytes) ];
		}
	}
	plot('fingerprint', 110 + 26 * @bars, 'A fingerprint index takes 7 to 8 bytes per row, whatever the key', 'size of the index after CREATE INDEX, over the number of rows',
		'set xlabel "bytes per row"', 'set lmargin 32', 'set xrange [0:' . 1.12 * max(map { $_->[1] } @bars) . ']', bars(0.4, @bars));
	return;
}

my %charts = (
	'charts: bytes' => \&draw_bytes, 'charts: inserts' => \&draw_inserts, 'charts: dimension' => \&draw_joins, 'charts: probes' => \&draw_probes,
	'charts: fpp' => \&draw_fpp, 'theory: fill' => \&draw_fill, 'theory: groups' => \&draw_groups, 'joins: star' => \&draw_star,
	'fingerprint: size' => \&draw_fingerprint);

for my $group (sort keys %charts)
{
	$charts{$group}->() if $value{$group};
}
