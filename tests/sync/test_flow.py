"""What keeps the sync quick beside a busy filesystem and cheap when nothing happens: costs that do not grow with the files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.api import v1
from memdir.client.batches import batch_body
from memdir.client.http import Client, inline
from memdir.fs.memory import MemoryFs
from memdir.sync.compute_lock import ComputeLock
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.push import pusher
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer


@pytest.fixture
def mount(tmp_path: Path, server: FakeServer) -> Iterator[Mount]:
    made = Mount(tmp_path / "one", server)
    yield made
    made.engine.close()


@pytest.mark.parametrize("content", [None, b"", b"\x00\xff<>&\"'", "größer".encode() * 50])
def test_a_batch_says_the_same_as_its_model(content: bytes | None) -> None:
    operations = [
        v1.BatchOperation(op="delete", path='/a "quoted" \\ name\n/ö', if_match=7, idempotency_key="k"),
        v1.BatchOperation(
            op="put", path="/c", kind="symlink", content_base64=None if content is None else inline(content), mode=0o777
        ),
        v1.BatchOperation(op="move", path="/d", from_path="/e"),
    ]
    for bulk in (False, True):
        made = v1.BatchRequest.model_validate_json(batch_body('tag "x" ö', operations, bulk=bulk))
        assert made == v1.BatchRequest(container_tag='tag "x" ö', operations=operations, bulk=bulk)


def test_contents_that_would_hold_up_others_travel_apart_and_batches_stay_small(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    puts: list[str] = []
    batch, put = Client.batch, Client.put_file

    def noted_batch(
        self: Client, container: str, operations: list[v1.BatchOperation], *, bulk: bool
    ) -> list[v1.BatchItemResult]:
        batches.append(sum(len(one.content_base64 or "") for one in operations))
        return batch(self, container, operations, bulk=bulk)

    def noted_put(self: Client, container: str, path: str, *rest: object, **more: object) -> v1.FileEntry:
        puts.append(path)
        return put(self, container, path, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "batch", noted_batch)
    monkeypatch.setattr(Client, "put_file", noted_put)
    files = {f"/small-{number:02d}": bytes([number]) * pusher.INLINE_MAX_BYTES for number in range(40)}
    files |= {"/middle": b"m" * (pusher.INLINE_MAX_BYTES + 1), "/large": b"l" * 600_000}
    for path, content in files.items():
        mount.write(path, content)
    mount.sync()
    assert sorted(puts) == ["/large", "/middle"]
    assert len(batches) >= 3
    assert max(batches) <= 1024 * 1024 * 4 // 3 + 3 * len(files)
    with mount.server.client() as client:
        assert {path: client.read_file("c", path) for path in files} == files


@pytest.mark.parametrize("size_bytes", [10, pusher.INLINE_MAX_BYTES + 1])
def test_a_copy_that_is_sent_as_fast_as_it_is_made_is_an_import_and_a_save_later_is_not(
    mount: Mount, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """The queue never holds more than a handful: what is sent keeps up with what is made."""
    sent: list[bool] = []
    batch, put = Client.batch, Client.put_file

    def noted_batch(
        self: Client, container: str, operations: list[v1.BatchOperation], *, bulk: bool
    ) -> list[v1.BatchItemResult]:
        sent.append(bulk)
        return batch(self, container, operations, bulk=bulk)

    def noted_put(self: Client, *rest: object, bulk: bool, **more: object) -> v1.FileEntry:
        sent.append(bulk)
        return put(self, *rest, bulk=bulk, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Client, "batch", noted_batch)
    monkeypatch.setattr(Client, "put_file", noted_put)
    longest = 0
    for number in range(40):
        mount.write(f"/copied-{number}", bytes([number]) * size_bytes)
        mount.engine.run_until_idle()
        longest = max(longest, mount.engine.status().queue_length)
        mount.clock.advance(0.4)
    mount.sync()
    assert longest <= 8
    assert len(sent) >= 20
    assert not any(sent[:5])
    assert all(sent[-10:])
    mount.write("/copied-3", b"t" * size_bytes)
    mount.sync()
    assert sent[-1] is False  # an edit, though the copy was made just now
    for number in range(40):
        mount.write(f"/copied-{number}", b"r" * size_bytes)
        mount.engine.run_until_idle()
        mount.clock.advance(0.4)
    mount.sync()
    assert all(sent[-10:])  # replaced by a program
    mount.clock.advance(11.0)
    mount.write("/saved", b"s" * size_bytes)
    mount.sync()
    assert sent[-1] is False


def test_counting_what_is_unread_reads_nothing(mount: Mount) -> None:
    """A status asked for between two writes of a file must not make two changes of it."""
    mount.write("/a", b"1")
    assert mount.fs.intents_left(0) == 1
    assert mount.engine.status().queue_length == 1
    mount.write("/a", b"2")
    mount.write("/b", b"1")
    assert mount.fs.intents_left(0) == 2
    (first, second) = mount.fs.intents(0, 10)
    assert mount.fs.intents_left(first.seq) == 1
    mount.fs.acknowledge(first.seq)
    assert mount.fs.intents_left(0) == 1
    assert mount.fs.intents_left(second.seq) == 0


def test_tombstones_are_dropped_without_looking_at_every_agreement(mount: Mount) -> None:
    plan = mount.engine._db.all("explain query plan delete from base where kind = '' and revision <= ?", (1,))
    assert ["base_tombstones" in str(row[3]) for row in plan] == [True]


def test_an_idle_mount_that_shall_bring_and_evict_nothing_counts_no_bytes(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[float] = []
    held = MemoryFs.held_bytes
    mounts = {
        name: Mount(tmp_path / name, server, keeping=policy)
        for name, policy in {
            "free": KeepingPolicy(), "bare": KeepingPolicy(prefetch_bytes=0), "limited": KeepingPolicy(cache_bytes=1000),
        }.items()
    }  # fmt: skip
    server.write("/a", b"not here")
    mounts["bare"].sync()
    assert mounts["bare"].fs.absent_totals().files == 1

    def slow(self: MemoryFs) -> int:
        counted.append(mounts["limited"].clock.monotonic_s())
        for mount in mounts.values():
            mount.clock.advance(0.1)
        return held(self)

    monkeypatch.setattr(MemoryFs, "held_bytes", slow)
    for name, mount in mounts.items():
        for _ in range(60):
            assert not mount.engine.keeper.work_once()
            mount.clock.advance(1.0)
        if name != "limited":
            assert counted == []
        mount.engine.close()
    assert len(counted) == 3, "60 s of which counting may take half a percent, 0.1 s each time"


def test_a_change_of_the_mode_sends_no_contents_and_needs_none(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[v1.BatchOperation] = []
    batch = Client.batch

    def noted(self: Client, container: str, operations: list[v1.BatchOperation], *, bulk: bool) -> list[v1.BatchItemResult]:
        sent.extend(operations)
        return batch(self, container, operations, bulk=bulk)

    monkeypatch.setattr(Client, "batch", noted)
    content = b"0123456789" * 1000
    server.write("/a", content)
    server.write("/changed", content)
    mount = Mount(tmp_path / "lazy", server, keeping=KeepingPolicy(prefetch_bytes=0))
    mount.sync()
    mount.chmod("/a", 0o600)
    mount.sync()
    mount.chmod("/changed", 0o600)
    server.write("/changed", content + b"!")
    mount.sync()
    assert {(one.path, one.content_base64, one.mode) for one in sent} == {("/a", None, 0o600), ("/changed", None, 0o600)}
    assert {path: (entry.content, entry.mode) for path, entry in server.entries.items()} == {
        "/a": (content, 0o600), "/changed": (content + b"!", 0o600),
    }  # fmt: skip
    for path in ("/a", "/changed"):
        assert mount.fs.fact(path).absent_hash is not None  # type: ignore[union-attr]
    mount.engine.close()


def test_a_stream_of_changes_is_taken_in_by_crowds_and_never_for_ever(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many changes come while a page is noted as were in it: the loop ends all the same, and the next turn has the rest."""
    read, written = MemoryFs.intents, iter(range(1000))

    def more_comes(self: MemoryFs, after_seq: int, limit: int) -> object:
        found = read(self, after_seq, limit)
        for _ in found:
            mount.write(f"/later-{next(written)}", b"x")
        return found

    for number in range(10):
        mount.write(f"/{number}", b"x")
    monkeypatch.setattr(MemoryFs, "intents", more_comes)
    assert mount.engine._take_in_all() == 10
    assert mount.engine._take_in_all() == 10
    monkeypatch.undo()
    mount.sync()
    assert len(mount.server.tree()) == 30


