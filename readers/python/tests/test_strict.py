"""Values that are not keys, or may differ from the keys on the server, are errors."""

import base64
import datetime
import decimal
import unittest
import uuid

from pgbloomfilter import Filter, FilterError, bloom_hash

from .test_vectors import VECTORS

try:
    import numpy
except ImportError:
    numpy = None


def filter_of(key_class):
    return Filter.parse(next(vector["text"] for vector in VECTORS["filters"] if vector["stats"]["key_class"] == key_class))


class Strict(unittest.TestCase):
    def refused(self, filter, keys, pattern, sql_type=None):
        for key in keys:
            with self.assertRaisesRegex(FilterError, pattern, msg=repr(key)):
                filter.contains(key, sql_type)
            with self.assertRaisesRegex(FilterError, pattern, msg=repr(key)):
                filter.contains_many([key], sql_type)

    def test_null(self):
        for key_class in ("integer", "text", None):
            self.refused(filter_of(key_class), [None], "NULL")

    def test_an_empty_filter_takes_keys_of_any_class(self):
        empty = filter_of(None)
        for key in (1, "a", True, b"", 0.1, decimal.Decimal(1)):
            self.assertIs(empty.contains(key), False)
        self.assertEqual(empty.contains_many([1, "a"]), [False, False])
        self.assertIs(empty.contains(1, "bigint"), False)
        self.refused(empty, ["1"], "is an int", "bigint")
        self.refused(empty, ["1"], "cannot be hashed here", "numeric")

    def test_integer(self):
        integers = filter_of("integer")
        self.refused(integers, ["1", 1.0, True, b"1", decimal.Decimal(1), datetime.date(2000, 1, 1), [1], (1,)], "class integer is an int")
        self.refused(integers, [2**63, -(2**63) - 1, 2**100], "out of range for bigint")

    def test_types_of_another_class(self):
        integers = filter_of("integer")
        self.refused(integers, [1], "class text, the filter has keys of the class integer", "text")
        self.refused(integers, [1], "class float", "double precision")
        self.refused(integers, [1], "cannot be hashed here", "numeric")
        self.refused(integers, [1], "cannot be hashed here", "nonsense")
        self.refused(integers, [1], "a type is a str", 7)
        self.assertIs(integers.contains(1, "INTEGER"), True)

    def test_text(self):
        texts = filter_of("text")
        self.refused(texts, [1, True, b"a", uuid.UUID(int=1)], "class text is a str")
        self.refused(texts, ["\ud83d", "\udc18", "a\udc18\ud83d"], "surrogate")
        self.refused(texts, ["a\0"], "zero character")
        self.assertEqual(bloom_hash(" " * 100000, "text"), bloom_hash("", "text"))

    def test_uuid(self):
        uuids = filter_of("uuid")
        one = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        self.refused(uuids, ["", "a", one[1:], one + "0", "{" + one, one + "}", one.replace("a0", "g0"), " " + one, one.replace("-", "--"), one + "-", one + "\n"], "is not a uuid")
        self.refused(uuids, [1, uuid.UUID(one).bytes], "class uuid is a UUID")

    def test_bytea_and_boolean(self):
        self.refused(filter_of("bytea"), ["\\x00", 0, [1, 2]], "class bytea is bytes")
        self.refused(filter_of("boolean"), [0, 1, "true", "t"], "True or False")

    def test_what_differs_as_real_and_as_double_precision_needs_its_type(self):
        floats = filter_of("float")
        self.refused(floats, [0.1, 1e39, 5e-324], "'real' or 'double precision'")
        self.refused(floats, ["0.5", 1, True, decimal.Decimal("0.5")], "class float is a float")
        self.refused(floats, [1e39], "out of range for real", "real")
        self.assertNotEqual(bloom_hash(0.1, "real"), bloom_hash(0.1, "double precision"))
        self.assertEqual(bloom_hash(0.1, "float4"), bloom_hash(0.10000000149011612, "float8"))
        self.assertEqual(bloom_hash(-0.0, "float8"), bloom_hash(0.0, "float8"))
        self.assertEqual(bloom_hash(float("-nan"), "float8"), bloom_hash(float("nan"), "real"))

    def test_dates(self):
        dates = filter_of("date")
        self.refused(dates, ["2023-02-29", "1900-02-29", "2024-13-01", "2024-00-01", "2024-01-00", "2024-01-32", "0000-01-01", "0002-02-29 BC"], "not a valid date")
        self.refused(dates, ["", "today", "2024-1-1", "24-01-01", "2024-01-01 ", "2024-01-01\n", "2024-01-01T00:00", "02024-01-01", "+2024-01-01", "Infinity", "２024-01-01"], "not a date of the form")
        self.refused(dates, ["4714-11-23 BC", "5874898-01-01", "9999999-01-01"], "out of range")
        self.refused(dates, [datetime.datetime(2024, 1, 1)], "not a datetime")
        self.refused(dates, [0, 0.5], "is a date or a str")
        self.assertEqual(bloom_hash(datetime.date.min, "date"), bloom_hash("0001-01-01", "date"))

    def test_timestamps(self):
        local, zoned = filter_of("timestamp"), filter_of("timestamptz")
        utc = datetime.timezone.utc
        self.refused(zoned, [datetime.datetime(2024, 1, 1)], "has none")
        self.refused(local, [datetime.datetime(2024, 1, 1, tzinfo=utc)], "has one")
        self.refused(local, [datetime.date(2024, 1, 1), 0], "is a datetime or a str")
        self.refused(zoned, [datetime.date(2024, 1, 1), 0], "is a datetime or a str")
        self.refused(zoned, ["2024-01-01 00:00:00"], "no time zone")
        self.refused(local, ["2024-01-01 00:00:00Z"], "has a time zone")
        self.refused(local, ["2024-01-01", "2024-01-01 00", "2024-01-01 00:00:00.1234567", "2024-01-01  00:00:00", "2024-01-01 00:00:00.", "now"], "not a timestamp of the form")
        self.refused(local, ["2024-01-01 24:00:00", "2024-01-01 23:60:00", "2024-01-01 23:59:60"], "time of day")
        self.refused(zoned, ["2024-01-01 00:00:00+16", "2024-01-01 00:00:00+01:60", "2024-01-01 00:00:00+01:00:60"], "time zone that is out of range")
        self.refused(local, ["294277-01-01 00:00:00", "4714-11-23 00:00:00 BC"], "out of range")
        self.refused(zoned, ["294276-12-31 23:59:59-01", "4714-11-24 00:00:00+01 BC"], "out of range")
        self.assertEqual(bloom_hash("2024-01-01 00:00:00.1234560000", "timestamp"), bloom_hash("2024-01-01T00:00:00.123456", "timestamp"))
        # to the microsecond, from any zone
        paris = datetime.timezone(datetime.timedelta(hours=1))
        self.assertEqual(
            bloom_hash(datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=paris), "timestamptz"),
            bloom_hash("9999-12-31 22:59:59.999999+00", "timestamptz"),
        )

    def test_many_keys_are_an_iterable(self):
        integers = filter_of("integer")
        for keys in ("123", b"123"):
            with self.assertRaisesRegex(FilterError, "iterable"):
                integers.contains_many(keys)
        self.assertEqual(integers.contains_many([]), [])
        self.assertEqual(integers.contains_many(iter([1])), [True])
        with self.assertRaisesRegex(FilterError, "class integer"):
            integers.contains_many([1] * 50 + ["a"])

    def test_hashes_and_counts(self):
        integers = filter_of("integer")
        for key_hash in (2**64, -(2**63) - 1, 1.0, "1", True, None):
            with self.assertRaisesRegex(FilterError, "64 bits"):
                integers.contains_hash(key_hash)
        with self.assertRaisesRegex(FilterError, "does not count"):
            integers.count(1)

    def test_only_strings_and_bytes_are_parsed(self):
        for value in (None, 1, [], {}):
            with self.assertRaisesRegex(FilterError, "a filter is a str"):
                Filter.parse(value)
        with self.assertRaises(TypeError):
            Filter()

    def test_newline_of_psql(self):
        text = next(vector["text"] for vector in VECTORS["filters"] if vector["stats"]["key_class"] == "integer")
        for end in ("\n", "\r\n"):
            self.assertEqual(Filter.parse(text + end).contains(1), Filter.parse(text).contains(1))
        for wrong in (text + "\n\n", text + " ", text + "\r", text + "\n ", "\n" + text):
            with self.assertRaises(FilterError):
                Filter.parse(wrong)

    def test_a_filter_does_not_change_with_the_bytes_it_was_made_of(self):
        data = bytearray(base64.b64decode(next(vector["text"] for vector in VECTORS["filters"] if vector["name"] == "one word")))
        filter = Filter.parse(data)
        data[:] = bytes(len(data))
        self.assertIs(filter.contains(1), True)

    @unittest.skipIf(numpy is None, "without numpy")
    def test_values_of_numpy(self):
        integers = filter_of("integer")
        self.assertEqual(integers.contains_many(numpy.arange(1, 100)), integers.contains_many(range(1, 100)))
        self.assertIs(integers.contains(numpy.uint8(1)), integers.contains(1))
        self.refused(integers, [numpy.float64(1), numpy.bool_(True), numpy.uint64(2**63)], "integer|out of range")
        self.assertEqual(bloom_hash(numpy.float32(0.1), "real"), bloom_hash(0.1, "real"))
        reals = Filter.parse(next(vector["text"] for vector in VECTORS["filters"] if vector["name"] == "only reals"))
        self.assertEqual(reals.contains_many(numpy.array([0.1, 0.2] * 20, numpy.float32)), [True, False] * 20)
        self.refused(reals, [numpy.float64(0.1)], "'real' or 'double precision'")
        self.refused(filter_of("timestamp"), [numpy.datetime64("2024-01-01")], "is a datetime")
        self.assertIs(filter_of("boolean").contains(numpy.bool_(True)), True)
