"""The index of one container: it follows the store's log of passages, and nothing in its files is believed without the store.

A passage never changes, so what the log tells may be applied twice: passages that are known are passed over. Where the log does
not reach back far enough, and after every start, the container's list of passages is compared with what is here, and only the
difference is read; an index that is made for the first time is the same with nothing here.

Only the background commits. A search looks at what the log told since and adds it by itself: new passages are scored one by
one, those that went are left out, documents that moved are where they are now.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tantivy import DocAddress, Document, IndexWriter, Query, Schema, Searcher

from memdir.retrieval.derived_index import Progress, Told, untold
from memdir.retrieval.hashes import key_of
from memdir.retrieval.lexical import files
from memdir.retrieval.lexical.files import INSIDE, NUMBERS, WORDS, schema
from memdir.retrieval.lexical.terms import Terms, places, taken_apart
from memdir.store.passages.log import PassageEvent, PassageLog

log = logging.getLogger(__name__)

PAGE: Final = 500
"""Passages that are read, taken apart and committed together: some 200 ms."""
LISTED: Final = 4_000
"""Passages that are compared with the store at a time."""
FRESH_EVENTS: Final = 1_000
FRESH_PASSAGES: Final = 50
"""What a search adds by itself: the newest of so many events and new passages (.4 ms each, once). The rest of an import follows
in the background."""
KEPT_MAX: Final = 1_000
"""Passages that were taken apart for a search and wait for the background."""
WASTE_MIN: Final = 50
WASTE_SHARE: Final = 0.3
"""An index is made anew when more passages than both went and still stand in its files."""
_HEAP_BYTES: Final = 20_000_000

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a search sees; never changes."""

    searcher: Searcher
    moved: Mapping[int, str | None] = field(default_factory=dict)
    """Documents, by key, that stand elsewhere than the index says."""
    gone: frozenset[int] = frozenset()
    fresh: tuple[Terms, ...] = ()
    """Passages that are not in the index yet."""
    mean: float = 1.0
    """Terms of a passage, about: what was deleted since it was compared with the store is still in it."""


@dataclass(slots=True)
class Difference:
    """Between the store and a snapshot."""

    missing: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    moved: dict[int, str | None] = field(default_factory=dict)
    seen: int = 0
    """Passages of the store."""
    mean: float = 1.0
    """Terms of a passage of the snapshot."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What events come to. A passage that came back after it went is in both."""

    added: set[int]
    dropped: set[int]
    moved: set[str]
    """Documents."""

    @classmethod
    def of(cls, events: Sequence[PassageEvent]) -> Changes:
        added: set[int] = set()
        dropped: set[int] = set()
        moved: set[str] = set()
        for event in events:
            if event.kind == "add" and event.chunk_id is not None:
                added.add(event.chunk_id)
            elif event.kind == "drop" and event.chunk_id is not None:
                dropped.add(event.chunk_id)
                added.discard(event.chunk_id)
            elif event.kind == "path" and event.document_id is not None:
                moved.add(event.document_id)
        return cls(added, dropped, moved)


def compared(feed: PassageLog, container_id: int, snapshot: Snapshot) -> Difference:
    """What the store has otherwise now."""
    names = ("chunk", "digest", "document", "place", "length")
    ids, digests, documents, stands, lengths = _numbers(snapshot.searcher, names)
    order = np.argsort(ids)
    ids, digests, documents, stands = ids[order], digests[order], documents[order], stands[order]
    known = np.zeros(len(ids), dtype=bool)
    found = Difference(mean=float(lengths.mean()) if len(lengths) else 1.0)
    after = -1
    while page := feed.listing(container_id, after=after, limit=LISTED):
        after = page[-1].chunk_id
        found.seen += len(page)
        rows = np.searchsorted(ids, np.array([one.chunk_id for one in page], dtype=np.uint64))
        for one, row in zip(page, rows.tolist(), strict=True):
            if row == len(ids) or ids[row] != one.chunk_id or digests[row] != one.digest:
                found.missing.append(one.chunk_id)
                continue
            known[row] = True
            key = int(documents[row])
            place = _place(snapshot.moved[key]) if key in snapshot.moved else int(stands[row])
            if place != _place(one.path):
                found.moved[key] = one.path
    found.gone = ids[~known].tolist()
    return found


