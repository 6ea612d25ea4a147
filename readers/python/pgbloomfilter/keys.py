"""Keys: from a Python value to its 64-bit hash on the server."""

import datetime
import re
import struct
import uuid
from numbers import Integral
from typing import Any, Callable, Dict, Optional

from xxhash import xxh3_64_intdigest

from .errors import FilterError

# SQL types whose keys can be hashed here, with their key classes
TYPES = {
    "smallint": "integer", "int2": "integer", "integer": "integer", "int": "integer", "int4": "integer",
    "bigint": "integer", "int8": "integer",
    "text": "text", "varchar": "text", "character varying": "text", "char": "text", "character": "text",
    "bpchar": "text", "name": "text", '"char"': "text",
    "uuid": "uuid", "bytea": "bytea", "boolean": "boolean", "bool": "boolean",
    "real": "float", "float4": "float", "float": "float", "double precision": "float", "float8": "float",
    "date": "date", "timestamp": "timestamp", "timestamp without time zone": "timestamp",
    "timestamptz": "timestamptz", "timestamp with time zone": "timestamptz",
}  # fmt: skip

_INT64 = struct.Struct("<q")
_FLOAT64 = struct.Struct("<d")
_FLOAT32 = struct.Struct("<f")
_NAN = bytes.fromhex("000000000000f87f")
_DAY = 86400 * 1000000

# as the server reads it: optional hyphens after any four digits, optional braces
_UUID_DIGITS = r"(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}"
_UUID = re.compile(rf"\{{{_UUID_DIGITS}\}}|{_UUID_DIGITS}")
_DATE_PART = r"([0-9]{4}|[1-9][0-9]{4,6})-([0-9]{2})-([0-9]{2})"
_DATE = re.compile(_DATE_PART + r"( BC)?")
_TIMESTAMP = re.compile(
    _DATE_PART + r"[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6})0*)?)?"
    r"(Z|[+-][0-9]{2}(?::[0-9]{2}(?::[0-9]{2})?)?)?( BC)?"
)


def _what(key: Any) -> str:
    return f"{type(key).__module__}.{type(key).__qualname__}".replace("builtins.", "")


def _integer(key: Any, sql_type: Optional[str]) -> bytes:
    # accepts the integers of numpy; True is not 1
    if not isinstance(key, Integral) or isinstance(key, bool):
        raise FilterError(f"a key of class integer is an int, not {_what(key)}")
    try:
        return _INT64.pack(int(key))
    except struct.error:
        raise FilterError(f"{key} is out of range for bigint") from None


def _text(key: Any, sql_type: Optional[str]) -> bytes:
    if not isinstance(key, str):
        raise FilterError(f"a key of class text is a str, not {_what(key)}")
    if "\0" in key:
        raise FilterError("the string contains a zero character, which PostgreSQL does not support in text")
    try:
        return key.rstrip(" ").encode("utf-8")
    except UnicodeEncodeError:
        raise FilterError("the string contains an unpaired surrogate, which PostgreSQL does not support in text") from None


def _uuid(key: Any, sql_type: Optional[str]) -> bytes:
    if isinstance(key, uuid.UUID):
        return key.bytes
    if not isinstance(key, str):
        raise FilterError(f"a key of class uuid is a UUID or a str, not {_what(key)}")
    if _UUID.fullmatch(key) is None:
        raise FilterError(f"{key!r} is not a uuid")
    return bytes.fromhex(key.strip("{}").replace("-", ""))


def _bytea(key: Any, sql_type: Optional[str]) -> bytes:
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise FilterError(f"a key of class bytea is bytes, not {_what(key)}")
    return bytes(key)


def _boolean(key: Any, sql_type: Optional[str]) -> bytes:
    # the type of numpy is called bool_ or bool
    if not isinstance(key, bool) and not (type(key).__module__ == "numpy" and type(key).__name__ in ("bool_", "bool")):
        raise FilterError(f"a key of class boolean is True or False, not {_what(key)}")
    return _INT64.pack(1 if key else 0)


def _float(key: Any, sql_type: Optional[str]) -> bytes:
    """The filter does not record whether its keys were real or double precision.

    0.1 as a real is a different number than 0.1 as a double precision, and both are written 0.1
    here.  So such a key needs the type of its column.
    """
    if type(key).__module__ == "numpy" and type(key).__name__ == "float32":
        sql_type = "real" if sql_type is None else sql_type
    elif not isinstance(key, float):
        raise FilterError(f"a key of class float is a float, not {_what(key)}")
    key = float(key)
    if key != key:
        return _NAN
    try:
        real = _FLOAT32.unpack(_FLOAT32.pack(key))[0]
    except OverflowError:
        if sql_type in ("real", "float4"):
            raise FilterError(f"{key} is out of range for real") from None
        real = None
    if sql_type in ("real", "float4"):
        key = real
    elif sql_type is None and real != key:
        raise FilterError(
            f"{key} differs as real and as double precision: "
            "pass the type of the column, 'real' or 'double precision'"
        )
    return _FLOAT64.pack(key + 0.0)  # -0.0 + 0.0 is 0.0


