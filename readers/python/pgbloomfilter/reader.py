"""Filters: reading, validating, testing for keys.  docs/FORMAT.md specifies the bytes."""

import base64
import binascii
import bisect
import itertools
import math
import operator
import struct
import sys
from array import array
from dataclasses import dataclass
from typing import Any, Iterable, List, Optional, Tuple, Union

from .errors import FilterError
from .keys import CANONICAL, class_of, hash_of

try:
    from . import vectors
except ImportError:  # no numpy
    vectors = None  # type: ignore[assignment]

LENGTH_WORD = 4  # counted in sizes and alignment, not part of the bytes
HEADER_BYTES = 28
ENTRY_BYTES = 12
WIDE_BYTES = 2048
LINE_WORDS = 8
LINE_BYTES = 64
LINE_BITS = 512
MAX_BYTES = 2**29
MAX_WORDS = 2**26
MAX_LAYERS = 64
MAX_CAPACITY = 2**40
MAX_GROWTH = 100
MAX_LIST = 12582912
UNFINISHED_WORDS = 34594560
NAMED = 255
LIST, LINES, CUCKOO_LIST, CUCKOO_TABLE = 1, 2, 3, 4
BUCKET_SLOTS = 4
MAX_WINDOW = 1024
MAX_COPIES = 255
NO_SIZE_CODE = 60
SIZE_CODES = {1: (0, 1), 2: (24, 4), 3: (39, 5), 4: (51, 6)}  # groups: first code, its probes
GOLDEN = 0x9E3779B97F4A7C15
MASK32 = 2**32 - 1
MASK64 = 2**64 - 1

CLASSES = (
    None, "integer", "text", "uuid", "bytea", "boolean", "float", "numeric", "date", "time", "timetz", "timestamp",
    "timestamptz", "interval", "inet", "macaddr", "macaddr8", "bit", "oid", "money", "xid8", "pg_lsn", "jsonb",
)  # fmt: skip

_HEADER = struct.Struct("<2sBBBBBBd")
_ENTRY = struct.Struct("<IIHBB")
_UNFINISHED = "it is the unfinished state of an aggregate, not a filter"

# With fewer keys than this, the loop is as fast as numpy.
_FEW = 16


@dataclass(frozen=True)
class Stats:
    """The result of bloom_stats or cuckoo_stats, with the same names."""

    kind: str
    bytes: int  #: size in the memory of the server, 4 more than the number of bytes
    layers: int
    capacity: int  #: number of distinct keys that the filter was made for
    cardinality: int  #: estimated number of distinct keys
    target_fpp: float  #: target false-positive rate
    fpp: float  #: current false-positive rate
    growth: int
    max_layers: Optional[int]  #: maximum number of layers of a rotating filter, otherwise None
    key_class: Optional[str]  #: None if the filter has no keys yet
    format_version: int = 1


def _mix64(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK64
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


def _align(offset: int, to: int) -> int:
    """The next offset that is a multiple of `to`, counting the length word."""
    return offset + -(offset + LENGTH_WORD) % to


def _check_zero(data: bytes, start: int, end: int) -> None:
    if data.count(0, start, end) != max(end - start, 0):
        raise FilterError("a byte of the padding is not zero")


def _u64(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 8], "little")


def _numbers(data: bytes, start: int, count: int) -> "array[int]":
    """A list of u64, which must be in ascending order."""
    numbers = array("Q", data[start : start + 8 * count])
    if sys.byteorder == "big":
        numbers.byteswap()
    if not all(map(operator.lt, numbers, itertools.islice(numbers, 1, None))):
        raise FilterError("list is not in ascending order")
    return numbers


def _find(numbers: "array[int]", number: int) -> int:
    """The position of a number in a sorted list, or -1."""
    place = bisect.bisect_left(numbers, number)
    return place if place < len(numbers) and numbers[place] == number else -1


