"""The simulated server answers as the real store does: the same operations, answers, feed and listing."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from memdir.client.errors import ClientError, ConflictError, CursorGoneError, PreconditionFailedError
from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.server.errors import status_of
from memdir.store.contents.blobs import StagedBlob
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete, Move, Operation, Put
from memdir.store.types import Container
from tests.sim.server import SimServer, status_of_refusal

_NAMES = ("a", "b", "c.md")
_PAGE = 3
_STEPS = 300


class Both:
    """The two servers, asked the same."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random = random.Random(seed)
        self.store = SqliteStore.open(folder, clock=FakeClock())
        self.container: Container = self.store.containers.ensure("local", "c")
        self.sim = SimServer(page=_PAGE)
        self.keys = 0

    def path(self) -> str:
        return "/" + "/".join(self.random.choice(_NAMES) for _ in range(self.random.choice((1, 1, 2, 3))))

    def revision(self, path: str) -> int | None:
        entry = self.sim.life.entries.get(path)
        return self.random.choice((None, None, None, None, entry.revision if entry else None, 1))

    def key(self) -> str:
        """Sometimes one that was used before."""
        self.keys += 1
        return f"k{self.random.randrange(self.keys) if self.random.random() < 0.1 else self.keys}"

    def step(self) -> None:
        path, match, key = self.path(), None, self.key()
        match self.random.randrange(6):
            case 0 | 1 | 2:
                self.put(path, key)
            case 3 | 4:
                match = self.revision(path)
                recursive, since = self.random.random() < 0.5, self.random.choice((None, None, self.sim.life.seq, 2))
                asked = Delete(
                    path=path, recursive=recursive, if_match=match, if_unchanged_since=since, idempotency_key=key
                )  # fmt: skip
                self.compare(
                    asked, lambda: self.sim.delete(path, recursive=recursive, if_match=match, unchanged_since=since, key=key)
                )
            case _:
                target, replace = self.path(), self.random.random() < 0.5
                match = self.revision(path)
                moving = Move(from_path=path, path=target, if_match=match, replace=replace, idempotency_key=key)
                self.compare(moving, lambda: self.sim.move(path, target, if_match=match, replace=replace, key=key))

    def put(self, path: str, key: str) -> None:
        kind: Any = self.random.choice(("file", "file", "dir", "symlink"))
        content = b"" if kind == "dir" else f"{self.random.randrange(20)}".encode()
        only_new = self.random.random() < 0.3
        match = None if only_new else self.revision(path)
        mode, mtime_ns = self.random.choice((0o644, 0o755)), self.random.randrange(5)
        blob: StagedBlob | None = None
        with self.store.blobs.upload() as upload:
            if kind != "dir":
                upload.write(content)
                blob = upload.finish()
            asked = Put(
                path=path, kind=kind, blob=blob, mode=mode, mtime_ns=mtime_ns, if_match=match, if_none_match=only_new,
                idempotency_key=key,
            )  # fmt: skip
            self.compare(
                asked,
                lambda: self.sim.put(
                    path, content, kind=kind, mode=mode, mtime_ns=mtime_ns, if_match=match, if_none_match=only_new, key=key
                ),
            )

    def compare(self, operation: Operation, ask: Any) -> None:
        try:
            outcome = self.store.files.apply(self.container, operation)
            found = outcome.document
            entry = (found.kind, found.content_hash, found.mode, found.mtime_ns, found.revision) if found else None
            real: Any = (outcome.seq, outcome.count, outcome.created, entry)
        except MemdirError as error:
            real = status_of(error)
        try:
            simulated: Any = self.simulated(operation, ask())
        except ClientError as error:
            simulated = status_of_refusal(error)
        assert simulated == real, operation

    def simulated(self, operation: Operation, answer: Any) -> Any:
        if isinstance(operation, Delete):
            return (*answer, False, None)
        entry = answer[0] if isinstance(operation, Put) else answer[2]
        told = entry and (entry.kind, entry.content_hash, entry.mode, entry.mtime_ns, entry.revision)
        return (entry.revision, 1, answer[1], told) if isinstance(operation, Put) else (answer[0], answer[1], answer[3], told)

    def compare_feed(self, since: int) -> None:
        page = self.sim.feed(since)
        feed = self.store.changes.since(self.container.id, since, limit=_PAGE)
        assert feed is not None
        real = [
            (row.seq, row.kind, row.path, row.from_path, row.entry and (row.entry.kind, row.entry.content_hash, row.entry.mode))
            for row in feed.rows
        ]
        told = [
            (row.seq, row.kind, row.path, row.from_path, row.entry and (row.entry.kind, row.entry.content_hash, row.entry.mode))
            for row in page.changes
        ]
        assert told == real
        assert page.last_seq == feed.last_seq
        last = max(since, feed.last_seq) if feed.last_row_seq is None else feed.last_row_seq
        assert page.has_more == (last < feed.last_seq)

    def compare_listing(self) -> None:
        for prefix in ("/", *list(self.sim.life.entries)[:3]):
            self._compare_below(prefix)

    def _compare_below(self, prefix: str) -> None:
        after, told, real = None, [], []
        while True:
            page = self.sim.listing(prefix, after)
            snapshot = self.store.documents.files(self.container.id, prefix=prefix, after=after or "", limit=_PAGE)
            told = [(each.path, each.kind, each.content_hash, each.mode, each.revision) for each in page.entries]
            real = [(each.path, each.kind, each.content_hash, each.mode, each.revision) for each in snapshot.entries]
            assert told == real
            assert (page.next_after is not None) == snapshot.has_more
            assert page.last_seq == snapshot.last_seq
            after = page.next_after
            if after is None:
                return


@pytest.mark.parametrize("seed", range(4))
def test_both_servers_answer_the_same(seed: int, tmp_path: Path) -> None:
    both = Both(tmp_path / "server", seed)
    try:
        for number in range(_STEPS):
            both.step()
            if number % 20 == 0:
                both.compare_feed(both.random.randrange(both.sim.life.seq + 1))
                both.compare_listing()
        assert both.sim.life.seq > _STEPS // 5, "most was refused"
    finally:
        both.store.close()


def test_a_history_that_was_replaced_or_cut_off_is_refused_by_its_token() -> None:
    server = SimServer(page=10)
    for number in range(3):
        server.put(f"/{number}", b"x")
    backup = server.life.copy()
    server.put("/3", b"x")
    token = server.feed(0).token
    assert server.feed(4, token).changes == []
    server.restore(backup, new_epoch=False)
    with pytest.raises(ConflictError):
        server.feed(4, token)
    server.put("/3", b"y")
    with pytest.raises(ConflictError):
        server.feed(4, token)
    server.prune()
    with pytest.raises(CursorGoneError):
        server.feed(2)
    with pytest.raises(PreconditionFailedError):
        server.put("/3", b"z", if_match=1)
