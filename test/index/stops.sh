# test/index/stops.sh NAME PORT
#
# For tests whose server stops at a place that they choose: sourced, inside of ./script/cluster.
# Builds the library once more, with settings that name the place where the server stops and how often
# it passes that before (src/index/teststop.h), and starts a cluster with it.
data=$PGTMP/$1
log=$PGTMP/$1.log
export PGPORT=$2

# The library with the stops takes the place of the other while this test runs.
library=$PGTMP/stage$("$PG_CONFIG" --pkglibdir)/bloomfilter.so
rm -rf "$PGTMP/stops"
cp -pr . "$PGTMP/stops"
grep -l bfindex_test_stop src/*/*.c | (cd "$PGTMP/stops" && xargs touch)
make -s -C "$PGTMP/stops" PG_CONFIG="$PG_CONFIG" EXTRA_CFLAGS=-DBFINDEX_TEST_STOPS bloomfilter.so
cp -p "$library" "$PGTMP/stops/without.so"
clean_up() {
	pg_ctl -D "$data" -m immediate -s stop >/dev/null 2>&1 || true
	mv "$PGTMP/stops/without.so" "$library"
}
trap clean_up EXIT
cp "$PGTMP/stops/bloomfilter.so" "$library.new"
mv "$library.new" "$library"

initdb -D "$data" -U postgres -A trust -N --no-locale -E UTF8 >/dev/null
{
	cat "$PGTMP/stage.conf"
	echo "listen_addresses = ''"
	echo "unix_socket_directories = '$PGTMP'"
	echo "port = $PGPORT"
	echo "fsync = off"
	echo "jit = off"
	echo "autovacuum = off"
	echo "wal_writer_delay = 10s"		# it does not flush what is to be lost
} >>"$data/postgresql.conf"
start() { pg_ctl -D "$data" -l "$log" -w -t 300 -s start; }
crash() { pg_ctl -D "$data" -m immediate -s stop; }
sql() { psql -XAtq -v ON_ERROR_STOP=1 "$@"; }

# stopped_at PLACE PASSES ARGUMENTS: psql with these arguments stops the server at the place
stopped_at() {
	local i
	if sql -c "SET bloomfilter.test_stop = '$1'" -c "SET bloomfilter.test_stop_passes = $2" "${@:3}" >/dev/null 2>&1; then
		echo "the server did not stop: $1"
		return 1
	fi
	for ((i = 0; i < 100; i++)); do
		[ -f "$data/postmaster.pid" ] || return 0
		sleep 0.1
	done
	echo "the server did not stop within 10 seconds: $1"
	return 1
}

# places FILES: those that these source files have
places() { grep -ho 'bfindex_test_stop("[^"]*")' "$@" | cut -d'"' -f2; }
start
