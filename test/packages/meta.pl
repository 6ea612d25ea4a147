#!/usr/bin/perl
# test/packages/meta.pl [META.json]
#
# Validates META.json by the rules of the PGXN Meta Spec 1.0.0 (https://pgxn.org/spec/)
# that apply to a single extension, and checks that the files that it names exist.
# Debian has no validator for it.
use strict;
use warnings;
use JSON::PP;

my $path = $ARGV[0] // 'META.json';
my @faults;
my $semver = qr/^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-?[A-Za-z][0-9A-Za-z-]*)?$/;
my $uri = qr{^[a-z][a-z0-9+.-]*:\S+$}i;
my @licenses = qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2 gfdl_1_3 gpl_1 gpl_2 gpl_3
  lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5 postgresql qpl_1_0 ssleay sun zlib
  open_source restricted unrestricted unknown);

sub fault { push @faults, join ': ', @_ }

# A term: at least two characters, without spaces, slashes, backslashes and control characters.
sub is_term { defined $_[0] && !ref $_[0] && $_[0] =~ m{^[^\s/\\[:cntrl:]]{2,}$} }
sub is_text { defined $_[0] && !ref $_[0] && $_[0] =~ /\S/ }

# Checks that a value is a nonempty string or a list of such strings.
sub check_list
{
	my ($where, $value) = @_;
	my @list = ref $value eq 'ARRAY' ? @$value : ($value);

	fault($where, 'is neither a string nor a list of strings') if !@list || grep { !is_text($_) } @list;
}

# Checks that the keys of a map are among these or begin with x_; those marked with ! are required.
sub check_keys
{
	my ($where, $map, @names) = @_;

	if (ref $map ne 'HASH')
	{
		fault($where, 'is not a map');
		return 0;
	}
	my %known = map { s/!$//r => (/!$/ ? 1 : 0) } @names;
	for my $name (sort keys %known)
	{
		fault($where, "\"$name\" is missing") if $known{$name} && !exists $map->{$name};
	}
	for my $name (sort keys %$map)
	{
		fault($where, "\"$name\" is not in the specification") unless exists $known{$name} || $name =~ /^x_./i;
	}
	return 1;
}

open my $in, '<:raw', $path or die "$path: $!\n";
my $text = do { local $/; <$in> };
my $meta = eval { JSON::PP->new->utf8->decode($text) } or die "$path: not JSON: $@";

check_keys($path, $meta, qw(name! version! abstract! maintainer! license! provides! meta-spec! description
  generated_by tags no_index prereqs release_status resources)) or die "$path: $faults[0]\n";
fault('name', 'is not a term') unless is_term($meta->{name});
fault('version', 'is not a semantic version') unless is_text($meta->{version}) && $meta->{version} =~ $semver;
fault($_, 'is empty') for grep { exists $meta->{$_} && !is_text($meta->{$_}) } qw(abstract description generated_by);
check_list('maintainer', $meta->{maintainer});
check_list('tags', $meta->{tags}) if exists $meta->{tags};
for my $tag (ref $meta->{tags} eq 'ARRAY' ? @{ $meta->{tags} } : ())
{
	fault('tags', "\"$tag\" is longer than 255 characters or has a slash or a control character") if length $tag > 255 || $tag =~ m{[/\\[:cntrl:]]};
}

if (ref $meta->{license} eq 'HASH')
{
	$meta->{license}{$_} =~ $uri or fault('license', "\"$_\" is not a URI") for sort keys %{ $meta->{license} };
}
else
{
	for my $license (ref $meta->{license} eq 'ARRAY' ? @{ $meta->{license} } : $meta->{license})
	{
		fault('license', "\"$license\" is not known") unless grep { $_ eq $license } @licenses;
	}
}

if (check_keys('meta-spec', $meta->{'meta-spec'}, qw(version! url)))
{
	fault('meta-spec', 'the version is not 1.0.0') unless ($meta->{'meta-spec'}{version} // '') eq '1.0.0';
}

fault('provides', 'has no extension') unless ref $meta->{provides} eq 'HASH' && %{ $meta->{provides} };
for my $name (ref $meta->{provides} eq 'HASH' ? sort keys %{ $meta->{provides} } : ())
{
	my $extension = $meta->{provides}{$name};

	fault('provides', "\"$name\" is not a term") unless is_term($name);
	check_keys("provides $name", $extension, qw(file! version! abstract docfile)) or next;
	fault("provides $name", 'the version is not semantic') unless ($extension->{version} // '') =~ $semver;
	for my $file (grep { defined } @$extension{qw(file docfile)})
	{
		fault("provides $name", "there is no file $file") unless -f $file;
	}
}

# Required versions: a version, or ranges such as ">= 1.2.0, < 2.0.0"; 0 means any.
if (exists $meta->{prereqs} && check_keys('prereqs', $meta->{prereqs}, qw(configure build test runtime develop)))
{
	for my $phase (sort grep { !/^x_/i } keys %{ $meta->{prereqs} })
	{
		my $relations = $meta->{prereqs}{$phase};

		check_keys("prereqs $phase", $relations, qw(requires recommends suggests conflicts)) or next;
		for my $relation (sort grep { !/^x_/i } keys %$relations)
		{
			my $wanted = $relations->{$relation};

			for my $name (ref $wanted eq 'HASH' ? sort keys %$wanted : ())
			{
				fault("prereqs $phase $relation", "\"$name\" is not a term") unless is_term($name);
				for my $range (split /\s*,\s*/, $wanted->{$name}, -1)
				{
					fault("prereqs $phase $relation", "\"$range\" is not a range of versions")
						unless $range eq '0' || ($range =~ s/^(?:[<>]=?|[!=]=)\s*//r) =~ $semver;
				}
			}
			fault("prereqs $phase $relation", 'is not a map') unless ref $wanted eq 'HASH';
		}
	}
}
fault('release_status', 'is not stable, testing or unstable')
	if exists $meta->{release_status} && $meta->{release_status} !~ /^(?:stable|testing|unstable)$/;
if (exists $meta->{resources} && check_keys('resources', $meta->{resources}, qw(homepage bugtracker repository)))
{
	fault('resources', 'homepage is not a URI') if exists $meta->{resources}{homepage} && $meta->{resources}{homepage} !~ $uri;
	check_keys('resources bugtracker', $meta->{resources}{bugtracker}, qw(web mailto)) if exists $meta->{resources}{bugtracker};
	check_keys('resources repository', $meta->{resources}{repository}, qw(web url type)) if exists $meta->{resources}{repository};
}

print "$path: $_\n" for @faults;
print "$path: valid for PGXN\n" unless @faults;
exit(@faults > 0);
