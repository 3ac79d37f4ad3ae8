"""The order in which Clojure walks its hash maps and hash sets, on which two things in results.edn depend.

If several messages were seen at one offset, the real checker takes the first element of a hash set for the
order of the log: counts of skips depend on it. And of more than 32 duplicates it shows the first 32 in the
order of a hash map. Elsewhere this checker chooses its own witnesses, in the order of the history.

A hash map is a 32-way trie [clojure.lang.PersistentHashMap], walked in the order of the hashes' groups
of five bits, lowest group first. Hashes are Murmur3 [clojure.lang.Murmur3, Util.hasheq].
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

_MASK = 0xFFFFFFFF
_ARRAY_MAP_LIMIT = 8  # up to so many entries a Clojure map remembers the order of insertion


def set_order(members: Iterable[Any]) -> list[Any]:
    """`members` in the order of a Clojure hash set."""
    return sorted(members, key=_trie_path)


def map_order(entries: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """The items of `entries` in the order of a Clojure map filled in the same order."""
    if len(entries) <= _ARRAY_MAP_LIMIT:
        return list(entries.items())
    return sorted(entries.items(), key=lambda item: _trie_path(item[0]))


@lru_cache(maxsize=65536)
def _trie_path(value: Any) -> tuple[int, ...]:
    number = clojure_hash(value)
    return tuple(number >> shift & 31 for shift in range(0, 32, 5))


def clojure_hash(value: Any) -> int:
    """The 32-bit hash of an integer or a string; of anything else, that of its text."""
    if isinstance(value, int) and -(1 << 63) <= value < 1 << 63:
        return _hash_words((value & _MASK, value >> 32 & _MASK), 8)
    return _hash_words((_java_string_hash(str(value)),), 4)


def _java_string_hash(text: str) -> int:
    number = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & _MASK
    return number


def _hash_words(words: tuple[int, ...], length_bytes: int) -> int:
    """Murmur3 x86 32 with seed 0; Clojure gives 0 for 0, which hashes to itself."""
    if not any(words):
        return 0
    state = 0
    for word in words:
        mixed = _rotate(word * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
        state = (_rotate(state ^ mixed, 13) * 5 + 0xE6546B64) & _MASK
    state ^= length_bytes
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    return state ^ state >> 16


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
