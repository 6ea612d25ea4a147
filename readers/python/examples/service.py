"""Serves GET /users/ID from a table.  For absent keys it returns 404 from memory.

The table, and a trigger that sends notifications of new keys (see README.md):

    CREATE TABLE users (id bigint PRIMARY KEY, email text NOT NULL);
    CREATE FUNCTION users_added() RETURNS trigger LANGUAGE plpgsql AS
      $$BEGIN PERFORM pg_notify('users_added', NEW.id::text); RETURN NULL; END$$;
    CREATE TRIGGER users_added AFTER INSERT OR UPDATE OF id ON users
      FOR EACH ROW EXECUTE FUNCTION users_added();

    PGHOST=... PGDATABASE=... python3 service.py [PORT]

Listens on the loopback interface only.  Port 0, the default, selects a free port.
"""

import re
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

from pgbloomfilter.psycopg import register

MANY = 10000  # new keys after which the filter is rebuilt


class Keys:
    """Which keys may exist, to the knowledge of this process."""

    def __init__(self):
        self.filter = None  # None: unknown, so every key may exist
        self.recent = set()  # keys added after the filter was built

    def may_exist(self, key):
        # read each once, in this order: a refresh sets the filter before it removes keys
        recent, current = key in self.recent, self.filter
        return recent or current is None or current.contains(key, "bigint")

    def keep_fresh(self):
        """Listen first, then export: every key is in the export or causes a notification.

        Without a connection, new keys go unnoticed, so there is no filter then.
        """
        while True:
            try:
                with psycopg.connect(autocommit=True, application_name="users filter") as connection:
                    register(connection)
                    connection.add_notify_handler(self.added)  # notifications that arrive during a query
                    connection.execute("LISTEN users_added")
                    while True:
                        self.refresh(connection)
                        for notify in connection.notifies():
                            self.added(notify)
                            if len(self.recent) >= MANY:
                                break
            except psycopg.Error as error:
                print(f"users filter: {error}", file=sys.stderr)
            self.filter = None
            time.sleep(0.2)

    def added(self, notify):
        self.recent.add(int(notify.payload))

    def refresh(self, connection):
        """Get a new filter, which contains all keys notified before the query."""
        before = set(self.recent)
        self.filter = connection.execute("SELECT bloom_agg(id) FROM users", binary=True).fetchone()[0]
        self.recent -= before


class Lookup:
    """One connection, opened on demand."""

    def __init__(self):
        self.connection = None
        self.lock = threading.Lock()

    def name_of(self, key):
        with self.lock:
            try:
                if self.connection is None:
                    self.connection = psycopg.connect(autocommit=True, application_name="users lookup")
                return self.connection.execute("SELECT email FROM users WHERE id = %s", (key,)).fetchone()
            except psycopg.Error:
                self.connection = None
                raise


keys = Keys()
lookup = Lookup()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one write per response

    def do_GET(self):
        path = re.fullmatch(r"/users/(-?[0-9]{1,19})", self.path)
        key = int(path[1]) if path else 0
        if path is None or not -(2**63) <= key < 2**63:
            return self.reply(400, "GET /users/ID", "nobody")
        if not keys.may_exist(key):
            return self.reply(404, "no such user", "filter")
        try:
            row = lookup.name_of(key)
        except psycopg.Error as error:
            print(error, file=sys.stderr)
            return self.reply(503, "", "nobody")
        return self.reply(200, row[0], "database") if row else self.reply(404, "no such user", "database")

    def reply(self, status, text, by):
        body = (text + "\n").encode("utf-8")
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Answered-By", by)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def main():
    threading.Thread(target=keys.keep_fresh, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    server.daemon_threads = True
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
