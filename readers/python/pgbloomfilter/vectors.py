"""Faster with numpy: testing many keys, and validating the table of a cuckoo filter."""

from typing import Any, List, Tuple

import numpy as np

from . import reader

_32 = np.uint64(32)
_MASK32 = np.uint64(0xFFFFFFFF)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_CHUNK = 1 << 16  # buckets checked at a time: 2 MB of slots


def _u64(number: int) -> Any:
    return np.uint64(number)


def _mix64(x: Any) -> Any:
    x = (x ^ x >> _u64(30)) * _u64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> _u64(27)) * _u64(0x94D049BB133111EB)
    return x ^ x >> _u64(31)


def _scale(x: Any, n: Any) -> Tuple[Any, Any]:
    """x * n as (div 2^64, mod 2^64), for a 32-bit n."""
    low = (x & _MASK32) * n
    high = (x >> _32) * n + (low >> _32)
    return high >> _32, high << _32 | low & _MASK32


def _lines_contain(layer: "reader.BloomLayer", hashes: Any) -> Any:
    data = np.frombuffer(layer.data, np.uint8)
    found = np.ones(len(hashes), bool)
    for group in range(1, layer.groups + 1):
        group_hash = _mix64(hashes + _u64(group * reader.GOLDEN & reader.MASK64))
        line = _scale(group_hash, _u64(layer.lines))[0] * _u64(reader.LINE_BYTES) + _u64(layer.start)
        x = group_hash & _MASK32
        for _ in range(layer.probes):
            position = x * _u64(layer.line_bits) >> _32
            found &= (data[line + (position >> _u64(3))] >> (position & _u64(7)).astype(np.uint8) & np.uint8(1)).astype(bool)
            x = x * _u64(0x9E3779B9) & _MASK32
    return found


def _list_has(numbers: Any, wanted: Any) -> Any:
    if len(numbers) == 0:
        return np.zeros(len(wanted), bool)
    numbers = np.frombuffer(numbers, np.uint64)
    places = np.searchsorted(numbers, wanted)
    places[places == len(numbers)] = 0
    return numbers[places] == wanted


def _slots(layer: "reader.CuckooLayer", numbers: Any) -> Any:
    """The values of slots.  8 bytes can be read from the start of any slot, aligned or not."""
    windows = np.ndarray(layer.words * 8 - 7, np.dtype("<u8"), layer.data, layer.table, (1,))
    bits = numbers * _u64(layer.slot_bits)
    return windows[bits >> _u64(3)].astype(np.uint64) >> (bits & _u64(7)) & _u64(layer.slot_mask)


def _alternate(layer: "reader.CuckooLayer", buckets: Any, fingerprints: Any) -> Any:
    if layer.window == 0:
        return buckets
    return (buckets + _u64(1) + _scale((fingerprints + _u64(1)) * _GOLDEN, _u64(layer.window))[0]) % _u64(layer.buckets)


def _bucket_has(layer: "reader.CuckooLayer", buckets: Any, values: Any) -> Any:
    first = buckets * _u64(reader.BUCKET_SLOTS)
    found = np.zeros(len(values), bool)
    for i in range(reader.BUCKET_SLOTS):
        found |= _slots(layer, first + _u64(i)) == values
    return found


def _cuckoo_contains(layer: "reader.CuckooLayer", hashes: Any) -> Any:
    buckets, fraction = _scale(hashes, _u64(layer.buckets))
    fingerprints = fraction >> _u64(65 - layer.slot_bits)
    found = _list_has(layer.numbers, buckets << _u64(layer.slot_bits - 1) | fingerprints)
    if layer.form == reader.CUCKOO_TABLE:
        values = fingerprints << _u64(1)
        found |= (values != 0) & _bucket_has(layer, buckets, values)
        found |= _bucket_has(layer, _alternate(layer, buckets, fingerprints), values + _u64(1))
    return found


def contains_many(layers: List[Any], hashes: List[int]) -> List[bool]:
    wanted = np.array(hashes, np.uint64)
    found = np.zeros(len(wanted), bool)
    for layer in layers:
        if isinstance(layer, reader.CuckooLayer):
            found |= _cuckoo_contains(layer, wanted)
        elif layer.form == reader.LIST:
            found |= _list_has(layer.hashes, wanted)
        else:
            found |= _lines_contain(layer, wanted)
    return found.tolist()


def check_table(layer: "reader.CuckooLayer") -> Tuple[int, bool]:
    """The number of used slots, and whether a number is in the table twice."""
    used = 0
    for start in range(0, layer.buckets, _CHUNK):
        buckets = np.arange(start, min(start + _CHUNK, layer.buckets), dtype=np.uint64)
        values = [_slots(layer, buckets * _u64(reader.BUCKET_SLOTS) + _u64(i)) for i in range(reader.BUCKET_SLOTS)]
        for i, value in enumerate(values):
            in_use = value != 0
            used += int(np.count_nonzero(in_use))
            for other in values[:i]:
                if np.any(in_use & (value == other)):
                    return used, True
            own = in_use & (value & _u64(1) == 0)
            if np.any(_bucket_has(layer, _alternate(layer, buckets[own], value[own] >> _u64(1)), value[own] + _u64(1))):
                return used, True
    return used, False
