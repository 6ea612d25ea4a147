#!/usr/bin/perl
# test/docs/examples.pl [--accept] [--citus] FILE.md...
#
# Runs the examples of the documentation.  Every block marked ```sql is executed; psql
# must print the ```text block that follows it immediately, if any.  The blocks of a file
# run in order, in one session and in a new database with the extension.  A block without
# a ```text block must not raise an error.
#
# Blocks marked ```sql citus are skipped.  With --citus only they are run, in the current
# database; see test/format/citus.
#
# Every function for users must occur in an example of the reference or of docs/sets.md.
#
# --accept writes the output of psql into the files instead of reporting differences:
# review the changes before you commit them.
use strict;
use warnings;

my $failures = 0;
my $accept = @ARGV && $ARGV[0] eq '--accept' ? shift @ARGV : undef;
my $citus = @ARGV && $ARGV[0] eq '--citus' ? shift @ARGV : undef;

sub psql
{
	my ($database, $script) = @_;
	my $file = "$ENV{PGTMP}/docs.sql";

	open my $out, '>', $file or die "$file: $!";
	print $out $script;
	close $out;
	my $output = `psql -X -q -d $database -f $file 2>&1`;
	$output =~ s/^psql:\Q$file\E:\d+: //mg;
	$output =~ s/\Q$ENV{PGTMP}\E(:| port=)\d+/worker${1}5432/g;	# which worker it is may vary
	return $output;
}

sub tidy
{
	my ($text) = @_;

	$text =~ s/[ \t]+$//mg;
	$text =~ s/\A\n+//;
	$text =~ s/\n+\z/\n/;
	return $text;
}

sub check_file
{
	my ($path) = @_;
	my (@blocks, @lines, $language, $body, $blank_only);

	open my $in, '<', $path or die "$path: $!";
	while (my $line = <$in>)
	{
		push @lines, $line;
		if (!defined $language && $line =~ /^```(\w+(?: citus)?)\s*$/)
		{
			($language, $body) = ($1, '');
		}
		elsif (defined $language && $line =~ /^```\s*$/)
		{
			if ($language eq ($citus ? 'sql citus' : 'sql'))
			{
				push @blocks, { line => $. + 1, sql => $body };
				$blank_only = 1;
			}
			elsif ($language eq 'text' && $blank_only)
			{
				$blocks[-1]{expected} = $body;
				$blank_only = 0;
			}
			else
			{
				$blank_only = 0;
			}
			undef $language;
		}
		elsif (defined $language)
		{
			$body .= $line;
		}
		elsif ($line =~ /\S/)
		{
			$blank_only = 0;
		}
	}
	close $in;
	return '' unless @blocks;

	my $database = $citus ? $ENV{PGDATABASE} : 'docs';
	psql('postgres', "DROP DATABASE IF EXISTS docs;\nCREATE DATABASE docs;\n") unless $citus;
	psql($database, "CREATE EXTENSION bloomfilter;\n") unless $blocks[0]{sql} =~ /CREATE EXTENSION/;
	my $output = psql($database, join('', map { "\\echo \@\@block\n$_->{sql}\n" } @blocks));
	my @outputs = split /^\@\@block\n/m, $output;
	shift @outputs;

	for my $i (0 .. $#blocks)
	{
		my $block = $blocks[$i];
		my $got = tidy($outputs[$i] // '');
		my $fine = defined $block->{expected} ? $got eq tidy($block->{expected}) : $got !~ /^ERROR/m;

		# an example may show an error, but never a mistake in its SQL
		$fine = 0 if $got =~ /^ERROR:.*(?:syntax error|does not exist|is ambiguous)/m;
		next if $fine;
		if ($accept && $got !~ /^ERROR:.*(?:syntax error|does not exist|is ambiguous)/m && defined $block->{expected})
		{
			my $text = join '', @lines;
			my $shown = ($citus ? "```sql citus" : "```sql") . "\n$block->{sql}```\n```text\n";
			my $place = index $text, "$shown$block->{expected}```";

			substr($text, $place + length $shown, length $block->{expected}) = $got;
			@lines = $text;
			next;
		}
		$failures++;
		print "$path: the example before line $block->{line} prints\n$got";
		print "instead of\n", tidy($block->{expected}) if defined $block->{expected};
	}
	if ($accept)
	{
		open my $out, '>', $path or die "$path: $!";
		print $out @lines;
		close $out;
	}
	printf "%s: %d examples\n", $path, scalar @blocks;
	return join '', map { $_->{sql} } @blocks;
}

my $reference = '';
for my $path (@ARGV)
{
	my $sql = check_file($path);
	$reference .= $sql if $path =~ /reference|sets/;
}

exit($failures > 0) if $citus || !grep { /reference/ } @ARGV;

# exclude functions that only the server calls
my $names = `psql -XAt -d docs -c "
  SELECT DISTINCT proname FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
    AND proname !~ '^_' ORDER BY 1"`;
for my $name (split /\n/, $names)
{
	next if $reference =~ /\b\Q$name\E\(/;
	$failures++;
	print "docs/reference.md has no example of $name\n";
}
exit($failures > 0);
