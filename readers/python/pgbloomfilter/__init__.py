"""Test filters of the PostgreSQL extension bloomfilter for keys.

    >>> from pgbloomfilter import Filter
    >>> filter = Filter.parse("QkYBAQEBAgB7FK5H4XqEPwEAAAABAAAAAAAYAgoABAAFYAgA")
    >>> filter.contains(1), filter.contains(2)
    (True, False)

Written from docs/FORMAT.md.  A filter is validated completely when it is parsed, so that no
later call can read outside of it.  False must mean that the server would return false too,
so a key that may differ from the one on the server is a FilterError.

With numpy, contains_many tests all keys together, and large cuckoo filters are validated
about fifty times as fast.
"""

from .keys import bloom_hash
from .reader import Filter, FilterError, Stats

__all__ = ["Filter", "FilterError", "Stats", "bloom_hash"]
