#!/usr/bin/perl
#
# reader.pl
#		A reader of `bloom` and `cuckoo` filters that shares no code with the
#		extension.
#
# Written from docs/FORMAT.md alone, in core Perl, not for speed.  The tests
# compare its results with the server's.  If they differ, either the code or the
# specification is wrong.
#
#	reader.pl < pairs				one line each: filter in base64, TAB, the
#									key's bloom_hash as a signed number;
#									prints t (may be present) or f
#	reader.pl --count < pairs		the same, but of cuckoo filters, and prints
#									the number of copies of the key
#	reader.pl --describe < filters	one filter in base64 per line; prints its
#									header and its layers
#
# Malformed input ends the program with the reason.
#
use strict;
use warnings;
no warnings 'portable';			# 64-bit constants

use MIME::Base64 qw(decode_base64 encode_base64);

die "reader.pl needs a Perl with 64-bit integers\n" if ~0 != 0xFFFFFFFFFFFFFFFF;

use constant {
	LENGTH_WORD  => 4,			# counted in sizes and alignment, not stored here
	HEADER_BYTES => 28,
	ENTRY_BYTES  => 12,
	WIDE_BYTES   => 2048,
	LINE_WORDS   => 8,
	LINE_BYTES   => 64,
	LINE_BITS    => 512,
	MAX_BYTES    => 512 * 1024 * 1024,
	MAX_LAYERS   => 64,
	MAX_CAPACITY => 1 << 40,
	NAMED        => 255,
	NO_CODE      => 60,
	LIST         => 1,
	LINES        => 2,
	CUCKOO_LIST  => 3,
	TABLE        => 4,
	MAX_LIST     => 12582912,
	SPILL_WORDS  => 34594560,
	MAX_RANGE    => 1 << 62,
	BUCKET_SLOTS => 4,
	MAX_COPIES   => 255,
	MASK32       => 0xFFFFFFFF,
};

my @SCHEMES = qw(none canonical server-le server-be);
my @CLASSES = qw(none integer text uuid bytea boolean float numeric date time
  timetz timestamp timestamptz interval inet macaddr macaddr8 bit oid money
  xid8 pg_lsn jsonb);

# ------------------------------------------------------------------
# Unsigned 64-bit arithmetic.  Perl converts a result that does not fit to
# floating point, so both operations work on 32-bit halves.
# ------------------------------------------------------------------

# The sum modulo 2^64.
sub add64
{
	my ($x, $y) = @_;
	my $low  = ($x & MASK32) + ($y & MASK32);
	my $high = ($x >> 32) + ($y >> 32) + ($low >> 32);

	return ($high & MASK32) << 32 | $low & MASK32;
}

# The 128-bit product, as (upper half, lower half).
sub multiply64
{
	my ($x, $y) = @_;
	my ($x1, $x0, $y1, $y0) = ($x >> 32, $x & MASK32, $y >> 32, $y & MASK32);
	my $low    = $x0 * $y0;
	my $middle = $x1 * $y0 + ($low >> 32);
	my $cross  = $x0 * $y1 + ($middle & MASK32);

	return (
		$x1 * $y1 + ($middle >> 32) + ($cross >> 32),
		($cross & MASK32) << 32 | $low & MASK32);
}

sub mix64
{
	my ($x) = @_;

	$x = (multiply64($x ^ $x >> 30, 0xBF58476D1CE4E5B9))[1];
	$x = (multiply64($x ^ $x >> 27, 0x94D049BB133111EB))[1];
	return $x ^ $x >> 31;
}

# ------------------------------------------------------------------
# Reading and validating
# ------------------------------------------------------------------

sub from_base64
{
	my ($text) = @_;
	my $bytes = decode_base64($text);

	# the decoder is lenient, so compare with the output of the encoder
	die "not canonical base64\n" if encode_base64($bytes, '') ne $text;
	return $bytes;
}

# The next offset that is a multiple of $to, counting the length word.
sub align
{
	my ($offset, $to) = @_;

	return $offset + -($offset + LENGTH_WORD) % $to;
}

