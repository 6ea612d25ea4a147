#!/usr/bin/perl
#
# vectors.pl
#		Tests reader.pl with readers/vectors.json, which the server produced.
#
# The reader does not hash keys, so it is tested with their hashes.
#
use strict;
use warnings;
no warnings 'portable';			# 64-bit constants

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP qw(decode_json);

my $here = dirname(abs_path(__FILE__));
require "$here/reader.pl";

open my $file, '<:raw', "$here/../vectors.json" or die "$here/../vectors.json: $!\n";
my $vectors = do { local $/; decode_json(<$file>) };
my ($probes, $refused) = (0, 0);

for my $vector (@{ $vectors->{filters} }, @{ $vectors->{other} })
{
	my $filter = read_filter(from_base64($vector->{text}));
	my $stats = $vector->{stats};

	die "$vector->{name}: kind\n" if $filter->{cuckoo} != ($vector->{kind} eq 'cuckoo');
	die "$vector->{name}: layers\n" if @{ $filter->{layers} } != $stats->{layers};
	die "$vector->{name}: size\n" if $filter->{bytes} + 4 != $stats->{bytes};
	for my $probe (@{ $vector->{probes} })
	{
		my ($type, $key, $hash, $answer) = @$probe;
		$hash &= 0xFFFFFFFFFFFFFFFF;
		my $found = $filter->{cuckoo} ? copies($filter, $hash) : contains($filter, $hash) ? 1 : 0;

		die "$vector->{kind} \"$vector->{name}\": $type $key: $found\n" if $found != ($answer ? $answer + 0 : 0);
		$probes++;
	}
}
for my $vector (@{ $vectors->{unfinished} })
{
	my $filter = read_filter(from_base64($vector->[1]));
	die "$vector->[0] is not unfinished\n" if !is_unfinished($filter->{layers}[0]);
	$refused++;
}
for my $vector ((map { [ $_->[0], $_->[2] ] } @{ $vectors->{refused} }), @{ $vectors->{not_base64} })
{
	utf8::encode($vector->[1]);
	die "accepted: $vector->[0]\n" if eval { read_filter(from_base64($vector->[1])) };
	die "$vector->[0]: $@" if $@ !~ /\A[^\n]{5,}\n\z/ || $@ =~ / at .* line /;
	$refused++;
}
die "too few vectors\n" if $probes < 2000 || $refused < 200;
print "$probes probes, same results; $refused values refused\n";
