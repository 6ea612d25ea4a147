"""The Python part of readers/bench."""

import itertools
import os
import time

import psycopg

from pgbloomfilter import Filter
from pgbloomfilter.psycopg import register

SECONDS = float(os.environ.get("SECONDS_EACH", 3))


def rate(what, each, ask):
    """Keys per second.  Each call of `ask` tests `each` keys."""
    start, calls = time.perf_counter(), 0
    counter = itertools.count()
    while time.perf_counter() - start < SECONDS:
        for _ in range(max(1, 256 // each)):
            ask(next(counter))
            calls += 1
    print(f"python\t{what}\t{calls * each / (time.perf_counter() - start):.0f} per second")


def key(n):
    return n * 7919 % 2000000 + 1


connection = psycopg.connect(autocommit=True)
cursor = connection.execute("SELECT * FROM filters")
for column, text in zip(cursor.description, cursor.fetchone()):
    start = time.perf_counter()
    Filter.parse(text)
    print(f"python\tread {column.name} ({len(text) * 3 // 4 // 1024} kB) from text\t{(time.perf_counter() - start) * 1000:.1f} ms")
register(connection)
bloom_of_id, bloom_of_email, cuckoo_of_id = connection.execute("SELECT * FROM filters", binary=True).fetchone()
rate("bloom, integer: contains", 1, lambda n: bloom_of_id.contains(key(n)))
rate("bloom, text: contains", 1, lambda n: bloom_of_email.contains(f"user{key(n)}@example.org"))
rate("cuckoo, integer: contains", 1, lambda n: cuckoo_of_id.contains(key(n)))
many = [key(n) for n in range(10000)]
rate("bloom, integer: contains_many of 10000", 10000, lambda n: bloom_of_id.contains_many(many))
rate("cuckoo, integer: contains_many of 10000", 10000, lambda n: cuckoo_of_id.contains_many(many))
rate("one query per key", 1, lambda n: connection.execute("SELECT 1 FROM users WHERE id = %s", (key(n),), prepare=True).fetchone())
connection.close()
