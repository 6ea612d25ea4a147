#!/usr/bin/perl
#
# fuzz.pl FOLDER
#		The Perl part of readers/fuzz: compares results and rejections with the server.
#
use strict;
use warnings;
no warnings 'portable';			# 64-bit constants

use Cwd qw(abs_path);
use File::Basename qw(dirname);

require(dirname(abs_path(__FILE__)) . '/reader.pl');

my ($folder) = @ARGV;
my $wrong = 0;

sub complain
{
	print STDERR "perl: @_\n" if $wrong++ < 20;
	return;
}

sub rows
{
	my ($name) = @_;

	open my $file, '<', "$folder/$name.tsv" or die "$folder/$name.tsv: $!\n";
	return sub {
		my $line = <$file>;
		return if !defined $line;
		chomp $line;
		return split /\t/, $line, -1;
	};
}

# the results of the filters of each class
my (%filters, %probes);
my $next = rows('filters');
while (my ($class, $bloom, $cuckoo) = $next->())
{
	$filters{$class} = [ map { read_filter(from_base64($_)) } $bloom, $cuckoo ];
}
my $keys = 0;
$next = rows('keys');
while (my ($class, $type, $key, $hash, $in_bloom, $in_cuckoo) = $next->())
{
	my ($bloom, $cuckoo) = @{ $filters{$class} };

	$hash &= 0xFFFFFFFFFFFFFFFF;
	complain("different result: $type $key") if (contains($bloom, $hash) ? 1 : 0) != $in_bloom;
	complain("different count: $type $key") if copies($cuckoo, $hash) != $in_cuckoo;
	$keys++;
}

# changed filters
$next = rows('probes');
while (my ($class, $type, $key, $hash) = $next->())
{
	push @{ $probes{$class} }, $hash & 0xFFFFFFFFFFFFFFFF;
}
my %verdicts = (read => 0, refused => 0, unfinished => 0);
$next = rows('mutants');
while (my ($text, $verdict, $class, $answers) = $next->())
{
	my $filter = eval { read_filter(from_base64($text)) };

	$verdicts{$verdict}++;
	if (!$filter)
	{
		complain("refused ($@), but $verdict by the server: $text") if $verdict ne 'refused';
		complain("fails with $@: $text") if $@ =~ / at .* line /;
		next;
	}
	my $state = is_unfinished($filter->{layers}[0]) ? 'unfinished' : 'read';
	complain("$state, but $verdict by the server: $text") if $verdict ne $state;
	next if $state ne 'read' || $answers eq '';
	my $mine = join '', map { ($filter->{cuckoo} ? copies($filter, $_) : contains($filter, $_) ? 1 : 0) . ',' } @{ $probes{ $class || 'integer' } };
	complain("results $mine instead of $answers: $text") if $mine ne $answers;
}
printf "perl: %d keys and %d filters (%d read), %d differences\n", $keys, $verdicts{read} + $verdicts{refused} + $verdicts{unfinished}, $verdicts{read}, $wrong;
exit($wrong ? 1 : 0);
