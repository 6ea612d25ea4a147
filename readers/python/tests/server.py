"""psycopg returns filters as objects, in the text and binary protocols.  Needs a server (PGHOST and so on)."""

import asyncio
import subprocess
import sys
import unittest

import psycopg
from psycopg.rows import dict_row, tuple_row

from pgbloomfilter import Filter, FilterError
from pgbloomfilter.psycopg import register, register_async

QUERY = """
    SELECT bloom_agg(n) AS bloom, cuckoo_agg('user ' || n) AS cuckoo, NULL::bloom AS nothing, bloom_agg(n)::bytea AS data
    FROM generate_series(1, 3000) n
"""


class Server(unittest.TestCase):
    def check(self, row):
        bloom, cuckoo, nothing, data = row
        self.assertIsInstance(bloom, Filter)
        self.assertIsInstance(cuckoo, Filter)
        self.assertEqual((bloom.kind, bloom.key_class, 1 in bloom, 3000 in bloom, -1 in bloom), ("bloom", "integer", True, True, False))
        self.assertEqual((cuckoo.kind, cuckoo.key_class, cuckoo.count("user 7"), "nobody" in cuckoo), ("cuckoo", "text", 1, False))
        self.assertIsNone(nothing)
        self.assertTrue(Filter.parse(data).contains(1))

    def test_text_and_binary(self):
        with psycopg.connect(row_factory=tuple_row) as connection:
            register(connection)
            self.assertEqual(connection.info.transaction_status, psycopg.pq.TransactionStatus.IDLE)
            self.check(connection.execute(QUERY).fetchone())
            self.check(connection.execute(QUERY, binary=True).fetchone())
            register(connection)  # in a transaction, which stays open
            self.assertEqual(connection.info.transaction_status, psycopg.pq.TransactionStatus.INTRANS)

    def test_another_row_factory(self):
        with psycopg.connect(row_factory=dict_row) as connection:
            register(connection)
            self.check(connection.execute(QUERY).fetchone().values())

    def test_one_cursor_and_all_connections(self):
        with psycopg.connect() as connection, connection.cursor() as cursor:
            register(connection, cursor)
            self.check(cursor.execute(QUERY).fetchone())
            self.assertIsInstance(connection.execute(QUERY).fetchone()[0], str)
        # in a separate process, because this cannot be undone
        program = """
import psycopg
from pgbloomfilter.psycopg import register
with psycopg.connect() as connection:
    register(connection, psycopg)
with psycopg.connect() as connection:
    print(connection.execute("SELECT bloom_agg(1)").fetchone()[0].contains(1))
"""
        self.assertEqual(subprocess.check_output([sys.executable, "-c", program], text=True), "True\n")

    def test_async(self):
        async def run():
            async with await psycopg.AsyncConnection.connect() as connection:
                await register_async(connection)
                self.check(await (await connection.execute(QUERY, binary=True)).fetchone())

        asyncio.run(run())

    def test_a_schema_that_is_not_in_the_search_path(self):
        with psycopg.connect() as connection:
            connection.execute("CREATE SCHEMA elsewhere2")
            connection.execute("ALTER EXTENSION bloomfilter SET SCHEMA elsewhere2")
            register(connection)
            connection.execute("SET LOCAL search_path = public, elsewhere2")
            self.check(connection.execute(QUERY).fetchone())
            connection.rollback()

    def test_a_state_of_an_aggregate(self):
        with psycopg.connect() as connection:
            register(connection)
            connection.execute("CREATE AGGREGATE python_state(int) (SFUNC = _bloom_agg_transition, STYPE = bloom)")
            with self.assertRaisesRegex(FilterError, "unfinished"):
                connection.execute("SELECT python_state(n) FROM generate_series(1, 5) n").fetchone()
            connection.rollback()

    def test_a_database_without_the_extension(self):
        with psycopg.connect(dbname="template1") as connection:
            with self.assertRaisesRegex(LookupError, "not installed in this database"):
                register(connection)

    def test_100000_keys(self):
        with psycopg.connect() as connection:
            register(connection)
            filter, answers = connection.execute(
                """WITH f AS (SELECT cuckoo_agg(n * 3) AS filter FROM generate_series(1, 20000) n)
                SELECT filter, cuckoo_contains_each(filter, ARRAY(SELECT generate_series(1, 100000))) FROM f"""
            ).fetchone()
            self.assertEqual(filter.contains_many(range(1, 100001)), answers)
