"""Converts the text form of a key, as the server prints it, to Python values."""

import datetime
import uuid


def native_keys(sql_type, text):
    """All Python values that represent this key."""
    if sql_type in ("smallint", "integer", "bigint"):
        return [int(text)]
    if sql_type in ("real", "double precision"):
        return [float(text)]
    if sql_type == "boolean":
        return [text in ("true", "t")]
    if sql_type == "bytea":
        return [bytes.fromhex(text[2:]), bytearray.fromhex(text[2:])]
    if sql_type == "uuid":
        return [text, uuid.UUID(text)]
    if sql_type == "date":
        return [text] + _if_possible(datetime.date.fromisoformat, text)
    if sql_type in ("timestamp", "timestamptz"):
        return [text] + _if_possible(_datetime, text)
    return [text]


def _datetime(text):
    """Python before 3.11 does not parse short fractions and short time zones."""
    moment, zone = text, ""
    for sign in ("+", "-"):
        head, found, tail = text[10:].partition(sign)
        if found:
            moment, zone = text[:10] + head, sign + (tail + ":00" if len(tail) == 2 else tail)
    if moment.endswith("Z"):
        moment, zone = moment[:-1], "+00:00"
    whole, dot, fraction = moment.partition(".")
    return datetime.datetime.fromisoformat(whole + (dot and dot + fraction.ljust(6, "0")) + zone)


def _if_possible(convert, text):
    try:
        return [convert(text)]
    except ValueError:  # infinity, BC, beyond the year 9999
        return []


def type_name(sql_type):
    """The type without its length, which readers do not accept."""
    return sql_type.partition("(")[0]