def test_rows_that_still_rest_are_not_looked_at_one_by_one(mount: Mount) -> None:
    queue = mount.engine._ctx.queue
    for number in range(50):
        mount.write(f"/{number}", b"x")
    mount.engine._take_in_all()
    seen: list[str] = []
    queue._db.reader.set_exec_trace(lambda _cursor, sql, _bindings: bool(seen.append(sql)) or True)
    assert queue.claim() == []
    assert [sql for sql in seen if "order by seq" in sql] == []
    mount.clock.advance(3.0)
    rows = queue.claim()
    assert len(rows) == 50
    queue._db.reader.set_exec_trace(None)
    queue.release(rows)


def test_one_thread_computes_while_others_wait_for_the_server() -> None:
    turn, computing, peak, together = ComputeLock(), [0], [0], threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(20):
            with turn.taken():
                computing[0] += 1
                peak[0] = max(peak[0], computing[0])
                computing[0] -= 1
                with turn.given_up():
                    pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert peak == [1]
    with turn.taken(), turn.taken(), turn.given_up(), turn.given_up(), turn.taken():  # nobody waits for himself
        assert turn._lock.locked()
    assert not turn._lock.locked()


def test_nobody_waits_for_a_turn_that_does_not_end() -> None:
    turn, done = ComputeLock(), threading.Event()

    def impatient() -> None:
        with turn.taken(), turn.given_up():
            done.set()

    with turn.taken():
        thread = threading.Thread(target=impatient)
        thread.start()
        assert done.wait(10)
    thread.join()
    with turn.taken():
        assert turn._lock.locked()
    assert not turn._lock.locked()


def test_a_call_to_the_server_gives_the_turn_up(mount: Mount) -> None:
    link = mount.engine.link
    with link.turn.taken():
        assert link.call(lambda _: link.turn._lock.locked()) is False
        assert link.turn._lock.locked()