sub check_zero
{
	my ($bytes, $from, $to) = @_;

	die "padding is not zero\n" if substr($bytes, $from, $to - $from) =~ /[^\0]/;
	return;
}

sub check_name
{
	my ($name) = @_;

	die "class name is not UTF-8 without zero bytes, or empty\n" unless $name =~ /\A(?:
		[\x01-\x7F]
		| [\xC2-\xDF] [\x80-\xBF]
		| \xE0 [\xA0-\xBF] [\x80-\xBF]
		| [\xE1-\xEC\xEE\xEF] [\x80-\xBF]{2}
		| \xED [\x80-\x9F] [\x80-\xBF]
		| \xF0 [\x90-\xBF] [\x80-\xBF]{2}
		| [\xF1-\xF3] [\x80-\xBF]{3}
		| \xF4 [\x80-\x8F] [\x80-\xBF]{2}
	)+\z/x;
	return;
}

# One layer of a bloom filter, from its entry of 12 bytes.
sub read_entry
{
	my ($entry) = @_;
	my ($words, $low, $high, $hashing, $form) = unpack 'V V v C C', $entry;
	my %layer = (
		words    => $words,
		capacity => $high << 32 | $low,
		groups   => $hashing >> 4,
		probes   => $hashing & 15,
		form     => $form);

	die "layer form $form is unknown\n" if $form != LIST && $form != LINES;
	die "layer capacity is out of range\n" if $layer{capacity} > MAX_CAPACITY;
	die "layer is not a whole number of lines\n" if $words > LINE_WORDS && $words % LINE_WORDS;
	die "layer is too large\n" if $words * 8 > MAX_BYTES;
	if ($words == 0)
	{
		die "layer without lines is not an unfinished list\n"
		  if $form != LIST || $hashing != 0;
		return \%layer;
	}
	die "groups are out of range\n" if $layer{groups} < 1 || $layer{groups} > 4;
	die "probes are out of range\n" if $layer{probes} < 1 || $layer{probes} > 8;
	die "sized list has no capacity\n" if $form == LIST && $layer{capacity} == 0;
	die "number of unfinished lines is not that of an aggregate\n" if $layer{capacity} == 0 && $words != SPILL_WORDS;
	return \%layer;
}

# The layer of a cuckoo filter, from its entry of 12 bytes.
sub read_cuckoo_entry
{
	my ($entry) = @_;
	my ($buckets, $low, $high, $slot_bits, $form) = unpack 'V V v C C', $entry;
	my %layer = (
		buckets   => $buckets,
		capacity  => $high << 32 | $low,
		slot_bits => $slot_bits,
		form      => $form);

	die "layer form $form is unknown\n" if $form != CUCKOO_LIST && $form != TABLE;
	die "layer capacity is out of range\n" if $layer{capacity} > MAX_CAPACITY;
	if ($buckets == 0)
	{
		die "layer without buckets is not an unfinished list\n" if $form != CUCKOO_LIST || $slot_bits != 0;
		return \%layer;
	}
	die "slot bits are out of range\n" if $slot_bits < 5 || $slot_bits > 56;
	die "range of numbers is too large\n" if $buckets > MAX_RANGE >> ($slot_bits - 1);
	$layer{range} = $buckets << ($slot_bits - 1);
	$layer{words} = ((BUCKET_SLOTS * $buckets - 1) * $slot_bits >> 3) + 15 >> 3;
	die "table is too large\n" if $layer{words} * 8 > MAX_BYTES;
	return \%layer;
}