class BloomLayer:
    """A layer of a bloom filter: a list of hashes, or lines."""

    def __init__(self, data: bytes, entry: int) -> None:
        self.words, low, high, hashing, self.form = _ENTRY.unpack_from(data, entry)
        self.data = data
        self.capacity = high << 32 | low
        self.groups = hashing >> 4
        self.probes = hashing & 15
        self.start = 0
        self.hashes = array("Q")
        if self.form not in (LIST, LINES):
            raise FilterError(f"layer form {self.form} is unknown")
        if self.capacity > MAX_CAPACITY:
            raise FilterError("layer capacity is out of range")
        if self.words > MAX_WORDS:
            raise FilterError("layer is too large")
        if self.words > LINE_WORDS and self.words % LINE_WORDS != 0:
            raise FilterError("layer is not a whole number of lines")
        if self.words == 0:
            if self.form != LIST or hashing != 0:
                raise FilterError("layer without lines is not an unfinished list")
            raise FilterError(_UNFINISHED)
        if not 1 <= self.groups <= 4:
            raise FilterError("groups are out of range")
        if not 1 <= self.probes <= 8:
            raise FilterError("probes are out of range")
        if self.capacity == 0:
            if self.form == LIST or self.words != UNFINISHED_WORDS:
                raise FilterError("layer has no capacity")
            raise FilterError(_UNFINISHED)
        self.lines = 1 if self.words < LINE_WORDS else self.words // LINE_WORDS
        self.line_bits = min(self.words * 64, LINE_BITS)

    def open(self, start: int) -> int:
        """Read the contents, which begin at `start`.  Return where they end."""
        room = len(self.data) - start
        self.start = start
        if self.form == LINES:
            if self.words * 8 > room:
                raise FilterError("filter ends before its last layer does")
            return start + self.words * 8
        count = _u64(self.data, start) if room >= 8 else 0
        if room < 8 + 8 * count:
            raise FilterError("filter ends before its list does")
        if count > MAX_LIST or count + 1 >= self.words:
            raise FilterError("list is not shorter than lines")
        self.hashes = _numbers(self.data, start + 8, count)
        return start + 8 + 8 * count

    def is_empty(self) -> bool:
        if self.form == LIST:
            return len(self.hashes) == 0
        return self.data.count(0, self.start, self.start + self.words * 8) == self.words * 8

    def copies(self, key_hash: int) -> int:
        if self.form == LIST:
            return 1 if _find(self.hashes, key_hash) >= 0 else 0
        data, bits, start = self.data, self.line_bits, self.start
        for group in range(1, self.groups + 1):
            group_hash = _mix64(key_hash + group * GOLDEN & MASK64)
            line = start + (group_hash * self.lines >> 64) * LINE_BYTES
            x = group_hash & MASK32
            for _ in range(self.probes):
                position = x * bits >> 32
                if not data[line + (position >> 3)] >> (position & 7) & 1:
                    return 0
                x = x * 0x9E3779B9 & MASK32
        return 1

    def census(self) -> Tuple[float, float]:
        """Estimate the number of keys and the false-positive rate."""
        if self.form == LIST:
            return len(self.hashes), len(self.hashes) / 2.0**64
        histogram = [0] * (LINE_BITS + 1)
        size = self.line_bits // 8
        for line in range(self.start, self.start + self.lines * LINE_BYTES, LINE_BYTES):
            histogram[bin(int.from_bytes(self.data[line : line + size], "little")).count("1")] += 1
        keys = passes = 0.0
        for bits_set in range(1, self.line_bits + 1):
            fill = (bits_set if bits_set < self.line_bits else bits_set - 0.5) / self.line_bits
            keys -= histogram[bits_set] * self.line_bits / self.probes / self.groups * math.log1p(-fill)
            passes += histogram[bits_set] * (bits_set / self.line_bits) ** self.probes
        return keys, (passes / self.lines) ** self.groups


