"""numpy and the loop give the same results, also for hashes where a number or a bucket begins or ends."""

import random
import unittest

from pgbloomfilter import Filter
from pgbloomfilter.reader import MASK64, vectors

from .test_vectors import VECTORS


@unittest.skipIf(vectors is None, "without numpy")
class Numpy(unittest.TestCase):
    def test_the_same_answers(self):
        source = random.Random(17)
        found = 0
        for vector in VECTORS["filters"] + VECTORS["other"]:
            filter = Filter.parse(vector["text"])
            hashes = [0, MASK64] + [source.randrange(2**64) for _ in range(100)]
            hashes += [int(probe[2]) & MASK64 for probe in vector["probes"]]
            if filter.kind == "cuckoo":
                layer = filter._layers[0]
                numbers = [key_hash * layer.range >> 64 for key_hash in hashes]
                numbers += [bucket << (layer.slot_bits - 1) for bucket in range(min(layer.buckets, 500))]
                for number in numbers:
                    first, last = ((number << 64) + layer.range - 1) // layer.range, (((number + 1) << 64) - 1) // layer.range
                    hashes += [first, last, first - 1 & MASK64, last + 1 & MASK64]
            answers = [filter.contains_hash(key_hash) for key_hash in hashes]
            self.assertEqual(vectors.contains_many(filter._layers, hashes), answers, vector["name"])
            found += sum(answers)
        self.assertGreater(found, 2000)
