#!/usr/bin/perl
#
# test_readme.pl README.md LANGUAGE COMMAND...
#		Run the examples of a reader's README.
#
# All ```sql blocks are run in a fresh database with the extension.  Then all blocks of
# LANGUAGE are passed to COMMAND as one program.  Its output must match the ```text blocks.
#
use strict;
use warnings;

my ($path, $language, @command) = @ARGV;
my ($block, $sql, $program, $expected) = ('', '', '', '');
my $database = "readme_$$";

open my $file, '<:utf8', $path or die "$path: $!\n";
while (my $line = <$file>)
{
	if ($line =~ /^```(\w*)$/)
	{
		$block = $block eq '' ? $1 || 'other' : '';
		next;
	}
	$sql .= $line if $block eq 'sql';
	$program .= $line if $block eq $language;
	$expected .= $line if $block eq 'text';
}
die "$path has no examples\n" if $sql eq '' || $program eq '' || $expected eq '';

sub run
{
	my ($input, @with) = @_;
	my $name = "$ENV{PGTMP}/readme";

	open my $in, '>:utf8', "$name.in" or die "$name.in: $!\n";
	print $in $input;
	close $in;
	my $pid = fork // die "fork: $!\n";
	if ($pid == 0)
	{
		$ENV{PGDATABASE} = $database;
		open STDIN, '<', "$name.in" or die;
		open STDOUT, '>', "$name.out" or die;
		exec @with or die "$with[0]: $!\n";
	}
	waitpid $pid, 0;
	die "$path: @with failed\n" if $? != 0;
	open my $out, '<:utf8', "$name.out" or die "$name.out: $!\n";
	return do { local $/; <$out> };
}

system('createdb', $database) == 0 or exit 1;
my $well = eval {
	run("CREATE EXTENSION bloomfilter;\n$sql", 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1');
	my $printed = run($program, @command);
	die "$path: the examples print\n${printed}instead of\n$expected" if $printed ne $expected;
	1;
};
my $error = $@;
system 'dropdb', $database;
die $error if !$well;
print "$path: examples pass\n";