def _days(year_text: str, month_text: str, day_text: str, bc: bool, key: str) -> int:
    """Days from 2000-01-01 to a date of the proleptic Gregorian calendar."""
    year = 1 - int(year_text) if bc else int(year_text)
    month, day = int(month_text), int(day_text)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    lengths = (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    if int(year_text) < 1 or not 1 <= month <= 12 or not 1 <= day <= lengths[month - 1]:
        raise FilterError(f"{key!r} is not a valid date")
    # count years from March, so that the leap day is the last day
    y = year if month > 2 else year - 1
    days = 365 * y + y // 4 - y // 100 + y // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 1 - 730425
    if days < -2451545:
        raise FilterError(f"{key!r} is out of range: the first day is 4714-11-24 BC")
    return days


def _date(key: Any, sql_type: Optional[str]) -> bytes:
    if isinstance(key, datetime.datetime):
        raise FilterError("a key of class date is a date, not a datetime: pass its date()")
    if isinstance(key, datetime.date):
        return _INT64.pack((key - datetime.date(2000, 1, 1)).days)
    if not isinstance(key, str):
        raise FilterError(f"a key of class date is a date or a str, not {_what(key)}")
    if key in ("infinity", "-infinity"):
        return _INT64.pack(2**31 - 1 if key == "infinity" else -(2**31))
    parts = _DATE.fullmatch(key)
    if parts is None:
        raise FilterError(f"{key!r} is not a date of the form YYYY-MM-DD")
    days = _days(parts[1], parts[2], parts[3], parts[4] is not None, key)
    if days >= 2145031949:
        raise FilterError(f"{key!r} is out of range: the last day is 5874897-12-31")
    return _INT64.pack(days)


def _microseconds(key: str, zoned: bool) -> int:
    name = "timestamptz" if zoned else "timestamp"
    if key in ("infinity", "-infinity"):
        return 2**63 - 1 if key == "infinity" else -(2**63)
    parts = _TIMESTAMP.fullmatch(key)
    if parts is None:
        raise FilterError(f"{key!r} is not a {name} of the form YYYY-MM-DD HH:MM:SS.ssssss{'+HH:MM' if zoned else ''}")
    year, month, day, hour, minute, second, fraction, zone, bc = parts.groups()
    if zoned and zone is None:
        raise FilterError(f"{key!r} has no time zone")
    if not zoned and zone is not None:
        raise FilterError(f"{key!r} has a time zone, which a timestamp does not have")
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
        raise FilterError(f"{key!r} does not have a time of day between 00:00:00 and 23:59:59.999999")
    seconds = int(hour) * 3600 + int(minute) * 60 + int(second or 0)
    if zone is not None and zone != "Z":
        hours, minutes, rest = ([int(part) for part in zone[1:].split(":")] + [0, 0])[:3]
        if hours > 15 or minutes > 59 or rest > 59:
            raise FilterError(f"{key!r} has a time zone that is out of range")
        seconds -= (-1 if zone[0] == "-" else 1) * (hours * 3600 + minutes * 60 + rest)
    result = _days(year, month, day, bc is not None, key) * _DAY + seconds * 1000000 + int((fraction or "").ljust(6, "0"))
    if not -211813488000000000 <= result < 9223371331200000000:
        raise FilterError(f"{key!r} is out of range for {name}")
    return result


def _timestamp(key: Any, sql_type: Optional[str]) -> bytes:
    if isinstance(key, str):
        return _INT64.pack(_microseconds(key, False))
    if not isinstance(key, datetime.datetime):
        raise FilterError(f"a key of class timestamp is a datetime or a str, not {_what(key)}")
    if key.utcoffset() is not None:
        raise FilterError("a key of class timestamp is a datetime without a time zone, but this one has one")
    return _INT64.pack((key.replace(tzinfo=None) - datetime.datetime(2000, 1, 1)) // datetime.timedelta(microseconds=1))


def _timestamptz(key: Any, sql_type: Optional[str]) -> bytes:
    if isinstance(key, str):
        return _INT64.pack(_microseconds(key, True))
    if not isinstance(key, datetime.datetime):
        raise FilterError(f"a key of class timestamptz is a datetime or a str, not {_what(key)}")
    if key.utcoffset() is None:
        raise FilterError("a key of class timestamptz is a datetime with a time zone, but this one has none")
    epoch = datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc)
    return _INT64.pack((key - epoch) // datetime.timedelta(microseconds=1))


# key class: function that returns the canonical bytes, which may depend on the SQL type
CANONICAL: Dict[str, Callable[[Any, Optional[str]], bytes]] = {
    "integer": _integer, "text": _text, "uuid": _uuid, "bytea": _bytea, "boolean": _boolean, "float": _float,
    "date": _date, "timestamp": _timestamp, "timestamptz": _timestamptz,
}  # fmt: skip


def class_of(sql_type: str) -> str:
    """The key class of an SQL type."""
    if not isinstance(sql_type, str):
        raise FilterError(f"a type is a str such as 'bigint', not {_what(sql_type)}")
    try:
        return TYPES[sql_type.lower()]
    except KeyError:
        raise FilterError(
            f"keys of type {sql_type} cannot be hashed here: get bloom_hash(key) from the server and call contains_hash"
        ) from None


def hash_of(key: Any, key_class: str, sql_type: Optional[str]) -> int:
    """The unsigned hash of a key.  sql_type must be in lower case."""
    if key is None:
        raise FilterError("NULL cannot be tested: the server returns NULL for it")
    return xxh3_64_intdigest(CANONICAL[key_class](key, sql_type))


def bloom_hash(key: Any, sql_type: str) -> int:
    """Return the same as bloom_hash(key) on the server, for a key of this SQL type."""
    value = hash_of(key, class_of(sql_type), sql_type.lower())
    return value - 2**64 if value >= 2**63 else value
