"""Filters in psycopg 3: SELECT returns Filter objects.

    with psycopg.connect() as connection:
        register(connection)
        filter = connection.execute("SELECT bloom_agg(id) FROM users").fetchone()[0]

The types bloom and cuckoo have no fixed OIDs, so they are looked up once.
"""

from typing import Any, List, Optional, Type

from psycopg import AsyncConnection, Connection
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from .reader import Filter

__all__ = ["register", "register_async"]

# the types of the extension, in any schema, and no others of the same names
_QUERY = """
    SELECT t.oid::bigint
    FROM pg_catalog.pg_extension e
         JOIN pg_catalog.pg_depend d
           ON d.refclassid = 'pg_catalog.pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
         JOIN pg_catalog.pg_type t ON d.classid = 'pg_catalog.pg_type'::regclass AND d.objid = t.oid
    WHERE e.extname = 'bloomfilter' AND t.typname IN ('bloom', 'cuckoo')
"""


class _TextLoader(Loader):
    def load(self, data: Buffer) -> Filter:
        return Filter.parse(bytes(data).decode("ascii"))


class _BinaryLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> Filter:
        return Filter.parse(data)


def _register(rows: List[Any], context: AdaptContext) -> None:
    loaders: List[Type[Loader]] = [_TextLoader, _BinaryLoader]
    if len(rows) != 2:
        raise LookupError("the extension bloomfilter is not installed in this database")
    for (oid,) in rows:
        for loader in loaders:
            context.adapters.register_loader(int(oid), loader)


def register(connection: "Connection[Any]", context: Optional[AdaptContext] = None) -> None:
    """Register loaders that turn columns of type bloom and cuckoo into Filter objects.

    `context` is the connection (the default), a cursor, or the module psycopg for all connections
    opened afterwards.  This function can be the `configure` argument of a ConnectionPool.
    """
    with connection.transaction():  # does not leave a transaction open
        with connection.cursor(row_factory=_tuples) as cursor:
            rows = cursor.execute(_QUERY).fetchall()
    _register(rows, context or connection)


async def register_async(connection: "AsyncConnection[Any]", context: Optional[AdaptContext] = None) -> None:
    """The same for an AsyncConnection."""
    async with connection.transaction():
        async with connection.cursor(row_factory=_tuples) as cursor:
            rows = await (await cursor.execute(_QUERY)).fetchall()
    _register(rows, context or connection)


def _tuples(cursor: Any) -> Any:
    """Rows as tuples, independent of the row factory of the connection."""
    return tuple
