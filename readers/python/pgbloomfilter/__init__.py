"""Ask filters of the PostgreSQL extension bloomfilter.

    >>> from pgbloomfilter import Filter
    >>> filter = Filter.parse("QkYBAQEBAgB7FK5H4XqEPwEAAAABAAAAAAAYAgoABAAFYAgA")
    >>> filter.contains(1), filter.contains(2)
    (True, False)

Written from docs/FORMAT.md.  A filter is checked completely when it is parsed, so that no
later question can read outside of it.  Everything errs on the side of refusing: False must
mean that the server would say false too, so a key that may not be what the server has
is a FilterError and not an answer.

With numpy, contains_many asks for all keys at once, and large cuckoo filters are checked
some fifty times as fast.
"""

from .keys import bloom_hash
from .reader import Filter, FilterError, Stats

__all__ = ["Filter", "FilterError", "Stats", "bloom_hash"]
