"""Making segments: from passages, and from several segments one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.lexical.arrays import Array, MemorySink, Sink
from memdir.retrieval.lexical.segment import (
    DTYPES,
    FIELD_STARTS,
    FIELDS,
    POSITION_MAX,
    TENTHS,
    Rows,
    Segment,
    key_of,
    path_bytes,
)
from memdir.retrieval.lexical.terms import field_terms, keys_of
from memdir.store.passages.log import IndexedPassage

_BLOCK_POSTINGS: Final = 1 << 21
"""Postings that are merged at a time, which bounds the memory of a merge (about 100 bytes each)."""
_SMALL_CODES: Final = 1 << 16
_FIELD_ENDS: Final = (FIELD_STARTS[1] - 1, POSITION_MAX)


def segment_of(passages: Iterable[IndexedPassage], sink: Sink | None = None) -> Segment:
    """A segment of these passages. A chunk id must not come twice."""
    found = sorted(
        ((path_bytes(passage.path), key_of(passage.document_id), passage) for passage in passages),
        key=lambda item: (item[0], item[1], item[2].chunk_id),
    )
    keys, counts = array("Q"), array("q")
    for _, _, passage in found:
        for terms in field_terms(passage.text, passage.context):
            keys.extend(keys_of(terms))
            counts.append(len(terms))
    per_field = np.frombuffer(counts, dtype=np.int64) if counts else np.zeros(0, dtype=np.int64)
    words = np.frombuffer(keys, dtype=np.uint64) if keys else np.zeros(0, dtype=np.uint64)
    fields = len(TENTHS)
    lengths = per_field.reshape(-1, fields).sum(axis=1)
    rows = np.repeat(np.arange(len(found), dtype=np.int64), lengths)
    field = np.repeat(np.tile(np.arange(fields), len(found)), per_field)
    within = np.arange(len(words)) - np.repeat(np.cumsum(per_field) - per_field, per_field)
    positions = np.minimum(within + np.array(FIELD_STARTS)[field], np.array(_FIELD_ENDS)[field])
    order = np.lexsort((rows, words))  # stable: occurrences of a word in a passage stay in their order
    words, rows, positions, tenths = words[order], rows[order], positions[order], np.array(TENTHS)[field[order]]
    new = np.ones(len(words), dtype=bool)
    new[1:] = (words[1:] != words[:-1]) | (rows[1:] != rows[:-1])
    firsts = np.flatnonzero(new)
    ends = np.append(firsts[1:], len(words))
    tf = np.add.reduceat(tenths, firsts) if len(firsts) else np.zeros(0, dtype=np.int64)
    out = sink or MemorySink()
    _put_rows(out, _RowTable(
        paths=[item[0] for item in found],
        doc_keys=np.fromiter((item[1] for item in found), dtype=np.uint64, count=len(found)),
        chunk_ids=np.fromiter((item[2].chunk_id for item in found), dtype=np.int64, count=len(found)),
        digests=np.fromiter((item[2].digest for item in found), dtype=np.uint64, count=len(found)),
        lengths=lengths,
    ))  # fmt: skip
    _put_words(out, words[firsts], rows[firsts], positions, _Codes.of(tf, lengths[rows[firsts]], ends - firsts))
    return Segment.of(out.finish())


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowTable:
    """Rows in their order."""

    paths: Sequence[bytes]
    doc_keys: Array
    chunk_ids: Rows
    digests: Array
    lengths: Array


def _put_rows(out: Sink, table: _RowTable) -> None:
    size = len(table.chunk_ids)
    first = [
        row
        for row in range(size)
        if not row or table.paths[row] != table.paths[row - 1] or table.doc_keys[row] != table.doc_keys[row - 1]
    ]
    doc_paths = [table.paths[row] for row in first]
    doc_keys = table.doc_keys[first] if first else np.zeros(0, dtype=np.uint64)
    whole = {
        "chunk_ids": table.chunk_ids,
        "digests": table.digests,
        "lengths": table.lengths,
        "by_id": np.argsort(table.chunk_ids, kind="stable"),
        "doc_starts": np.array([*first, size], dtype=np.int64),
        "doc_keys": doc_keys,
        "doc_by_key": np.argsort(doc_keys, kind="stable"),
        "paths": np.frombuffer(b"".join(doc_paths), dtype=np.uint8),
        "path_starts": np.cumsum([0, *map(len, doc_paths)]),
    }
    put(out, whole)


def put(out: Sink, whole: dict[str, Array]) -> None:
    """Arrays that are there in one piece."""
    for name, values in whole.items():
        out.reserve(name, DTYPES[name], len(values))
        out.append(name, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Codes:
    """The distinct combinations of frequency, length and number of occurrences, and which one each posting has."""

    tf: Array
    length: Array
    count: Array
    of_posting: Array

    @staticmethod
    def of(tf: Array, length: Array, count: Array) -> _Codes:
        packed, inverse = np.unique(_packed(tf, length, count), return_inverse=True)
        tf, length, count = _unpacked(packed)
        return _Codes(tf=tf, length=length, count=count, of_posting=inverse)


def _packed(tf: Array, length: Array, count: Array) -> Array:
    """21 bits each: a passage of two million words would be cut into many before it came here."""
    return (tf.astype(np.uint64) << np.uint64(42)) | (length.astype(np.uint64) << np.uint64(21)) | count.astype(np.uint64)


def _unpacked(packed: Array) -> tuple[Array, Array, Array]:
    low = np.uint64((1 << 21) - 1)
    return packed >> np.uint64(42), (packed >> np.uint64(21)) & low, packed & low


def _put_words(out: Sink, words: Array, rows: Array, positions: Array, codes: _Codes) -> None:
    """Postings in the order of (word, row)."""
    new = np.ones(len(words), dtype=bool)
    new[1:] = words[1:] != words[:-1]
    first = np.flatnonzero(new)
    count = codes.count[codes.of_posting].astype(np.int64)
    ends = np.cumsum(count)
    starts = np.append(first, len(words))
    small = len(codes.tf) <= _SMALL_CODES
    out.reserve("codes", "<u2" if small else "<u4", len(words))
    out.append("codes", codes.of_posting.astype(np.uint16 if small else np.uint32))
    put(out, {
        "keys": words[first],
        "starts": starts,
        "spots": np.concatenate((np.zeros(1, dtype=np.int64), ends))[starts],
        "tf_max": _reduced(np.maximum, codes.tf[codes.of_posting], first),
        "length_min": _reduced(np.minimum, codes.length[codes.of_posting], first),
        "rows": rows,
        "positions": positions,
        "code_tf": codes.tf,
        "code_length": codes.length,
        "code_count": codes.count,
    })  # fmt: skip


def _reduced(ufunc: np.ufunc, values: Array, first: Array) -> Array:
    return ufunc.reduceat(values, first) if len(first) else np.zeros(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A segment that is to be merged, and what has changed since it was made."""

    segment: Segment
    alive: npt.NDArray[np.bool_] | None
    """Rows that still count; None: all."""
    moved: dict[int, bytes]
    """Rows whose document stands elsewhere now."""


