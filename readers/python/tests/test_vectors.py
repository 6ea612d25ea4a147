"""Tests the reader with readers/vectors.json, which the server produced."""

import base64
import collections
import json
import pathlib
import struct
import unittest

from pgbloomfilter import Filter, FilterError, bloom_hash

from .native import native_keys, type_name

VECTORS = json.loads(pathlib.Path(__file__, "../../../vectors.json").resolve().read_text(encoding="utf-8"))


class Vectors(unittest.TestCase):
    def check_stats(self, filter, vector):
        stats = filter.stats()
        for name, expected in vector["stats"].items():
            if name == "fpp":
                self.assertLessEqual(abs(stats.fpp - expected), 1e-9 * expected, vector["name"])
            else:
                self.assertEqual(getattr(stats, name), expected, (vector["name"], name))
        self.assertEqual(stats.kind, vector["kind"])

    def test_hashes_of_keys(self):
        self.assertGreater(len(VECTORS["keys"]), 150)
        for sql_type, text, expected in VECTORS["keys"]:
            for key in native_keys(sql_type, text):
                self.assertEqual(bloom_hash(key, type_name(sql_type)), int(expected), (sql_type, key))

    def test_filters_of_all_shapes(self):
        probes = 0
        self.assertGreater(len(VECTORS["filters"]), 100)
        for vector in VECTORS["filters"]:
            data = base64.b64decode(vector["text"])
            for value in (vector["text"], data, bytearray(data), memoryview(data)):
                filter = Filter.parse(value)
                many = collections.defaultdict(list)
                self.assertEqual((filter.kind, filter.key_class), (vector["kind"], vector["stats"]["key_class"]))
                self.check_stats(filter, vector)
                for sql_type, text, key_hash, answer in vector["probes"]:
                    name = type_name(sql_type)
                    about = (vector["kind"], vector["name"], sql_type, text)
                    self.assertIs(filter.contains_hash(int(key_hash)), answer > 0, about)
                    self.assertIs(filter.contains_hash(int(key_hash) % 2**64), answer > 0, about)
                    for key in native_keys(sql_type, text):
                        self.assertIs(filter.contains(key, name), answer > 0, about)
                        if vector["kind"] == "cuckoo":
                            self.assertEqual(filter.count(key, name), answer, about)
                        if not isinstance(key, float) or _is_real(key):
                            self.assertIs(key in filter, answer > 0, about)
                        many[name].append((key, answer > 0))
                        probes += 1
                for name, pairs in many.items():
                    # few of them, and many
                    for times in (1, 7):
                        answers = filter.contains_many((key for key, _ in pairs * times), name)
                        self.assertEqual(answers, [answer for _, answer in pairs * times], vector["name"])
        self.assertGreater(probes, 5000)

    def test_other_classes_are_refused_and_their_hashes_are_not(self):
        for vector in VECTORS["other"]:
            filter = Filter.parse(vector["text"])
            self.check_stats(filter, vector)
            for _, text, key_hash, answer in vector["probes"]:
                with self.assertRaisesRegex(FilterError, "cannot be hashed here.*bloom_hash"):
                    filter.contains(text)
                with self.assertRaisesRegex(FilterError, "cannot be hashed here.*bloom_hash"):
                    filter.contains_many([text] * 20)
                with self.assertRaisesRegex(FilterError, "class text, the filter has keys of the class"):
                    filter.contains(text, "text")
                with self.assertRaisesRegex(FilterError, "cannot be hashed here"):
                    filter.contains(1, "numeric")
                self.assertIs(filter.contains_hash(int(key_hash)), answer > 0, vector["name"])

    def test_scheme_3_is_refused_like_scheme_2(self):
        (vector,) = [vector for vector in VECTORS["other"] if vector["name"] == "hashed by the server"]
        data = bytearray(base64.b64decode(vector["text"]))
        self.assertEqual(data[3], 2)
        data[3] = 3
        with self.assertRaisesRegex(FilterError, "a function of the server"):
            Filter.parse(data).contains("(0,1)")

    def test_states_of_aggregates_are_refused(self):
        self.assertGreaterEqual(len(VECTORS["unfinished"]), 4)
        for name, text in VECTORS["unfinished"]:
            with self.assertRaisesRegex(FilterError, "unfinished", msg=name):
                Filter.parse(text)

    def test_malformed_bytes_and_texts_are_refused(self):
        self.assertGreater(len(VECTORS["refused"]), 150)
        for why, kind, text in VECTORS["refused"]:
            with self.assertRaisesRegex(FilterError, ".{10}", msg=(kind, why)):
                Filter.parse(base64.b64decode(text))
            with self.assertRaises(FilterError, msg=(kind, why)):
                Filter.parse(text)
        for why, text in VECTORS["not_base64"]:
            with self.assertRaises(FilterError, msg=why):
                Filter.parse(text)


def _is_real(key):
    """Is it the same number as real and as double precision?"""
    try:
        return key != key or struct.unpack("<f", struct.pack("<f", key))[0] == key
    except OverflowError:
        return False
