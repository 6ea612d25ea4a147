#!/usr/bin/perl
#
# test_service.pl COMMAND...
#		Start an example service, send requests to it, and stop it.
#
# Present keys must be found, including keys added later.  Absent keys must be answered
# without a query, except for the filter's false positives; queries are counted in the
# server log.  While the service has lost the connection that notifies it of new keys, it
# must query the database for every key.
#
use strict;
use warnings;

use HTTP::Tiny;
use IPC::Open3 ();
use Time::HiRes qw(sleep time);

my $database = "service_$$";
my $log = "$ENV{PGTMP}/log";
my $messages = "$ENV{PGTMP}/service.messages";
my $process;

sub sql
{
	my ($text, $in) = @_;

	open my $psql, '-|', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $in // $database, '-c', $text or die "psql: $!\n";
	my $result = do { local $/; <$psql> };
	close $psql or die "psql failed: $text\n";
	chomp $result;
	return $result;
}

sub eventually
{
	my ($what, $test) = @_;
	my $until = time + 30;

	while (!$test->())
	{
		die "not within 30 seconds: $what\n" if time > $until;
		sleep 0.05;
	}
	return;
}

# number of lookups in the server log so far
sub lookups
{
	open my $file, '<', $log or die "$log: $!\n";
	return scalar grep { /\Q$database\E lookup: .*SELECT email FROM users WHERE id = / } <$file>;
}

sub cleanup
{
	if ($process)
	{
		kill TERM => $process;
		eval { local $SIG{ALRM} = sub { die "late\n" }; alarm 10; waitpid $process, 0; alarm 0; 1 } or do { kill KILL => $process; waitpid $process, 0 };
	}
	system 'psql', '-Xq', '-d', 'postgres', '-c', "DROP DATABASE IF EXISTS $database WITH (FORCE)";
	return;
}
$SIG{INT} = $SIG{TERM} = sub { cleanup(); exit 1 };

sub main
{
	sql("CREATE DATABASE $database", 'postgres');
	sql("ALTER DATABASE $database SET log_statement = 'all'", 'postgres');
	sql("ALTER DATABASE $database SET log_min_error_statement = 'panic'", 'postgres');
	sql("CREATE EXTENSION bloomfilter;
		CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL);
		INSERT INTO users SELECT n * 7, 'user ' || n FROM generate_series(1, 2000) n;
		CREATE FUNCTION users_added() RETURNS trigger LANGUAGE plpgsql AS
		  \$\$BEGIN PERFORM pg_notify('users_added', NEW.id::text); RETURN NULL; END\$\$;
		CREATE TRIGGER users_added AFTER INSERT OR UPDATE OF id ON users
		  FOR EACH ROW EXECUTE FUNCTION users_added()");
	# mark the lookups in the log
	sql("ALTER SYSTEM SET log_line_prefix = '%d lookup: '", 'postgres');
	sql('SELECT pg_reload_conf()', 'postgres');

	# it reports the connection that it loses, which is shown only if the test fails
	open my $errors, '>', $messages or die "$messages: $!\n";
	$process = IPC::Open3::open3(my $in, my $out, '>&' . fileno($errors), 'env', "PGDATABASE=$database", @ARGV);
	my ($port) = (<$out> // '') =~ /\Alistening on 127\.0\.0\.1:([0-9]+)$/ or die "the service did not start\n";
	my $http = HTTP::Tiny->new(timeout => 20);
	my $get = sub {
		my $response = $http->get("http://127.0.0.1:$port/users/$_[0]");
		my $text = $response->{content};
		chomp $text;
		return ($response->{status}, $response->{headers}{'x-answered-by'} // '', $text);
	};
	my $by_filter = sub { ($get->(-1))[1] eq 'filter' };
	eventually('the filter is loaded', $by_filter);

	# present keys
	my $before = lookups();
	for my $n (1 .. 100, 1990 .. 2000)
	{
		my ($status, $by, $text) = $get->($n * 7);
		die "user $n: $status $text\n" if $status != 200 || $text ne "user $n" || $by ne 'database';
	}
	die "lookups are not in the log\n" if lookups() != $before + 111;

	# absent keys
	my $reached = 0;
	$before = lookups();
	for my $n (1 .. 1000)
	{
		my ($status, $by) = $get->($n * 7 + 3);
		die "absent key $n: $status\n" if $status != 404;
		$reached++ if $by ne 'filter';
	}
	die "$reached of 1000 absent keys were looked up\n" if $reached > 30;
	die "the log does not have $reached lookups\n" if lookups() != $before + $reached;
	print "1000 absent keys, $reached of them looked up\n";

	# invalid keys
	for my $path ('', 'x', '1x', '1.5', '99999999999999999999', '9223372036854775808')
	{
		my ($status) = $get->($path);
		die "GET /users/$path: $status\n" if $status != 400;
	}
	die "invalid keys were looked up\n" if lookups() != $before + $reached;

	# added, changed and deleted keys
	sql("INSERT INTO users VALUES (-5, 'late')");
	eventually('a new key is found', sub { ($get->(-5))[0] == 200 });
	sql('UPDATE users SET id = -6 WHERE id = -5');
	eventually('a changed key is found', sub { ($get->(-6))[0] == 200 });
	die "the old value of a changed key is still found\n" if ($get->(-5))[0] != 404;
	sql('DELETE FROM users WHERE id = 7');
	my ($status, $by) = $get->(7);
	die "deleted key: $status $by\n" if $status != 404 || $by ne 'database';

	# more new keys than the service keeps outside the filter
	sql("INSERT INTO users SELECT 1000000 + n, 'many' FROM generate_series(1, 25000) n");
	eventually('many new keys are found', sub { ($get->(1025000))[0] == 200 });
	for my $n (map { 1000000 + 97 * $_ } 1 .. 250)
	{
		die "new user $n is not found\n" if ($get->($n))[0] != 200;
	}

	# lost connection: the filter is not used, and no key is missed
	sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'users filter';
		INSERT INTO users VALUES (-7, 'unheard')");
	eventually('a key added meanwhile is found', sub { ($get->(-7))[0] == 200 });
	eventually('the filter is used again', $by_filter);
	die "a key added meanwhile is missed\n" if ($get->(-7))[0] != 200;

	# stop
	kill TERM => $process;
	eventually('the service stops', sub { waitpid($process, 1) == $process });
	die "the service exits with status $?\n" if $? != 0;
	$process = undef;
	print "added, changed and deleted keys, lost connection: correct results\n";
	return;
}

my $well = eval { main(); 1 };
my $error = $@;
system 'psql', '-Xq', '-d', 'postgres', '-c', 'ALTER SYSTEM RESET log_line_prefix', '-c', 'SELECT pg_reload_conf()', '-o', '/dev/null';
cleanup();
if (!$well)
{
	system 'cat', $messages if -e $messages;
	die $error;
}