def merged(parts: Sequence[Part], sink: Sink | None = None) -> Segment:
    """One segment of all that still counts in several, paths as they are now."""
    out = sink or MemorySink()
    table, new_rows = _merged_rows(parts)
    _put_rows(out, table)
    codes, new_codes = _merged_codes([part.segment for part in parts])
    put(out, codes)
    keys = np.unique(np.concatenate([part.segment.keys for part in parts]))
    most = sum(len(part.segment.rows) for part in parts)
    occurrences = sum(len(part.segment.positions) for part in parts)
    small = len(codes["code_tf"]) <= _SMALL_CODES
    for name, size in (("rows", most), ("codes", most), ("positions", occurrences)):
        out.reserve(name, "<u2" if small and name == "codes" else DTYPES[name], size)
    for name in ("keys", "starts", "spots", "tf_max", "length_min"):
        out.reserve(name, DTYPES[name], len(keys) + 1)
    words = _Words(codes=codes, out=out)
    for low, high in _blocks(parts, keys):
        pieces = [_piece(part.segment, new_rows[at], new_codes[at], low, high) for at, part in enumerate(parts)]
        words.add(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    words.finish()
    return Segment.of(out.finish())


def _merged_rows(parts: Sequence[Part]) -> tuple[_RowTable, list[Rows]]:
    """The new table of rows, and for each part the new number of each row (-1: gone)."""
    entries: list[tuple[bytes, int, int, int, int]] = []
    for at, part in enumerate(parts):
        segment = part.segment
        documents = segment.document_of(np.arange(segment.size)).tolist()
        paths = [segment.path(document) for document in range(len(segment.doc_keys))]
        doc_keys, ids = segment.doc_keys.tolist(), segment.chunk_ids.tolist()
        rows = range(segment.size) if part.alive is None else np.flatnonzero(part.alive).tolist()
        moved = part.moved
        for row in rows:
            document = documents[row]
            path = moved.get(row, paths[document]) if moved else paths[document]
            entries.append((path, doc_keys[document], ids[row], at, row))
    entries.sort()
    new_rows = [np.full(part.segment.size, -1, dtype=np.int64) for part in parts]
    place = np.array([(entry[3], entry[4]) for entry in entries], dtype=np.int64).reshape(-1, 2)
    digests, lengths = np.zeros(len(entries), dtype=np.uint64), np.zeros(len(entries), dtype=np.int64)
    for at, part in enumerate(parts):
        mine = np.flatnonzero(place[:, 0] == at)
        old = place[mine, 1]
        new_rows[at][old] = mine
        digests[mine], lengths[mine] = part.segment.digests[old], part.segment.lengths[old]
    table = _RowTable(
        paths=[entry[0] for entry in entries],
        doc_keys=np.fromiter((entry[1] for entry in entries), dtype=np.uint64, count=len(entries)),
        chunk_ids=np.fromiter((entry[2] for entry in entries), dtype=np.int64, count=len(entries)),
        digests=digests,
        lengths=lengths,
    )
    return table, new_rows


def _merged_codes(segments: Sequence[Segment]) -> tuple[dict[str, Array], list[Array]]:
    """The codes of all, and for each segment the new number of each code."""
    packed = [_packed(one.code_tf, one.code_length, one.code_count) for one in segments]
    together = np.unique(np.concatenate(packed))
    tf, length, count = _unpacked(together)
    return {"code_tf": tf, "code_length": length, "code_count": count}, [np.searchsorted(together, one) for one in packed]


def _blocks(parts: Sequence[Part], keys: Array) -> Iterable[tuple[np.uint64, np.uint64 | None]]:
    """Ranges of words, each with about _BLOCK_POSTINGS postings (or one word): from a key to before another, None: the end."""
    if not len(keys):
        return
    postings = np.zeros(len(keys), dtype=np.int64)
    for part in parts:
        postings[np.searchsorted(keys, part.segment.keys)] += np.diff(part.segment.starts)
    block = (np.cumsum(postings) - postings) // _BLOCK_POSTINGS
    first = np.flatnonzero(np.append(True, block[1:] != block[:-1]))
    for at, start in enumerate(first):
        yield keys[start], keys[first[at + 1]] if at + 1 < len(first) else None


def _piece(segment: Segment, new_rows: Rows, new_codes: Array, low: np.uint64, high: np.uint64 | None) -> tuple[Array, ...]:
    """Words, new rows, new codes and first occurrences of the postings of some words, and the occurrences themselves."""
    first = int(np.searchsorted(segment.keys, low))
    end = len(segment.keys) if high is None else int(np.searchsorted(segment.keys, high))
    starts = segment.starts[first : end + 1]
    spots = segment.spots[first : end + 1]
    old = slice(int(starts[0]), int(starts[-1]))
    words = np.repeat(segment.keys[first:end], np.diff(starts))
    rows = new_rows[segment.rows[old]]
    codes = segment.codes[old]
    count = segment.code_count[codes].astype(np.int64)
    positions = segment.positions[int(spots[0]) : int(spots[-1])]
    kept = rows >= 0
    if not kept.all():
        positions = positions[np.repeat(kept, count)]
        words, rows, codes, count = words[kept], rows[kept], codes[kept], count[kept]
    return words, rows, new_codes[codes], count, positions


@dataclass(slots=True, kw_only=True)
class _Words:
    """The postings of a merge, written block by block."""

    codes: dict[str, Array]
    out: Sink
    postings: int = 0
    occurrences: int = 0

    def add(self, words: Array, rows: Array, codes: Array, count: Array, positions: Array) -> None:
        """Postings of some words, of several segments one behind the other."""
        order = np.lexsort((rows, words))
        begin = (np.cumsum(count) - count)[order]
        words, rows, codes, count = words[order], rows[order], codes[order], count[order]
        ends = np.cumsum(count)
        spread = np.arange(len(positions)) + np.repeat(begin - (ends - count), count)
        self.out.append("rows", rows)
        self.out.append("codes", codes)
        self.out.append("positions", positions[spread])
        new = np.ones(len(words), dtype=bool)
        new[1:] = words[1:] != words[:-1]
        first = np.flatnonzero(new)
        self.out.append("keys", words[first])
        self.out.append("starts", first + self.postings)
        self.out.append("spots", (ends - count)[first] + self.occurrences)
        self.out.append("tf_max", _reduced(np.maximum, self.codes["code_tf"][codes], first))
        self.out.append("length_min", _reduced(np.minimum, self.codes["code_length"][codes], first))
        self.postings += len(words)
        self.occurrences += len(positions)

    def finish(self) -> None:
        """The ends of the last word."""
        self.out.append("starts", np.array([self.postings]))
        self.out.append("spots", np.array([self.occurrences]))


assert set(FIELDS) == set(DTYPES)
