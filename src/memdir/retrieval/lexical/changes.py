"""What happens to the views of an index: passages that go, documents that move, segments that become one."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from memdir.retrieval.lexical.build import Part, merged
from memdir.retrieval.lexical.segment import Segment, key_of, path_bytes
from memdir.retrieval.lexical.view import View
from memdir.store.passages.log import ListedPassage

Views = tuple[View, ...]


def known(views: Sequence[View], chunk_ids: Collection[int]) -> set[int]:
    """Those of the passages that are in a view and count."""
    ids = np.array(sorted(chunk_ids), dtype=np.int64)
    found: set[int] = set()
    for view in views:
        rows = view.segment.rows_of(ids)
        here = np.flatnonzero(rows >= 0)
        if view.alive is not None:
            here = here[view.alive[rows[here]]]
        found.update(ids[here].tolist())
    return found


def without(views: Sequence[View], chunk_ids: Collection[int]) -> Views:
    """Passages that are gone; a view in which none is left goes, too, if it is in no file (see `merged_small`)."""
    if not chunk_ids:
        return tuple(views)
    ids = np.array(sorted(chunk_ids), dtype=np.int64)
    return tuple(_without(view, view.segment.rows_of(ids)) for view in views)


def _without(view: View, rows: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> View:
    rows = view.alive_rows(rows[rows >= 0])
    if not len(rows):
        return view
    alive = np.ones(view.segment.size, dtype=bool) if view.alive is None else view.alive.copy()
    alive[rows] = False
    moved = {row: path for row, path in view.moved.items() if alive[row]} if view.moved else view.moved
    return View(segment=view.segment, alive=alive, moved=moved)


def placed(views: Sequence[View], paths: Mapping[str, str | None]) -> Views:
    """Documents that stand elsewhere now, by their ids."""
    if not paths:
        return tuple(views)
    by_key = {key_of(document_id): path_bytes(path) for document_id, path in paths.items()}
    return tuple(_placed(view, by_key) for view in views)


def _placed(view: View, paths: Mapping[int, bytes]) -> View:
    segment = view.segment
    moved = dict(view.moved)
    changed = False
    keys = np.fromiter(paths, dtype=np.uint64, count=len(paths))
    for key in keys[np.isin(keys, segment.doc_keys)].tolist():
        path = paths[key]
        for row in segment.rows_of_document(key):
            if view.alive is not None and not view.alive[row]:
                continue
            changed = True
            if segment.path(int(segment.document_of(np.array([row]))[0])) == path:
                moved.pop(row, None)
            else:
                moved[row] = path
    return View(segment=segment, alive=view.alive, moved=moved) if changed else view


def merged_small(views: Sequence[View], names: Mapping[int, str], most_words: int, fanout: int) -> Views:
    """Segments in memory that are many of one small size become one."""
    result = list(views)
    while True:
        small = [
            view for view in result if id(view.segment) not in names and len(view.segment.positions) * fanout <= most_words
        ]
        same = of_one_size(small, fanout)
        if not same:
            return tuple(result)
        result = [view for view in result if view not in same]
        if any(view.live for view in same):
            parts = [Part(segment=view.segment, alive=view.alive, moved=dict(view.moved)) for view in same]
            result.append(View(segment=merged(parts)))


def of_one_size(views: Sequence[View], fanout: int) -> list[View]:
    """`fanout` or more views that have about as many words each, the smallest such; none when there are not so many."""
    by_size: dict[int, list[View]] = {}
    for view in views:
        by_size.setdefault(int(math.log(1 + len(view.segment.positions), fanout)), []).append(view)
    return next((same for _, same in sorted(by_size.items(), key=lambda item: item[0]) if len(same) >= fanout), [])


def caught_up(segment: Segment, members: Sequence[tuple[View, View]]) -> View:
    """A segment made of views as they were, with what has happened to them since: (as it was, as it is)."""
    view = View(segment=segment)
    gone: set[int] = set()
    moved: dict[int, bytes] = {}
    for was, now in members:
        ids = was.segment.chunk_ids
        if now.alive is not None and now.alive is not was.alive:
            died = ~now.alive if was.alive is None else was.alive & ~now.alive
            gone.update(ids[died].tolist())
        if now.moved is not was.moved:
            rows = {row for row, _ in now.moved.items() ^ was.moved.items() if now.alive is None or now.alive[row]}
            moved.update({int(ids[row]): _path(now, row) for row in rows})
    view = without([view], gone)[0]
    if moved:
        rows_of = segment.rows_of(np.fromiter(moved, dtype=np.int64, count=len(moved))).tolist()
        again = {row: path for row, path in zip(rows_of, moved.values(), strict=True) if row >= 0}
        view = View(segment=segment, alive=view.alive, moved=again)
    return view


def _path(view: View, row: int) -> bytes:
    moved = view.moved.get(row)
    return moved if moved is not None else view.segment.path(int(view.segment.document_of(np.array([row]))[0]))


class Difference:
    """What the store's list of passages has otherwise than some views."""

    def __init__(self, views: Sequence[View]) -> None:
        self._views = views
        self._here = [np.zeros(view.segment.size, dtype=bool) for view in views]
        self.missing: list[int] = []
        """Passages that no view has, in the order of their ids."""
        self.paths: dict[str, str | None] = {}
        """Documents that stand elsewhere."""
        self.seen = 0

    def see(self, page: Sequence[ListedPassage]) -> None:
        """The next passages of the list."""
        ids = np.fromiter((one.chunk_id for one in page), dtype=np.int64, count=len(page))
        digests = np.fromiter((one.digest for one in page), dtype=np.uint64, count=len(page))
        here = np.zeros(len(page), dtype=bool)
        for view, own in zip(self._views, self._here, strict=True):
            segment = view.segment
            rows = segment.rows_of(ids)
            same = (rows >= 0) & ~here
            same[same] = segment.digests[rows[same]] == digests[same]
            if view.alive is not None:
                same[same] = view.alive[rows[same]]
            here |= same
            own[rows[same]] = True
            documents = segment.document_of(rows[same]).tolist()
            for at, row, document in zip(np.flatnonzero(same).tolist(), rows[same].tolist(), documents, strict=True):
                one = page[at]
                if (view.moved[row] if row in view.moved else segment.path(document)) != path_bytes(one.path):
                    self.paths[one.document_id] = one.path
        self.missing += ids[~here].tolist()
        self.seen += len(page)

    def left(self) -> Views:
        """The views without the passages that are not in the list (or with another text)."""
        views = []
        for view, own in zip(self._views, self._here, strict=True):
            dead = ~own if view.alive is None else view.alive & ~own
            views.append(_without(view, np.flatnonzero(dead)) if dead.any() else view)
        return tuple(views)