class CuckooLayer:
    """The layer of a cuckoo filter: an optional table, and a list of numbers with their counts."""

    def __init__(self, data: bytes, entry: int) -> None:
        self.buckets, low, high, self.slot_bits, self.form = _ENTRY.unpack_from(data, entry)
        self.data = data
        self.capacity = high << 32 | low
        self.used = self.distinct = self.table = 0
        self.numbers = array("Q")
        self.counts = b""
        if self.form not in (CUCKOO_LIST, CUCKOO_TABLE):
            raise FilterError(f"layer form {self.form} is unknown")
        if self.capacity > MAX_CAPACITY:
            raise FilterError("layer capacity is out of range")
        if self.buckets == 0:
            if self.form != CUCKOO_LIST or self.slot_bits != 0:
                raise FilterError("layer without buckets is not an unfinished list")
            raise FilterError(_UNFINISHED)
        if not 5 <= self.slot_bits <= 56:
            raise FilterError("slot bits are out of range")
        self.range = self.buckets << (self.slot_bits - 1)
        if self.range > 2**62:
            raise FilterError("range of numbers is too large")
        self.words = ((BUCKET_SLOTS * self.buckets - 1) * self.slot_bits // 8 + 15) // 8
        if self.words > MAX_WORDS:
            raise FilterError("table is too large")
        if self.capacity == 0:
            raise FilterError(_UNFINISHED)
        self.window = min(self.buckets - 1, MAX_WINDOW)
        self.slot_mask = (1 << self.slot_bits) - 1

    def open(self, start: int) -> int:
        """Read the contents, which begin at `start`.  Return where they end."""
        data = self.data
        fixed = 16 + self.words * 8 if self.form == CUCKOO_TABLE else 8
        if len(data) - start < fixed:
            raise FilterError("filter ends before its table or list does")
        listed = _u64(data, start)
        numbers = start + fixed
        counts = numbers + 8 * listed
        end = counts + listed
        padded = end + -(end - start) % 8
        if padded > len(data):
            raise FilterError("filter ends before its list does")
        _check_zero(data, end, padded)
        if self.form == CUCKOO_TABLE:
            self.used = _u64(data, start + 8)
            self.table = start + 16
            self._check_table()
        self.numbers = _numbers(data, numbers, listed)
        self.counts = data[counts:end]
        self._check_list()
        if (self.form == CUCKOO_LIST) != (9 * self.distinct < 8 * self.words):
            raise FilterError(f"encoding does not match the number of keys, {self.distinct}")
        return padded

    def _bucket(self, bucket: int) -> Tuple[int, int, int, int]:
        """The values of the four slots of a bucket."""
        bits = self.slot_bits
        bit = BUCKET_SLOTS * bucket * bits
        start = self.table + (bit >> 3)
        mask = self.slot_mask
        all_four = int.from_bytes(self.data[start : start + (bits >> 1) + 2], "little") >> (bit & 7)
        return all_four & mask, all_four >> bits & mask, all_four >> 2 * bits & mask, all_four >> 3 * bits & mask

    def _alternate(self, bucket: int, fingerprint: int) -> int:
        if self.window == 0:
            return bucket
        return (bucket + 1 + (((fingerprint + 1) * GOLDEN & MASK64) * self.window >> 64)) % self.buckets

    def _check_table(self) -> None:
        """Check that no number is in the table twice.

        That is, neither twice in one bucket with the same bit, nor in both its own and its
        alternate bucket.  Needs no memory.
        """
        bits = BUCKET_SLOTS * self.buckets * self.slot_bits
        behind = self.table + (bits >> 3)
        end = self.table + self.words * 8
        if self.used > BUCKET_SLOTS * self.buckets:
            raise FilterError(f"table has fewer than {self.used} slots")
        if vectors is not None:
            used, twice = vectors.check_table(self)
        else:
            used, twice = 0, False
            for bucket in range(self.buckets):
                values = [value for value in self._bucket(bucket) if value]
                used += len(values)
                twice = twice or len(set(values)) < len(values)
                for value in values:
                    if value & 1 == 0 and value + 1 in self._bucket(self._alternate(bucket, value >> 1)):
                        twice = True
        if twice:
            raise FilterError("number is in the table twice")
        if used != self.used:
            raise FilterError(f"{used} slots are used, not {self.used}")
        if self.data[behind] >> (bits & 7) or self.data.count(0, behind + 1, end) != end - behind - 1:
            raise FilterError("bit is set after the last slot")

    def _check_list(self) -> None:
        if self.numbers and self.numbers[-1] >= self.range:
            raise FilterError("number is out of range")
        if 0 in self.counts:
            raise FilterError("number in the list has no copies")
        self.distinct = self.used
        for number, copies in zip(self.numbers, self.counts):
            if not self._table_has(number):
                self.distinct += 1
            elif copies == MAX_COPIES:
                raise FilterError("number has more copies than can be counted")

    def _table_has(self, number: int) -> bool:
        if self.form != CUCKOO_TABLE:
            return False
        fingerprint = number & self.slot_mask >> 1
        bucket = number >> (self.slot_bits - 1)
        if fingerprint != 0 and 2 * fingerprint in self._bucket(bucket):
            return True
        return 2 * fingerprint + 1 in self._bucket(self._alternate(bucket, fingerprint))

    def copies(self, key_hash: int) -> int:
        number = key_hash * self.range >> 64
        place = _find(self.numbers, number)
        return (1 if self._table_has(number) else 0) + (self.counts[place] if place >= 0 else 0)

    def is_empty(self) -> bool:
        return self.distinct == 0

    def census(self) -> Tuple[float, float]:
        """Estimate the number of keys and the false-positive rate."""
        fpp = self.distinct / self.range
        return (-self.range * math.log1p(-fpp) if fpp < 1 else float(self.range)), fpp


class Filter:
    """A bloom or cuckoo filter.  Use Filter.parse to create one."""

    __slots__ = ("kind", "key_class", "_bytes", "_class", "_scheme", "_layers", "_target", "_growth", "_max_layers")

    kind: str  #: "bloom" or "cuckoo"
    key_class: Optional[str]  #: key class, or None if the filter has no keys yet

    @classmethod
    def parse(cls, value: Union[str, bytes, bytearray, memoryview]) -> "Filter":
        """Read a filter from its text (base64) or its bytes, and validate it completely.

        The text may end with a newline, as psql prints it.  The bytes are the same as bytea, in binary COPY and on the wire.
        """
        if isinstance(value, str):
            value = value[:-1].removesuffix("\r") if value.endswith("\n") else value
            if value.startswith("\\x"):
                raise FilterError("this is the text of a bytea, not of a filter: pass the bytes")
            if len(value) // 4 * 3 - 2 + LENGTH_WORD > MAX_BYTES:
                raise FilterError("larger than the maximum size of a filter")
            try:
                data = base64.b64decode(value.encode("ascii"), validate=True)
            except (UnicodeEncodeError, binascii.Error):
                raise FilterError("not base64") from None
            # the decoder ignores unused bits and some padding
            if base64.b64encode(data) != value.encode("ascii"):
                raise FilterError("not canonical base64")
        elif isinstance(value, (bytes, bytearray, memoryview)):
            if memoryview(value).nbytes + LENGTH_WORD > MAX_BYTES:
                raise FilterError("larger than the maximum size of a filter")
            data = bytes(value)  # a copy, unless it is immutable
        else:
            raise FilterError(f"a filter is a str (base64) or bytes, not {type(value).__qualname__}")
        self = object.__new__(cls)
        self._open(data)
        return self

    def __init__(self) -> None:
        raise TypeError("use Filter.parse")

    def __repr__(self) -> str:
        return f"<{self.kind} filter of {self.key_class or 'no'} keys, {self._bytes} bytes>"

    def _open(self, data: bytes) -> None:
        size = self._bytes = len(data)

        # the header
        if size < HEADER_BYTES:
            raise FilterError("shorter than the header of a filter")
        magic, version, self._scheme, self._class, count, growth, max_layers, target = _HEADER.unpack_from(data)
        self._growth, self._max_layers, self._target = growth, max_layers, target
        if magic not in (b"BF", b"CF"):
            raise FilterError("neither a bloom nor a cuckoo filter")
        cuckoo = magic == b"CF"
        self.kind = "cuckoo" if cuckoo else "bloom"
        if version != 1:
            raise FilterError(f"format version {version} is unknown")
        if self._scheme > 3:
            raise FilterError(f"hash scheme {self._scheme} is unknown")
        if self._class >= len(CLASSES) and self._class != NAMED:
            raise FilterError(f"key class {self._class} is unknown")
        if self._scheme == 0 if self._class == NAMED else self._scheme != (1 if self._class else 0):
            raise FilterError("key class does not match hash scheme")
        if not 1 <= count <= (1 if cuckoo else MAX_LAYERS):
            raise FilterError(f"number of layers, {count}, is out of range")
        if not 1e-12 <= target < 1:
            raise FilterError("false-positive probability is out of range")
        if growth > MAX_GROWTH or max_layers > MAX_LAYERS:
            raise FilterError("growth or max_layers is out of range")
        if cuckoo and (max_layers != 0 or growth not in (0, 2, 4, 8, 16, 32, 64)):
            raise FilterError("growth or max_layers is invalid for a cuckoo filter")
        if max_layers > 0 and (growth != 1 or count > max_layers):
            raise FilterError("rotating filter grows or has too many layers")

        # the name of the class
        offset = HEADER_BYTES
        if self._class == NAMED:
            end = offset + 1 + (data[offset] if size > offset else 0)
            offset = _align(end, 8)
            if size < offset:
                raise FilterError("filter ends before its class name does")
            try:
                self.key_class = data[HEADER_BYTES + 1 : end].decode("utf-8")
            except UnicodeDecodeError:
                raise FilterError("class name is not UTF-8") from None
            if self.key_class == "" or "\0" in self.key_class:
                raise FilterError("class name is empty or has a zero byte")
            _check_zero(data, end, offset)
        else:
            self.key_class = CLASSES[self._class]

        # the entries: the entry of layer 1 is the end of the header
        entries_end = offset + ENTRY_BYTES * (count - 1)
        contents = _align(entries_end, 8)
        if size < contents:
            raise FilterError("filter ends before its layer entries do")
        entries = [HEADER_BYTES - ENTRY_BYTES] + list(range(offset, entries_end, ENTRY_BYTES))
        layer_type = CuckooLayer if cuckoo else BloomLayer
        self._layers = [layer_type(data, entry) for entry in entries]

        # the contents, with zeros between and after them
        wide = size + LENGTH_WORD >= WIDE_BYTES
        end, start, narrow_size = entries_end, contents, contents
        for layer in self._layers:
            if wide:
                start = _align(start, LINE_BYTES)
            if start > size:
                raise FilterError("filter ends before its last layer does")
            _check_zero(data, end, start)
            end = layer.open(start)
            narrow_size += end - start
            start = end
        if wide != (narrow_size + LENGTH_WORD >= WIDE_BYTES):
            raise FilterError("size does not match narrow or wide layout")
        padding = (self._size_code() - end - LENGTH_WORD) % LINE_BYTES if wide else 0
        if size != end + padding:
            raise FilterError("size is not the sum of the parts")
        _check_zero(data, end, size)
        if self._class == 0 and not all(layer.is_empty() for layer in self._layers):
            raise FilterError("filter has keys but no key class")

    def _size_code(self) -> int:
        """The size of a wide filter modulo 64."""
        layer = self._layers[0]
        if self.kind == "cuckoo" or len(self._layers) > 1 or layer.form != LINES or not 1 <= self._class <= 3:
            return NO_SIZE_CODE
        code, probes = SIZE_CODES[layer.groups]
        return NO_SIZE_CODE if layer.probes < probes else code + 3 * (layer.probes - probes) + self._class - 1

    def _class_of(self, sql_type: Optional[str]) -> Optional[str]:
        """The class of the keys to test, which must be that of the filter."""
        if sql_type is None:
            key_class = self.key_class
        else:
            key_class = class_of(sql_type)
            if self.key_class is not None and key_class != self.key_class:
                raise FilterError(
                    f"a key of type {sql_type} has the class {key_class}, "
                    f"the filter has keys of the class {self.key_class}"
                )
        if self._scheme > 1 or key_class is not None and key_class not in CANONICAL:
            raise FilterError(
                f"keys of the class {key_class} cannot be hashed here"
                f"{', but only by a function of the server' if self._scheme > 1 else ''}: "
                "get bloom_hash(key) from the server and call contains_hash"
            )
        return key_class

    def _copies_of(self, key_hash: int) -> int:
        for layer in self._layers:
            copies = layer.copies(key_hash)
            if copies:
                return copies
        return 0

    def _copies(self, key: Any, sql_type: Optional[str]) -> int:
        key_class = self._class_of(sql_type)
        if key_class is None:
            if key is None:
                raise FilterError("NULL cannot be tested: the server returns NULL for it")
            return 0  # an empty filter accepts keys of any class
        return self._copies_of(hash_of(key, key_class, sql_type and sql_type.lower()))

    def contains(self, key: Any, sql_type: Optional[str] = None) -> bool:
        """Test for a key.  False: definitely absent; True: possibly present.

        sql_type is the SQL type of the key, such as "bigint".  A type of another class than the
        filter's is an error, and so is a key of another class.  Only `real` requires a type: 0.1 as
        real and 0.1 as double precision are different numbers, and a filter does not record which
        its keys were.
        """
        return self._copies(key, sql_type) > 0

    __contains__ = contains

    def contains_many(self, keys: Iterable[Any], sql_type: Optional[str] = None) -> List[bool]:
        """The same for many keys, in their order."""
        if isinstance(keys, (str, bytes, bytearray, memoryview)):
            raise FilterError(f"keys must be a list or another iterable, not {type(keys).__qualname__}")
        key_class = self._class_of(sql_type)
        if key_class is None:
            return [self.contains(key, sql_type) for key in keys]
        name = sql_type and sql_type.lower()
        hashes = [hash_of(key, key_class, name) for key in keys]
        if vectors is None or len(hashes) < _FEW:
            return [self._copies_of(key_hash) > 0 for key_hash in hashes]
        return vectors.contains_many(self._layers, hashes)

    def contains_hash(self, key_hash: int) -> bool:
        """The same for the result of bloom_hash(key) on the server, for keys of any class."""
        if not isinstance(key_hash, int) or isinstance(key_hash, bool) or not -(2**63) <= key_hash < 2**64:
            raise FilterError(f"{key_hash!r} is not a hash of 64 bits")
        return self._copies_of(key_hash & MASK64) > 0

    def count(self, key: Any, sql_type: Optional[str] = None) -> int:
        """The number of copies of a key in a cuckoo filter; 255 means 255 or more."""
        if self.kind != "cuckoo":
            raise FilterError("a bloom filter does not count keys")
        return self._copies(key, sql_type)

    def stats(self) -> Stats:
        """Return the same as bloom_stats or cuckoo_stats."""
        keys = fpp = 0.0
        for layer in self._layers:
            layer_keys, layer_fpp = layer.census()
            keys += layer_keys
            fpp += layer_fpp - fpp * layer_fpp
        return Stats(
            kind=self.kind,
            bytes=self._bytes + LENGTH_WORD,
            layers=len(self._layers),
            capacity=sum(layer.capacity for layer in self._layers),
            cardinality=round(keys),
            target_fpp=self._target,
            fpp=fpp,
            growth=self._growth,
            max_layers=self._max_layers or None,
            key_class=self.key_class,
        )