# Reads the contents of one layer of a bloom filter, which begin at an offset.
# Returns where they end.
sub read_contents
{
	my ($layer, $bytes, $start) = @_;
	my $room = length($bytes) - $start;
	my $length = $layer->{words} * 8;

	if ($layer->{form} == LIST)
	{
		die "filter ends before its list does\n" if $room < 8;
		$layer->{count} = unpack 'Q<', substr $bytes, $start, 8;
		die "filter ends before its list does\n" if $layer->{count} > $room / 8 - 1;
		die "list is not shorter than lines\n"
		  if $layer->{count} > MAX_LIST || $layer->{words} > 0 && $layer->{count} + 1 >= $layer->{words};
		$length = 8 + 8 * $layer->{count};
	}
	die "filter ends before its last layer does\n" if $length > $room;

	if ($layer->{form} == LIST)
	{
		my @hashes = unpack 'Q<*', substr $bytes, $start + 8, $length - 8;

		for my $i (1 .. $#hashes)
		{
			die "list is not in ascending order\n" if $hashes[ $i - 1 ] >= $hashes[$i];
		}
		$layer->{hashes} = { map { $_ => 1 } @hashes };
		$layer->{empty} = !@hashes;
	}
	else
	{
		$layer->{lines} = substr $bytes, $start, $length;
		$layer->{empty} = $layer->{lines} !~ /[^\0]/;
	}
	return $start + $length;
}

# The value of a slot.  8 bytes can always be read, and a slot of up to 56 bits
# that starts in the first of them ends in the last.
sub slot
{
	my ($layer, $number) = @_;
	my $bit = $number * $layer->{slot_bits};

	return unpack('Q<', substr $layer->{table}, $bit >> 3, 8) >> ($bit & 7) & (1 << $layer->{slot_bits}) - 1;
}

# The distance from the own bucket of a fingerprint to its alternate bucket.
sub distance
{
	my ($layer, $fingerprint) = @_;
	my $window = $layer->{buckets} - 1 < 1024 ? $layer->{buckets} - 1 : 1024;

	return 0 if $window == 0;
	return 1 + (multiply64((multiply64($fingerprint + 1, 0x9E3779B97F4A7C15))[1], $window))[0];
}

# The numbers in the table, which must be distinct and as many as declared.
sub table_numbers
{
	my ($layer) = @_;
	my $slots = BUCKET_SLOTS * $layer->{buckets};
	my $bits = $slots * $layer->{slot_bits};
	my ($used, %numbers) = (0);

	for my $slot (0 .. $slots - 1)
	{
		my $value = slot($layer, $slot) or next;
		my $fingerprint = $value >> 1;
		my $bucket = $slot >> 2;

		$bucket = ($bucket + $layer->{buckets} - distance($layer, $fingerprint)) % $layer->{buckets} if $value & 1;
		die "number is in the table twice\n" if $numbers{ $bucket << ($layer->{slot_bits} - 1) | $fingerprint }++;
		$used++;
	}
	die "$used slots are used, not $layer->{used}\n" if $used != $layer->{used};
	die "bit is set after the last slot\n"
	  if unpack('C', substr $layer->{table}, $bits >> 3, 1) >> ($bits & 7)
	  || substr($layer->{table}, ($bits >> 3) + 1) =~ /[^\0]/;
	return \%numbers;
}

# Reads the contents of a cuckoo filter, which begin at an offset.  Returns where
# they end.
sub read_cuckoo_contents
{
	my ($layer, $bytes, $start) = @_;
	my $room = length($bytes) - $start;
	my $fixed = $layer->{form} == TABLE ? 16 + $layer->{words} * 8 : 8;
	my $in_table = {};

	# the sizes of the parts
	die "filter ends before its table or list does\n" if $room < $fixed;
	my $listed = $layer->{listed} = unpack 'Q<', substr $bytes, $start, 8;
	die "filter ends before its list does\n" if $listed > ($room - $fixed) / 9;
	die "list is too long\n" if $layer->{buckets} == 0 && $listed > MAX_LIST;
	my $end = $start + $fixed + 9 * $listed;
	my $padded = $end + -($end - $start) % 8;
	die "filter ends before its list does\n" if $padded > length $bytes;
	check_zero($bytes, $end, $padded);

	# the table
	if ($layer->{form} == TABLE)
	{
		$layer->{used} = unpack 'Q<', substr $bytes, $start + 8, 8;
		$layer->{table} = substr $bytes, $start + 16, $layer->{words} * 8;
		$in_table = table_numbers($layer);
	}

	# the list
	my @numbers = unpack 'Q<*', substr $bytes, $start + $fixed, 8 * $listed;
	my @counts = unpack 'C*', substr $bytes, $start + $fixed + 8 * $listed, $listed;
	my $distinct = keys %$in_table;

	for my $i (0 .. $#numbers)
	{
		die "list is not in ascending order\n" if $i > 0 && $numbers[ $i - 1 ] >= $numbers[$i];
		die "number is out of range\n" if $layer->{buckets} > 0 && $numbers[$i] >= $layer->{range};
		die "number in the list has no copies\n" if $counts[$i] == 0;
		die "too many copies\n" if $in_table->{ $numbers[$i] } && $counts[$i] == MAX_COPIES;
		$layer->{copies}{ $numbers[$i] } = $counts[$i];
		$distinct++ unless $in_table->{ $numbers[$i] };
	}
	die "encoding does not match the number of keys, $distinct\n"
	  if $layer->{buckets} > 0 && ($layer->{form} == CUCKOO_LIST) != (9 * $distinct < 8 * $layer->{words});
	$layer->{empty} = $distinct == 0;
	return $padded;
}

# The required size of a wide filter modulo 64.
sub size_code
{
	my ($filter) = @_;

	return NO_CODE if $filter->{cuckoo};
	my $layer = $filter->{layers}[0];
	my ($first_code, $first_probes) =
	  @{ { 1 => [ 0, 1 ], 2 => [ 24, 4 ], 3 => [ 39, 5 ], 4 => [ 51, 6 ] }->{ $layer->{groups} } || [] };

	return NO_CODE
	  if @{ $filter->{layers} } > 1
	  || $layer->{form} != LINES
	  || $filter->{class} < 1
	  || $filter->{class} > 3
	  || $layer->{probes} < $first_probes;
	return $first_code + 3 * ($layer->{probes} - $first_probes) + $filter->{class} - 1;
}

# Reads a filter.  Dies unless every rule of the format holds.
sub read_filter
{
	my ($bytes) = @_;
	my $size = length $bytes;
	my $wide = $size + LENGTH_WORD >= WIDE_BYTES;
	my %filter = (bytes => $size, name => undef, layers => []);
	my @layers;

	# the header
	die "shorter than the header\n" if $size < HEADER_BYTES;
	die "larger than the maximum size of a filter\n" if $size + LENGTH_WORD > MAX_BYTES;
	(my $magic, my $version, @filter{qw(scheme class)}, my $count, @filter{qw(growth max_layers fpp)}) =
	  unpack 'a2 C C C C C C d<', $bytes;
	die "neither a bloom nor a cuckoo filter\n" if $magic ne 'BF' && $magic ne 'CF';
	$filter{cuckoo} = $magic eq 'CF';
	die "format version $version is unknown\n" if $version != 1;
	die "hash scheme $filter{scheme} is unknown\n" if $filter{scheme} > $#SCHEMES;
	die "key class $filter{class} is unknown\n" if $filter{class} > $#CLASSES && $filter{class} != NAMED;
	die "key class does not match hash scheme\n"
	  if $filter{class} == 0 ? $filter{scheme} != 0 : $filter{class} == 255 ? $filter{scheme} == 0 : $filter{scheme} != 1;
	die "number of layers, $count, is out of range\n" if $count < 1 || $count > MAX_LAYERS;
	die "probability is out of range\n" unless $filter{fpp} >= 1e-12 && $filter{fpp} < 1;
	die "growth or max_layers is out of range\n" if $filter{growth} > 100 || $filter{max_layers} > MAX_LAYERS;
	die "cuckoo filter of $count layers\n" if $filter{cuckoo} && $count > 1;
	die "cuckoo filter has max_layers, or a growth that is not a power of two\n"
	  if $filter{cuckoo} && ($filter{max_layers} != 0 || !grep { $_ == $filter{growth} } 0, 2, 4, 8, 16, 32, 64);
	die "rotating filter grows or has too many layers\n"
	  if $filter{max_layers} > 0 && ($filter{growth} != 1 || $count > $filter{max_layers});

	# the name of the class
	my $offset = HEADER_BYTES;
	if ($filter{class} == NAMED)
	{
		die "filter ends before its class name does\n" if $size < $offset + 1;
		my $end = $offset + 1 + unpack 'C', substr $bytes, $offset, 1;
		die "filter ends before its class name does\n" if $size < align($end, 8);
		$filter{name} = substr $bytes, $offset + 1, $end - $offset - 1;
		check_name($filter{name});
		$offset = align($end, 8);
		check_zero($bytes, $end, $offset);
	}

	# the entries: the entry of layer 1 is the end of the header
	my $entries_end = $offset + ENTRY_BYTES * ($count - 1);
	my $contents = align($entries_end, 8);
	die "filter ends before its layer entries do\n" if $size < $contents;
	my $first_entry = substr $bytes, HEADER_BYTES - ENTRY_BYTES, ENTRY_BYTES;
	push @layers, $filter{cuckoo} ? read_cuckoo_entry($first_entry) : read_entry($first_entry);
	push @layers, read_entry(substr $bytes, $offset + ENTRY_BYTES * ($_ - 1), ENTRY_BYTES) for 1 .. $count - 1;
	$filter{layers} = \@layers;
	die "unfinished filter has several layers\n"
	  if ($count > 1 || $filter{max_layers} > 0) && grep { is_unfinished($_) } @layers;

	# the contents, with zeros between and after them
	my $end = $entries_end;
	my $narrow_size = $contents;
	my $start = $contents;
	for my $layer (@layers)
	{
		$start = align($start, LINE_BYTES) if $wide;
		die "filter ends before its last layer does\n" if $start > $size;
		check_zero($bytes, $end, $start);
		$end = $filter{cuckoo} ? read_cuckoo_contents($layer, $bytes, $start) : read_contents($layer, $bytes, $start);
		$narrow_size += $end - $start;
		$start = $end;
	}
	check_zero($bytes, $end, $size);

	# the size
	die "size does not match narrow or wide layout\n"
	  if $wide != ($narrow_size + LENGTH_WORD >= WIDE_BYTES);
	my $padding = $wide ? (size_code(\%filter) - $end - LENGTH_WORD) % LINE_BYTES : 0;
	die "size is not the sum of the parts\n" if $size != $end + $padding;

	die "filter has keys but no key class\n" if $filter{class} == 0 && grep { !$_->{empty} } @layers;
	return \%filter;
}

# ------------------------------------------------------------------
# Testing for keys
# ------------------------------------------------------------------

sub lines_contain
{
	my ($layer, $hash) = @_;
	my $lines = $layer->{words} < LINE_WORDS ? 1 : $layer->{words} / LINE_WORDS;
	my $bits = $layer->{words} < LINE_WORDS ? $layer->{words} * 64 : LINE_BITS;

	for my $group (1 .. $layer->{groups})
	{
		my $group_hash = mix64(add64($hash, (multiply64($group, 0x9E3779B97F4A7C15))[1]));
		my $line = (multiply64($group_hash, $lines))[0];
		my $x = $group_hash & MASK32;

		for (1 .. $layer->{probes})
		{
			# vec counts bits from the lowest bit of the first byte, like the format
			return 0 unless vec $layer->{lines}, $line * LINE_BITS + ($x * $bits >> 32), 1;
			$x = $x * 0x9E3779B9 & MASK32;
		}
	}
	return 1;
}

# Is the number in the table?  Looks it up as the format specifies, without the
# result of table_numbers.
sub table_contains
{
	my ($layer, $number) = @_;
	my $fingerprint = $number & (1 << $layer->{slot_bits} - 1) - 1;
	my $bucket = $number >> $layer->{slot_bits} - 1;
	my $alternate = ($bucket + distance($layer, $fingerprint)) % $layer->{buckets};

	for my $i (0 .. BUCKET_SLOTS - 1)
	{
		return 1 if $fingerprint > 0 && slot($layer, BUCKET_SLOTS * $bucket + $i) == 2 * $fingerprint;
		return 1 if slot($layer, BUCKET_SLOTS * $alternate + $i) == 2 * $fingerprint + 1;
	}
	return 0;
}

# The number of copies of the key with this (unsigned) hash in a cuckoo filter.
sub copies
{
	my ($filter, $hash) = @_;
	my $layer = $filter->{layers}[0];

	die "bloom filters do not count keys\n" if !$filter->{cuckoo};
	my $number = $layer->{buckets} == 0 ? $hash : (multiply64($hash, $layer->{range}))[0];
	my $copies = $layer->{copies}{$number} || 0;

	$copies++ if $layer->{form} == TABLE && table_contains($layer, $number);
	return $copies;
}

# May the key with this (unsigned) hash be present?
sub contains
{
	my ($filter, $hash) = @_;

	return copies($filter, $hash) > 0 if $filter->{cuckoo};
	for my $layer (@{ $filter->{layers} })
	{
		return 1 if $layer->{form} == LIST ? $layer->{hashes}{$hash} : lines_contain($layer, $hash);
	}
	return 0;
}

# Is this an aggregate state, which is not a filter yet?
sub is_unfinished
{
	my ($layer) = @_;

	return $layer->{capacity} == 0 || !($layer->{words} || $layer->{buckets});
}

sub describe
{
	my ($filter) = @_;
	my $class = defined $filter->{name} ? $filter->{name} : $CLASSES[ $filter->{class} ];
	my $text = sprintf '%s class="%s" scheme=%s fpp=%.15g growth=%d max_layers=%d bytes=%d layers=%d',
	  $filter->{cuckoo} ? 'cuckoo' : 'bloom',
	  $class, $SCHEMES[ $filter->{scheme} ], @{$filter}{qw(fpp growth max_layers bytes)},
	  scalar @{ $filter->{layers} };

	for my $layer (@{ $filter->{layers} })
	{
		if ($filter->{cuckoo})
		{
			$text .= sprintf ' [%s buckets=%d slot_bits=%d capacity=%s used=%s listed=%d]',
			  $layer->{form} == TABLE ? 'table' : 'list',
			  @{$layer}{qw(buckets slot_bits)},
			  is_unfinished($layer) ? 'unfinished' : $layer->{capacity},
			  $layer->{form} == TABLE ? $layer->{used} : '-',
			  $layer->{listed};
			next;
		}
		$text .= sprintf ' [%s words=%d groups=%d probes=%d capacity=%s count=%s]',
		  $layer->{form} == LIST ? 'list' : 'lines',
		  @{$layer}{qw(words groups probes)},
		  is_unfinished($layer) ? 'unfinished' : $layer->{capacity},
		  $layer->{form} == LIST ? $layer->{count} : '-';
	}
	return $text;
}

# ------------------------------------------------------------------

sub main
{
	my ($mode) = @_;
	my ($last, $filter) = ('');

	$mode = '' if !defined $mode;
	die "usage: reader.pl [--describe | --count]\n" if @_ > 1 || $mode !~ /\A(?:--describe|--count|)\z/;
	while (my $row = <STDIN>)
	{
		chomp $row;
		eval {
			if ($mode eq '--describe')
			{
				print describe(read_filter(from_base64($row))), "\n";
				return 1;
			}
			my ($text, $hash) = $row =~ /\A([^\t]*)\t(-?[0-9]+)\z/
			  or die "expected a filter, a tab and a number\n";

			die "hash $hash is not a bigint\n" if $hash ne sprintf '%d', $hash;
			$filter = read_filter(from_base64($text)) if $text ne $last;
			$last = $text;
			$hash &= 0xFFFFFFFFFFFFFFFF;
			die "filter is unfinished\n" if is_unfinished($filter->{layers}[0]);
			print $mode eq '--count' ? copies($filter, $hash) : contains($filter, $hash) ? 't' : 'f', "\n";
			1;
		} or die "line $.: $@";
	}
	return 0;
}

exit main(@ARGV) unless caller;
1;