def with_other_words(feed: PassageLog, container_id: int, snapshot: Snapshot, chunk_ids: Sequence[int]) -> list[int]:
    """Those of the passages that an index has with other words than the store's make."""
    searcher = snapshot.searcher
    found = []
    for passage in feed.passages(container_id, chunk_ids):
        hits = searcher.search(Query.term_query(schema(), "chunk", passage.chunk_id, index_option="basic"), 1).hits
        held = searcher.fast_field_values("terms", [address for _, address in hits])
        if held and held[0] != key_of(taken_apart(passage).written):
            found.append(passage.chunk_id)
    return found


class ContainerWords:
    """Any thread may call any method. One at a time writes; searches wait for nobody."""

    def __init__(self, container_id: int, feed: PassageLog, folder: Path | None) -> None:
        """`folder` None: it is kept in memory only."""
        self._container_id = container_id
        self._feed = feed
        self._folder = folder
        self._writing = threading.Lock()
        self._taken_apart: dict[int, Terms] = {}
        self._writer: IndexWriter | None = None
        self._event_id = -1
        self._open()

    def _open(self) -> None:
        self._index = files.opened(self._folder)
        self._index.config_reader("manual")
        self._index.reload()
        self._snapshot = Snapshot(searcher=self._index.searcher())

    @property
    def schema(self) -> Schema:
        return self._index.schema

    @property
    def snapshot(self) -> Snapshot:
        """As it is, without following the log."""
        return self._snapshot

    @property
    def is_ready(self) -> bool:
        """Whether it was compared with the store since it was opened, and the log still reaches back to there."""
        return self._event_id >= 0 and self._feed.bounds()[0] <= self._event_id + 1

    @property
    def held(self) -> int:
        """How many passages are here, whether or not they were compared with the store."""
        return int(self._snapshot.searcher.num_docs)

    @property
    def is_behind(self) -> bool:
        """Whether `step` has something to do."""
        return self._event_id < self._feed.bounds()[1]

    @property
    def is_due(self) -> bool:
        """Whether the background has something to do."""
        return self.is_behind or bool(self._snapshot.moved) or self._writer is not None

    # --- following the store ---------------------------------------------------------------------------------------

    def current(self) -> Snapshot:
        """With every change that was told before this call; of a great many the newest."""
        snapshot, done = self._snapshot, self._event_id
        _, last = self._feed.bounds()
        if done < 0 or done >= last:
            return snapshot
        told = Changes.of(self._feed.events(self._container_id, after=max(done, last - FRESH_EVENTS), until=last))
        return replace(
            snapshot,
            moved={**snapshot.moved, **self._stand(told.moved)} if told.moved else snapshot.moved,
            gone=frozenset(told.dropped),
            fresh=tuple(self._terms(self._new(told, snapshot.searcher)[-FRESH_PASSAGES:])),
        )

    def _terms(self, chunk_ids: Sequence[int]) -> list[Terms]:
        """Passages taken apart, but for those that were for a search before."""
        found = []
        for passage in self._feed.passages(self._container_id, chunk_ids) if chunk_ids else ():
            known = self._taken_apart.get(passage.chunk_id)
            terms = taken_apart(passage) if known is None else replace(known, passage=passage)
            found.append(terms)
            self._taken_apart[passage.chunk_id] = terms
        if len(self._taken_apart) > KEPT_MAX:
            self._taken_apart = {}
        return found

    def step(self, told: Told = untold) -> bool:
        """Follow the log for a while, or compare everything. Returns whether there is more."""
        with self._writing:
            _, last = self._feed.bounds()
            if not self.is_ready:
                self._compare(told)
            elif self._event_id < last:
                self._follow(min(last, self._event_id + 2 * PAGE))
            return self._event_id < last

    def compare(self, told: Told = untold) -> None:
        """Compare all with the store, and take over what differs."""
        with self._writing:
            self._compare(told)

    def _follow(self, until: int) -> None:
        told = Changes.of(self._feed.events(self._container_id, after=self._event_id, until=until))
        self._apply(self._new(told, self._snapshot.searcher), told.dropped, self._stand(told.moved))
        self._event_id = until

    def _new(self, told: Changes, searcher: Searcher) -> list[int]:
        """Passages to be read, in order. One that went and came back may stand elsewhere now."""
        return sorted({*self._unknown(told.added - told.dropped, searcher), *(told.added & told.dropped)})

    def _stand(self, moved: Collection[str]) -> dict[int, str | None]:
        """Where documents stand now, by key."""
        paths = self._feed.paths(sorted(moved)) if moved else {}
        return {key_of(document_id): path for document_id, path in paths.items()}

    def _compare(self, told: Told) -> None:
        """As of the log's end when it begins; who follows from there applies some changes twice, which changes nothing."""
        _, last = self._feed.bounds()
        self._event_id = -1
        difference = compared(self._feed, self._container_id, self._snapshot)
        self._snapshot = replace(self._snapshot, mean=difference.mean)
        self._apply((), difference.gone, difference.moved)
        done = difference.seen - len(difference.missing)
        for at in range(0, len(difference.missing), PAGE):
            page = difference.missing[at : at + PAGE]
            self._apply(page, (), {})
            told(Progress(done=done + at + len(page), total=difference.seen))
        self._event_id = last

    # --- writing ---------------------------------------------------------------------------------------------------

    def _apply(self, added: Sequence[int], dropped: Collection[int], moved: Mapping[int, str | None]) -> None:
        """Commit these changes, and show them to searches."""
        terms = self._terms(added)
        documents = [(one.passage.chunk_id, _document(one)) for one in terms]
        if documents or dropped:
            with self._committed() as writer:
                self._delete(writer, [*dropped, *(chunk_id for chunk_id, _ in documents)])
                for _, document in documents:
                    writer.add_document(document)
        if documents or dropped or moved:
            held, new = self.held, len(terms)
            mean = (self._snapshot.mean * held + sum(one.length for one in terms)) / max(1, held + new)
            self._show({**self._snapshot.moved, **moved} if moved else self._snapshot.moved, mean=mean)
        for chunk_id in added:
            self._taken_apart.pop(chunk_id, None)

    @contextmanager
    def _committed(self) -> Iterator[IndexWriter]:
        """What is written inside is committed, or forgotten when it fails."""
        writer = self._writer = self._writer or self._index.writer(_HEAP_BYTES, 1)
        try:
            yield writer
            writer.commit()
        except BaseException:
            self._writer = None
            raise

    def _unknown(self, chunk_ids: Collection[int], searcher: Searcher) -> list[int]:
        """Those of the passages that are not in the index, in order."""
        if not chunk_ids:
            return []
        ids = sorted(chunk_ids)
        query = Query.const_score_query(Query.term_set_query(self.schema, "chunk", ids), 0.0)
        hits = searcher.search(query, len(ids), count=False).hits
        known = set(_chunk_ids(searcher, hits))
        return [chunk_id for chunk_id in ids if chunk_id not in known]

    def _delete(self, writer: IndexWriter, chunk_ids: Sequence[int]) -> None:
        """By query: a number alone, as a term, is not found by the writer."""
        if chunk_ids:
            writer.delete_documents_by_query(Query.term_set_query(self.schema, "chunk", chunk_ids))

    def _show(self, moved: Mapping[int, str | None], *, mean: float | None = None) -> None:
        self._index.reload()
        self._snapshot = Snapshot(
            searcher=self._index.searcher(), moved=moved, mean=self._snapshot.mean if mean is None else mean
        )

    def tidy(self) -> bool:
        """One step of putting in order: documents that moved are written with their new places, and an index of which most is
        gone is made anew. Returns whether there was something to do."""
        moved = dict(list(self._snapshot.moved.items())[:PAGE])
        if moved:
            self._write_moved(moved)
            return True
        gone, total = files.waste(self._folder) if self._folder is not None else (0, 0)
        if gone <= max(WASTE_MIN, WASTE_SHARE * total):
            return False
        self.rebuild()
        return True

    def _write_moved(self, moved: Mapping[int, str | None]) -> None:
        with self._writing:
            searcher = self._snapshot.searcher
            query = Query.const_score_query(Query.term_set_query(self.schema, "document", list(moved)), 0.0)
            ids = sorted(_chunk_ids(searcher, searcher.search(query, max(1, self.held), count=False).hits))
            with self._committed() as writer:
                self._delete(writer, ids)
                for at in range(0, len(ids), PAGE):
                    for passage in self._feed.passages(self._container_id, ids[at : at + PAGE]):
                        writer.add_document(_document(taken_apart(passage)))
            self._show({key: path for key, path in self._snapshot.moved.items() if (key, path) not in moved.items()})

    def rebuild(self, told: Told = untold) -> None:
        """Make all anew from the store, in one commit: what is here answers until then, and after a death."""
        with self._writing:
            _, last = self._feed.bounds()
            total, done, after = self._feed.count(self._container_id), 0, -1
            with self._committed() as writer:
                writer.delete_all_documents()
                length = 0
                while page := self._feed.listing(self._container_id, after=after, limit=PAGE):
                    after = page[-1].chunk_id
                    for passage in self._feed.passages(self._container_id, [one.chunk_id for one in page]):
                        terms = taken_apart(passage)
                        length += terms.length
                        writer.add_document(_document(terms))
                    done += len(page)
                    told(Progress(done=min(done, total), total=total))
            self._show({}, mean=length / max(1, done))
            self._event_id = last

    def reset(self) -> None:
        """Take the files away. Whoever opens the container next makes them again."""
        self.rest()
        with self._writing:
            self._event_id = -1
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
            self._open()

    def rest(self) -> None:
        """Nobody writes for a while: wait for merges under way, and let go of the threads and files that writing needs."""
        with self._writing:
            if self._writer is not None:
                self._writer.wait_merging_threads()
                self._writer = None
                self._show(self._snapshot.moved)

    def close(self) -> None:
        """Let go of the files, when merges under way have ended."""
        self.rest()


def _numbers(searcher: Searcher, names: Sequence[str]) -> list[Numbers]:
    """Columns of numbers of every passage, in one order."""
    hits = searcher.search(Query.all_query(), max(1, int(searcher.num_docs)), count=False).hits
    addresses = [address for _, address in hits]
    return [np.array(searcher.fast_field_values(name, addresses), dtype=np.uint64) for name in names]


def _chunk_ids(searcher: Searcher, hits: Sequence[tuple[Any, DocAddress]]) -> list[int]:
    return [int(one) for one in searcher.fast_field_values("chunk", [address for _, address in hits]) if one is not None]


def _place(path: str | None) -> int:
    return 0 if path is None else key_of(path)


def _document(terms: Terms) -> Document:
    passage = terms.passage
    values: dict[str, Any] = {
        "chunk": passage.chunk_id, "document": terms.document, "place": _place(passage.path),
        "digest": passage.digest, "terms": key_of(terms.written), "length": terms.length,
    }  # fmt: skip
    document = Document()
    for name in NUMBERS:
        document.add_unsigned(name, values[name])
    for place in places(passage.path):
        document.add_unsigned(INSIDE, place)
    for part in terms.written.split("\n"):
        if part:
            document.add_text(WORDS, part)
    return document
