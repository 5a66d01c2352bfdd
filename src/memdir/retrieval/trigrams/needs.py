"""Which trigrams a text must hold so that a pattern can match it.

After Russ Cox, "Regular Expression Matching with a Trigram Index" (2012), simplified: what a part of a pattern can match is
kept as a small set of whole texts as long as possible, and neighbours are multiplied out, so that trigrams across them
count. Trigrams are of bytes with ASCII letters in lower case; the texts are indexed the same way, so both kinds of search
use one index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.core.patterns.syntax import Alternatives, Among, At, Char, Node, Repeat, Series

_TEXTS_MAX: Final = 64
_TEXT_MAX_BYTES: Final = 64
_AMONG_MAX: Final = 16
_REPEATS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class All:
    """Every trigram of `grams` and every one of `needs`. Without any: nothing is known, everything can match."""

    grams: frozenset[int] = frozenset()
    needs: tuple[Either, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it asks for nothing."""
        return not self.grams and not self.needs


@dataclass(frozen=True, slots=True)
class Either:
    """At least one of `needs`, none of which is open."""

    needs: tuple[All, ...]


OPEN: Final = All()


def trigrams_of(text: bytes) -> frozenset[int]:
    """The trigrams of a text without line ends, as numbers."""
    low = text.lower()
    return frozenset(low[at] << 16 | low[at + 1] << 8 | low[at + 2] for at in range(len(low) - 2))


def needs_of(node: Node, *, ignore_case: bool) -> All:
    """What a text must hold for `node` to match somewhere in it."""
    return _need(_Reader(ignore_case).read(node))


@dataclass(frozen=True, slots=True)
class _Known:
    """`texts`: all that a part can match, or None; then `need` is what is known of it."""

    texts: frozenset[bytes] | None
    need: All = OPEN


_EMPTY: Final = _Known(frozenset((b"",)))
_UNKNOWN: Final = _Known(None)


def _need(known: _Known) -> All:
    if known.texts is None:
        return known.need
    return either([All(trigrams_of(text)) for text in known.texts])


def both(first: All, second: All) -> All:
    return All(first.grams | second.grams, tuple(dict.fromkeys((*first.needs, *second.needs))))


def either(needs: list[All]) -> All:
    if not needs or any(need.is_open for need in needs):
        return OPEN
    distinct = tuple(dict.fromkeys(needs))
    return distinct[0] if len(distinct) == 1 else All(needs=(Either(distinct),))


class _Reader:
    def __init__(self, ignore_case: bool) -> None:
        self._ignore_case = ignore_case

    def read(self, node: Node) -> _Known:
        if isinstance(node, Char):
            return self._codes([node.code])
        if isinstance(node, Among):
            size = sum(high - low + 1 for low, high in node.ranges)
            if node.negated or node.classes or size > _AMONG_MAX:
                return _UNKNOWN
            return self._codes([code for low, high in node.ranges for code in range(low, high + 1)])
        if isinstance(node, At):
            return _EMPTY
        if isinstance(node, Series):
            return self._sequence(node)
        if isinstance(node, Alternatives):
            return self._any(node)
        return self._repeat(node)

    def _codes(self, codes: list[int]) -> _Known:
        """Non-ASCII letters have other forms with other bytes; those of ASCII letters are indexed as the letter, too."""
        if self._ignore_case and any(code >= 128 for code in codes):
            return _UNKNOWN
        return _Known(frozenset(chr(code).encode("utf-8", "surrogateescape").lower() for code in codes))

    def _sequence(self, node: Series) -> _Known:
        need = OPEN
        run: _Known = _EMPTY
        whole = True
        for part in node.parts:
            known = self.read(part)
            joined = _joined(run.texts, known.texts)
            if joined is not None:
                run = _Known(joined)
                continue
            whole = False
            need = both(need, _need(run))
            run = _EMPTY
            if known.texts is None:
                need = both(need, known.need)
            else:
                run = known
        return run if whole else _Known(None, both(need, _need(run)))

    def _any(self, node: Alternatives) -> _Known:
        known = [self.read(part) for part in node.parts]
        texts: frozenset[bytes] = frozenset()
        for one in known:
            if one.texts is None:
                return _Known(None, either([_need(each) for each in known]))
            texts |= one.texts
        return _Known(texts) if len(texts) <= _TEXTS_MAX else _Known(None, either([_need(each) for each in known]))

    def _repeat(self, node: Repeat) -> _Known:
        known = self.read(node.part)
        if node.high is not None and node.high <= _REPEATS_MAX and known.texts is not None:
            texts: frozenset[bytes] | None = frozenset((b"",))
            found: frozenset[bytes] = frozenset((b"",)) if node.low == 0 else frozenset()
            for count in range(1, node.high + 1):
                texts = _joined(texts, known.texts)
                if texts is None:
                    break
                found = found | texts if count >= node.low else found
            if texts is not None and len(found) <= _TEXTS_MAX:
                return _Known(found)
        return _Known(None, _need(known)) if node.low > 0 else _UNKNOWN


def _joined(first: frozenset[bytes] | None, second: frozenset[bytes] | None) -> frozenset[bytes] | None:
    """Each of the one before each of the other; None when that is too much to keep."""
    if first is None or second is None or len(first) * len(second) > _TEXTS_MAX:
        return None
    texts = frozenset(a + b for a in first for b in second)
    return texts if all(len(text) <= _TEXT_MAX_BYTES for text in texts) else None
