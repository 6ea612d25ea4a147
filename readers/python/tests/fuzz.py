"""fuzz.py FOLDER [--without-numpy]

The Python part of readers/fuzz: compares hashes, results and rejections with the server.
"""

import base64
import collections
import pathlib
import resource
import sys

if "--without-numpy" in sys.argv:
    sys.modules["numpy"] = None
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from pgbloomfilter import Filter, FilterError, bloom_hash  # noqa: E402
from pgbloomfilter.keys import CANONICAL  # noqa: E402
from tests.native import native_keys  # noqa: E402

folder = pathlib.Path(sys.argv[1])
name = "python without numpy" if "--without-numpy" in sys.argv else "python"
wrong = 0


def complain(*words):
    global wrong
    wrong += 1
    if wrong <= 20:
        print(name + ":", *words, file=sys.stderr)


def rows(table):
    with open(folder / f"{table}.tsv", encoding="ascii") as lines:
        for line in lines:
            yield line.rstrip("\n").split("\t")


def from_hex(text):
    return bytes.fromhex(text).decode("utf-8")


# keys: their hashes, and the results of the filters of their classes
filters = {key_class: (Filter.parse(bloom), Filter.parse(cuckoo)) for key_class, bloom, cuckoo in rows("filters")}
batches = collections.defaultdict(list)
keys = 0
for key_class, sql_type, text, key_hash, in_bloom, in_cuckoo in rows("keys"):
    bloom, cuckoo = filters[key_class]
    for key in native_keys(sql_type, from_hex(text)):
        if bloom_hash(key, sql_type) != int(key_hash):
            complain("different hash", sql_type, repr(key))
        if bloom.contains(key, sql_type) != (in_bloom == "1"):
            complain("different result", sql_type, repr(key))
        if cuckoo.count(key, sql_type) != int(in_cuckoo):
            complain("different count", sql_type, repr(key))
        batches[key_class, sql_type].append((key, in_bloom == "1", in_cuckoo != "0"))
    keys += 1
for (key_class, sql_type), batch in batches.items():
    for filter, place in zip(filters[key_class], (1, 2)):
        if filter.contains_many([row[0] for row in batch], sql_type) != [row[place] for row in batch]:
            complain("contains_many", sql_type)

# changed filters
probes = collections.defaultdict(list)
for key_class, sql_type, text, key_hash in rows("probes"):
    probes[key_class].append((native_keys(sql_type, from_hex(text))[0], sql_type, int(key_hash)))
verdicts = collections.Counter()
for text, verdict, key_class, answers in rows("mutants"):
    verdicts[verdict] += 1
    for value in (text, base64.b64decode(text)):
        filter = None
        try:
            filter = Filter.parse(value)
            if verdict != "read":
                complain(f"read, but {verdict} by the server:", text)
        except FilterError as error:
            if verdict == "read":
                complain(f"refused ({error}), but read by the server:", text)
            elif verdict == "unfinished" and "unfinished" not in str(error):
                complain("refused for a different reason:", error, text)
        except Exception as error:
            complain("fails with", repr(error), text)
    if filter is None or verdict != "read":
        continue
    if (filter.key_class or "") != key_class:
        complain("different class:", filter.key_class, text)
    filter.stats()
    if key_class and key_class not in CANONICAL:
        try:
            filter.contains(1)
            complain("accepts keys of the class", key_class)
        except FilterError:
            pass
        continue
    mine = []
    for key, sql_type, key_hash in probes[key_class or "integer"]:
        found = filter.contains(key, sql_type)
        if filter.contains_hash(key_hash) != found:
            complain("key and hash give different results:", text)
        mine.append(filter.count(key, sql_type) if filter.kind == "cuckoo" else int(found))
    by_type = collections.defaultdict(list)
    for (key, sql_type, _), answer in zip(probes[key_class or "integer"], mine):
        by_type[sql_type].append((key, answer > 0))
    for sql_type, batch in by_type.items():
        if filter.contains_many([key for key, _ in batch] * 4, sql_type) != [answer for _, answer in batch] * 4:
            complain("contains_many of", text)
    if "".join(f"{answer}," for answer in mine) != answers:
        complain("results", mine, "instead of", answers, text)

megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
if megabytes > 400:
    complain("took", megabytes, "MB")
print(f"{name}: {keys} keys and {sum(verdicts.values())} filters ({verdicts['read']} read), {wrong} differences, {megabytes} MB")
sys.exit(1 if wrong else 0)
