"""The trigram index of a container: a few segment files and a list of them.

Contents are named by their hash and never change, so an entry is right for ever: an edit adds one and makes one useless, a
move touches nothing. A content that no segment knows is read. Files are written beside, synced and renamed; the list of
segments (`index.json`) is what counts, with a generation that grows. Whatever is missing, damaged or of another version is
left out and made again. One process writes (the folder's lock is its caller's); any number of its threads read.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.core.errors import CorruptError
from memdir.core.paths import ensure_private_dir, write_private
from memdir.retrieval.trigrams.needs import All
from memdir.retrieval.trigrams.segment import (
    SEGMENT_CONTENTS,
    SEGMENT_POSTING_BYTES,
    Numbers,
    Segment,
    trigrams_in,
    write_segment,
)

log = logging.getLogger(__name__)

LIST_NAME: Final = "index.json"
_LIST_MAX_BYTES: Final = 1 << 20
BUILD_CONTENTS: Final = 4096
"""Contents in one new segment at most: bounds the memory of a step (about 10 KiB each) and what a crash repeats."""
SMALL: Final = 8
"""So many segments that could be one become one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The index as of one moment."""

    generation: int
    segments: tuple[Segment, ...]
    known: frozenset[bytes]

    def candidates(self, need: All) -> set[bytes]:
        """Hashes of the known contents that can match."""
        found: set[bytes] = set()
        for segment in self.segments:
            found.update(bytes(one) for one in segment.hashes[_rows(segment, need)])
        return found


def _rows(segment: Segment, need: All) -> npt.NDArray[np.bool_]:
    mask = segment.rows_with(need.grams)
    for alternatives in need.needs:
        either = np.zeros(segment.count, dtype=bool)
        for one in alternatives.needs:
            either |= _rows(segment, one)
        mask &= either
    return mask


class TrigramIndex:
    """One container's. `view` from any thread; `add` and `keep` from one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._view = self._opened()

    @property
    def view(self) -> View:
        with self._lock:
            return self._view

    def _opened(self) -> View:
        generation, segments, damage = read_files(self._folder)
        for reason in damage:
            log.warning("made again: %s", reason)
        self._sweep({segment.path.name for segment in segments})
        return _view(generation, segments)

    def _sweep(self, kept: set[str]) -> None:
        """What a process that died has left, and what is not used any more."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.name != LIST_NAME and path.name not in kept:
                    path.unlink(missing_ok=True)

    def add(self, contents: Iterable[tuple[bytes, bytes]]) -> int:
        """Index contents (hash, bytes) that it does not know, BUILD_CONTENTS at most. Returns how many."""
        known = self.view.known
        made: dict[bytes, Numbers | None] = {}
        for digest, data in contents:
            if digest not in known and digest not in made:
                made[digest] = trigrams_in(data)
            if len(made) == BUILD_CONTENTS:
                break
        if made:
            view = self.view
            self._replace(view, list(view.segments), [list(made.items())])
            self._merge()
        return len(made)

    def keep(self, wanted: Callable[[bytes], bool]) -> int:
        """Forget every content that is not wanted: its segment is written again without it. Returns how many went."""
        view = self.view
        whole, made, gone = [], [], 0
        for segment in view.segments:
            useless = sum(not wanted(digest) for digest in segment.digests())
            if useless:
                gone += useless
                made.append([item for item in segment.trigrams_by_row() if wanted(item[0])])
            else:
                whole.append(segment)
        if gone:
            self._replace(view, whole, made)
        return gone

    def _merge(self) -> None:
        """Many small segments become one: each content is written again about log(contents) times in its life."""
        view = self.view
        while len(small := [segment for segment in view.segments if _is_small(segment)][:SMALL]) == SMALL:
            items = [item for segment in small for item in segment.trigrams_by_row()]
            view = self._replace(view, [segment for segment in view.segments if segment not in small], [items])

    def _replace(self, view: View, kept: list[Segment], made: list[list[tuple[bytes, Numbers | None]]]) -> View:
        """A new generation: `kept` and new segments. The old files go when the new list is on the disk."""
        ensure_private_dir(self._folder)
        generation = view.generation + 1
        segments = list(kept)
        for number, items in enumerate(items for items in made if items):
            path = self._folder / f"{generation:08}-{number}.tri"
            write_segment(path, items)
            segments.append(Segment(path))
        listed = {"generation": generation, "segments": [segment.path.name for segment in segments]}
        write_private(self._folder / LIST_NAME, json.dumps(listed).encode())
        after = _view(generation, segments)
        with self._lock:
            self._view = after
        self._sweep({segment.path.name for segment in segments})
        return after


def _is_small(segment: Segment) -> bool:
    """Whether SMALL of its size fit into one."""
    return segment.count <= SEGMENT_CONTENTS // SMALL and segment.posting_bytes <= SEGMENT_POSTING_BYTES // SMALL


def read_files(folder: Path) -> tuple[int, list[Segment], list[str]]:
    """The generation, the segments that are whole to the last byte, and what is wrong with the others. Changes nothing."""
    try:
        with open(folder / LIST_NAME, "rb") as handle:
            listed = json.loads(handle.read(_LIST_MAX_BYTES))
        generation, names = int(listed["generation"]), [str(name) for name in listed["segments"]]
    except FileNotFoundError:
        return 0, [], []
    except (OSError, ValueError, TypeError, KeyError) as error:
        return 0, [], [f"the list of trigram segments in {folder}: {error}"]
    segments, damage = [], []
    for name in names:
        try:
            segments.append(Segment(folder / os.path.basename(name), thorough=True))
        except (CorruptError, OSError) as error:
            damage.append(str(error))
    return generation, segments, damage


def _view(generation: int, segments: list[Segment]) -> View:
    known = frozenset(digest for segment in segments for digest in segment.digests())
    return View(generation=generation, segments=tuple(segments), known=known)
