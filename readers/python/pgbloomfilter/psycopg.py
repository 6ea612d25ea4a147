"""Filters as values of psycopg (version 3): SELECT returns Filter objects.

    with psycopg.connect() as connection:
        register(connection)
        filter = connection.execute("SELECT bloom_agg(id) FROM users").fetchone()[0]

The types bloom and cuckoo have no fixed OID, so the server is asked for them once.
"""

from typing import Any, List, Optional, Type

from psycopg import AsyncConnection, Connection
from psycopg.abc import AdaptContext, Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from .reader import Filter

__all__ = ["register", "register_async"]

# the types of the extension, in whatever schema it is, and no others of that name
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
        raise LookupError("the extension bloomfilter is not in this database")
    for (oid,) in rows:
        for loader in loaders:
            context.adapters.register_loader(int(oid), loader)


def register(connection: "Connection[Any]", context: Optional[AdaptContext] = None) -> None:
    """Let `context` turn columns of type bloom and cuckoo into Filter objects.

    The context is the connection itself by default; a cursor; or the module psycopg: that is every
    connection made from then on.  Can be the `configure` of a ConnectionPool.
    """
    with connection.transaction():  # leaves none open that was not
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
    """Rows as tuples, whatever the connection makes of them."""
    return tuple
