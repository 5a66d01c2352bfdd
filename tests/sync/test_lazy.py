"""Contents that stay at the server until somebody needs them: nothing is lost by that, and nothing false is ever pushed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.client.errors import ClientError, OfflineError
from memdir.core.limits import KIB, MIB
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.sync.contents.fetcher import ContentsGoneError
from memdir.sync.contents.retention import KeepingPolicy
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer
from tests.sync.test_convergence import History

NOTHING = KeepingPolicy(prefetch_bytes=0)


@pytest.fixture
def lazy(tmp_path: Path, server: FakeServer) -> Iterator[Mount]:
    one = Mount(tmp_path / "lazy", server, keeping=NOTHING)
    yield one
    one.engine.close()


def is_absent(mount: Mount, path: str) -> bool:
    entry = mount.fs.fact(path)
    assert entry is not None
    return entry.absent_hash is not None


def downloads(server: FakeServer) -> int:
    return sum(request.startswith("GET /v1/files/") for request in server.requests)


@pytest.mark.promise("lazy.metadata-first")
def test_the_first_listing_puts_names_and_no_bytes(lazy: Mount, server: FakeServer) -> None:
    for number in range(1200):
        server.write(f"/d{number % 10}/f{number}.md", f"text {number}".encode(), mode=0o600)
    server.write("/link", b"d0/f0.md", kind="symlink")
    server.write("/empty", b"")
    lazy.sync()
    assert lazy.fs.absent_totals().files == 1200
    assert downloads(server) == 2, "only the link's target and the empty file"
    assert lazy.mode("/d3/f3.md") == 0o600
    entry = lazy.fs.fact("/d4/f4.md")
    assert entry is not None
    assert (entry.size, entry.absent_hash) == (6, hashlib.sha256(b"text 4").hexdigest())
    assert lazy.read("/d4/f4.md") == b"text 4"
    assert lazy.tree() == {**server.tree(), **{f"/d{number}": ("dir", b"") for number in range(10)}}
    assert not any(request.startswith(("PUT", "POST", "DELETE")) for request in server.requests)


def test_what_was_changed_while_the_listing_came_is_pushed(tmp_path: Path, server: FakeServer) -> None:
    for number in range(1500):
        server.write(f"/f{number:04}", b"old")
    mount = Mount(tmp_path / "one", server, keeping=NOTHING)
    original, changed = mount.fs.put_new_absent, []

    def put_and_change(files: object) -> object:
        found = original(files)  # type: ignore[arg-type]
        if not changed:
            changed.append(True)
            mount.rm("/f0001")
            mount.write("/f0002", b"new")
            mount.mv("/f0003", "/moved")
        return found

    mount.fs.put_new_absent = put_and_change  # type: ignore[method-assign, assignment]
    mount.sync()
    tree = server.tree()
    assert "/f0001" not in tree
    assert "/f0003" not in tree
    assert (tree["/f0002"][1], tree["/moved"][1], len(tree)) == (b"new", b"old", 1499)
    mount.engine.close()


@pytest.mark.promise("lazy.metadata-first")
def test_later_changes_keep_absent_files_absent_and_present_ones_present(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"a1")
    server.write("/b", b"b1")
    lazy.sync()
    lazy.read("/b")
    server.write("/a", b"a2, longer")
    server.write("/b", b"b2")
    server.write("/c", b"c1")
    lazy.sync()
    assert [is_absent(lazy, path) for path in ("/a", "/b", "/c")] == [True, False, True]
    assert lazy.fs.fact("/a").size == 10  # type: ignore[union-attr]
    assert (lazy.read("/a"), lazy.read("/b"), lazy.read("/c")) == (b"a2, longer", b"b2", b"c1")


@pytest.mark.promise("lazy.local-changes")
def test_renames_and_deletes_need_no_bytes(lazy: Mount, server: FakeServer) -> None:
    for name in ("a", "b", "c"):
        server.write(f"/d/{name}", name.encode())
    lazy.sync()
    lazy.mv("/d/a", "/d/z")
    lazy.mv("/d", "/e")
    lazy.rm("/e/b")
    lazy.sync()
    assert {path: content for path, (kind, content) in server.tree().items() if kind == "file"} == {"/e/z": b"a", "/e/c": b"c"}
    assert downloads(server) == 0
    assert is_absent(lazy, "/e/z")
    assert lazy.read("/e/z") == b"a"


@pytest.mark.promise("lazy.no-false-push")
def test_a_mode_a_link_and_a_copy_are_pushed_with_the_real_bytes(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"real bytes")
    lazy.sync()
    lazy.chmod("/a", 0o600)
    lazy.fs.link(lazy.ino("/a"), *lazy.place("/b"))
    lazy.sync()
    assert server.tree() == {"/a": ("file", b"real bytes"), "/b": ("file", b"real bytes")}
    assert server.entries["/a"].mode == 0o600


@pytest.mark.promise("lazy.no-false-push")
def test_a_rename_that_falls_apart_brings_the_bytes_before_the_old_name_goes(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"the only copy")
    server.write("/target", b"in the way")
    lazy.sync()
    lazy.mv("/a", "/target")
    lazy.sync()
    assert server.tree() == {"/target": ("file", b"the only copy")}


@pytest.mark.promise("lazy.no-false-push")
def test_new_contents_at_the_old_name_wait_for_the_bytes_that_moved_away(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"old contents")
    server.write("/b", b"in the way")
    lazy.sync()
    lazy.mv("/a", "/b")
    lazy.write("/a", b"new contents")
    lazy.sync()
    assert server.tree() == {"/a": ("file", b"new contents"), "/b": ("file", b"old contents")}


@pytest.mark.promise("lazy.no-false-push")
def test_a_backup_name_that_stays_here_gets_its_bytes_before_the_server_forgets_them(lazy: Mount, server: FakeServer) -> None:
    server.write("/a.md", b"text")
    lazy.sync()
    lazy.mv("/a.md", "/a.md~")
    lazy.sync()
    assert server.tree() == {}
    assert lazy.read("/a.md~") == b"text"


@pytest.mark.promise("lazy.no-false-push")
@pytest.mark.parametrize("fault", [{"status": 500}, {"status": None}, {"status": 429, "headers": {"Retry-After": "1"}}])
def test_while_the_bytes_cannot_be_had_the_old_name_stays_at_the_server(
    lazy: Mount, server: FakeServer, fault: dict[str, object]
) -> None:
    server.write("/a", b"the only copy")
    server.write("/target", b"in the way")
    lazy.sync()
    lazy.mv("/a", "/target")
    server.fault("GET", "/v1/files/", times=3, **fault)
    for _ in range(6):
        lazy.engine.run_until_idle()
        here = {bytes(chunk) for held in lazy.fs._files.values() for chunk in held.chunks.values()}
        assert b"the only copy" in here | {content for _, content in server.tree().values()}
        lazy.clock.advance(0.4)
    lazy.sync()
    assert server.tree() == {"/target": ("file", b"the only copy")}


@pytest.mark.promise("lazy.newer-wins")
def test_a_newer_remote_version_takes_the_place_of_an_absent_one(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"first")
    lazy.sync()
    server.write("/a", b"second")
    with pytest.raises(ContentsGoneError):
        lazy.engine.fetcher.fetch(lazy.ino("/a"))
    with pytest.raises(ContentsAbsentError):
        lazy.fs.read(lazy.ino("/a"), 0, 10)
    lazy.sync()
    assert lazy.read("/a") == b"second"
    assert server.tree() == {"/a": ("file", b"second")}


@pytest.mark.promise("lazy.newer-wins")
@pytest.mark.parametrize("keeps", [True, False])
def test_what_was_renamed_here_comes_from_the_versions_or_gives_way(lazy: Mount, server: FakeServer, keeps: bool) -> None:
    server.write("/a", b"first")
    server.write("/target", b"in the way")
    lazy.sync()
    lazy.mv("/a", "/target")
    server.remove("/a")
    server.write("/target", b"newer")
    if not keeps:
        server.fault("GET", "/v1/versions", times=100, status=404)
    lazy.sync()
    copy = "/target (conflict 2023-11-14 laptop)"
    assert server.tree() == {"/target": ("file", b"newer")} | ({copy: ("file", b"first")} if keeps else {})
    assert lazy.tree() == server.tree()
    assert lazy.engine.status().lost == (0 if keeps else 1)


def test_a_rename_at_the_server_is_followed_without_bytes(lazy: Mount, server: FakeServer) -> None:
    server.write("/d/a", b"text")
    lazy.sync()
    server.rename("/d", "/e")
    lazy.sync()
    assert is_absent(lazy, "/e/a")
    assert lazy.read("/e/a") == b"text"
    assert downloads(server) == 1


def test_bytes_are_found_under_whatever_name_the_server_has_them(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"text")
    lazy.sync()
    lazy.mv("/a", "/b")
    assert lazy.read("/b") == b"text"
    lazy.sync()
    assert server.tree() == {"/b": ("file", b"text")}


@pytest.mark.promise("lazy.no-false-push")
def test_a_server_that_was_wiped_gets_no_empty_files(lazy: Mount, server: FakeServer) -> None:
    server.write("/here", b"present")
    server.write("/there", b"absent")
    lazy.sync()
    lazy.read("/here")
    restore = server.snapshot()
    server.wipe()
    lazy.sync()
    assert lazy.engine.upload_again() == 2
    lazy.sync()
    assert server.tree() == {"/here": ("file", b"present")}
    assert lazy.engine.status().parked == 1
    assert is_absent(lazy, "/there")
    restore()
    server.epoch += "again"
    lazy.engine.retry(None)
    lazy.sync()
    assert lazy.read("/there") == b"absent"
    assert server.tree() == {"/here": ("file", b"present"), "/there": ("file", b"absent")}


def test_lost_records_are_made_again_from_both_sides(tmp_path: Path, server: FakeServer) -> None:
    for number in range(30):
        server.write(f"/f{number}", f"{number}".encode())
    mount = Mount(tmp_path / "one", server, keeping=NOTHING)
    mount.sync()
    mount.engine.close()
    for file in (tmp_path / "one").iterdir():
        file.unlink()
    mount.engine = mount._open()
    mount.sync()
    assert mount.fs.absent_totals().files == 30
    assert not any(request.startswith(("PUT", "POST", "DELETE")) for request in server.requests)
    assert {path: content for path, (_, content) in mount.tree().items()} == {
        f"/f{number}": f"{number}".encode() for number in range(30)
    }
    mount.engine.close()


def test_a_mount_that_fetches_everything_fills_what_an_earlier_one_left_absent(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"text")
    lazy.sync()
    lazy.keeping = None
    lazy.restart()
    lazy.engine.run_until_idle()
    while lazy.engine.keeper.work_once():
        pass
    assert not is_absent(lazy, "/a")


# ---- readers


def test_a_reader_is_told_how_it_ended(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"text")
    server.write("/b", b"other")
    lazy.sync()
    outcome = lazy.engine.fetcher._outcome
    assert outcome(lazy.ino("/a")) is None
    server.down = True
    error = outcome(lazy.ino("/b"))
    assert isinstance(error, FsError)
    assert not isinstance(error, ContentsAbsentError)
    before = len(server.requests)
    assert isinstance(outcome(lazy.ino("/b")), FsError), "at once: the link is closed"
    assert len(server.requests) == before
    lazy.clock.advance(1.5)
    assert isinstance(outcome(lazy.ino("/b")), FsError)
    assert len(server.requests) > before, "a reader lets it try again"
    server.down = False
    lazy.clock.advance(1.5)
    assert outcome(lazy.ino("/b")) is None
    assert outcome(999_999) is None, "gone: the filesystem says so itself"


def test_wrong_bytes_are_not_taken(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"right")
    lazy.sync()
    entry = server.entries["/a"]
    server.entries["/a"] = type(entry)(entry.kind, b"wrong", entry.mode, entry.mtime_ns, entry.revision, entry.document_id)
    with pytest.raises(ContentsGoneError):
        lazy.engine.fetcher.fetch(lazy.ino("/a"))
    assert is_absent(lazy, "/a")


# ---- prefetch and eviction


@pytest.mark.promise("lazy.prefetch")
def test_prefetch_brings_small_and_new_files_first_and_stops_at_its_limit(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "one", server, keeping=KeepingPolicy(prefetch_bytes=300 * KIB))
    server.write("/large", bytes(2 * MIB))
    for number in range(10):
        server.write(f"/small{number}", bytes([number]) * 50 * KIB)
    mount.sync()
    while mount.engine.keeper.work_once():
        mount.clock.advance(3.0)
    present = [path for path in sorted(server.tree()) if not is_absent(mount, path)]
    assert len(present) == 6
    assert "/large" not in present
    mount.engine.close()


@pytest.mark.promise("lazy.prefetch")
def test_small_files_come_many_in_one_call(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "one", server, keeping=KeepingPolicy())
    for number in range(150):
        server.write(f"/d{number % 3}/f{number}.md", f"text {number}".encode())
    server.write("/large", bytes(2 * MIB))
    mount.sync()
    entry = server.entries["/d1/f1.md"]
    server.entries["/d1/f1.md"] = type(entry)(
        entry.kind, b"not those", entry.mode, entry.mtime_ns, entry.revision, entry.document_id
    )
    server.requests.clear()
    while mount.engine.keeper.work_once():
        mount.clock.advance(3.0)
    assert [path for path in server.tree() if not path.startswith("/d1/f1.") and is_absent(mount, path)] == []
    assert is_absent(mount, "/d1/f1.md"), "its bytes are others"
    assert sum(request.startswith("POST /v1/files:read") for request in server.requests) <= 5
    assert downloads(server) <= 2 + 3, "the large one, and that whose bytes are others"
    mount.engine.close()


def test_who_reads_through_a_folder_gets_others_of_it_along(lazy: Mount, server: FakeServer) -> None:
    for number in range(120):
        server.write(f"/d/f{number:03}.md", f"text {number}".encode())
    server.write("/d/large", bytes(300 * KIB))
    server.write("/far/away", b"alone")
    lazy.sync()
    server.requests.clear()
    assert lazy.engine.fetcher._outcome(lazy.ino("/d/f000.md")) is None
    assert (downloads(server), len(server.requests)) == (1, 1), "one file is one file"
    for number in range(1, 120):
        assert lazy.engine.fetcher._outcome(lazy.ino(f"/d/f{number:03}.md")) is None
        assert lazy.read(f"/d/f{number:03}.md") == f"text {number}".encode()
    assert len(server.requests) <= 4
    assert is_absent(lazy, "/d/large")
    assert is_absent(lazy, "/far/away")


@pytest.mark.promise("lazy.prefetch")
def test_prefetch_rests_while_the_server_is_away(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "one", server, keeping=KeepingPolicy())
    server.write("/a", b"text")
    mount.sync()
    server.down = True
    assert not mount.engine.keeper.work_once()
    before = len(server.requests)
    assert not mount.engine.keeper.work_once()
    assert len(server.requests) == before
    server.down = False
    mount.clock.advance(60)
    mount.engine.run_until_idle()
    mount.clock.advance(60)
    mount.engine.run_until_idle()
    mount.engine.keeper.work_once()
    assert not is_absent(mount, "/a")
    mount.engine.close()


@pytest.mark.promise("lazy.evict-clean")
def test_a_full_cache_evicts_the_coldest_clean_files_and_no_others(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "one", server, keeping=KeepingPolicy(cache_bytes=500 * KIB, prefetch_bytes=0))
    for number in range(10):
        mount.write(f"/f{number}", bytes([number + 1]) * 100 * KIB)
    while mount.engine.keeper.work_once():
        mount.clock.advance(3.0)
    assert mount.fs.absent_totals().files == 0, "nothing is at the server yet"
    mount.sync()
    mount.clock.advance(3.0)
    mount.read("/f0")
    mount.write("/f1", b"edited" * 20 * KIB)
    while mount.engine.keeper.work_once():
        mount.clock.advance(3.0)
    assert not is_absent(mount, "/f0"), "it was read last"
    assert not is_absent(mount, "/f1"), "it is not pushed yet"
    assert mount.fs.held_bytes() <= 500 * KIB
    mount.sync()
    for number in range(2, 10):
        assert mount.read(f"/f{number}") == bytes([number + 1]) * 100 * KIB
    assert {path: content for path, (_, content) in mount.tree().items()} == {
        path: content for path, (_, content) in server.tree().items()
    }
    mount.engine.close()


@pytest.mark.promise("lazy.evict-clean")
def test_bytes_that_are_not_those_agreed_on_are_never_evicted(tmp_path: Path, server: FakeServer) -> None:
    mount = Mount(tmp_path / "one", server, keeping=KeepingPolicy(cache_bytes=1, prefetch_bytes=0))
    mount.write("/a", b"good")
    mount.sync()
    ino = mount.ino("/a")
    mount.fs._files[ino].chunks[0] = b"oops"  # a bit that fell over: same version, other bytes
    mount.clock.advance(3.0)
    assert not mount.engine.keeper.work_once()
    assert not is_absent(mount, "/a")
    mount.engine.close()


# ---- histories


class LazyHistory(History):
    """As its base, with machines that hold few contents, read at random and evict at random."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.close()
        policy = KeepingPolicy(cache_bytes=40, prefetch_bytes=20)
        self.mounts = [Mount(folder / f"lazy-{name}", self.server, host=name, seed=seed, keeping=policy) for name in "ab"]

    def operate(self, mount: Mount) -> None:
        chance = self.random.random()
        if chance < 0.15:
            path = self.path()
            try:
                mount.read(path)
            except (FsError, ClientError, ContentsGoneError) as error:
                self.log.append(f"{mount.host}: read {path}: {error!r}")
                return
            self.log.append(f"{mount.host}: read {path}")
        elif chance < 0.3:
            mount.clock.advance(3.0)
            self.log.append(f"{mount.host}: keep {mount.engine.keeper.work_once()}")
        else:
            super().operate(mount)


def run(seed: int, folder: Path, *, steps: int) -> None:
    history = LazyHistory(seed, folder)
    for _ in range(steps):
        if history.random.random() < 0.7:
            history.operate(history.random.choice(history.mounts))
        else:
            history.disturb()
    history.settle()
    history.close()


@pytest.mark.promise("lazy.converges")
@pytest.mark.parametrize("seed", range(40))
def test_two_lazy_machines_converge_after_any_history(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, steps=60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_two_lazy_machines_converge_after_any_long_history(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, steps=200)


def rename_only(seed: int, folder: Path) -> None:
    """One machine renames what it never read; whatever goes wrong, each of the contents stays somewhere at the server at all
    times and at the end under the name it has here."""
    dice, server = random.Random(seed), FakeServer()
    contents = {f"/d{number % 3}/f{number}": f"contents {number}".encode() for number in range(12)}
    for path, content in contents.items():
        server.write(path, content)
    mount = Mount(folder, server, seed=seed, keeping=KeepingPolicy(cache_bytes=25, prefetch_bytes=10))
    mount.sync()
    for step in range(40):
        roll = dice.random()
        names = sorted(path for path in contents if mount.fs.fact(path) is not None)
        if roll < 0.5:
            source, path = dice.choice(names), f"/d{dice.randrange(3)}/n{step}"
            mount.mv(source, path)
            contents[path] = contents.pop(source)
            if roll < 0.2:
                mount.write(source, f"new {step}".encode())
                contents[source] = f"new {step}".encode()
        elif roll < 0.6:
            mount.restart()
        elif roll < 0.7:
            server.fault(dice.choice(("GET", "POST")), "/v1/files", status=dice.choice((None, 500)), before=dice.random() < 0.5)
        else:
            mount.clock.advance(dice.choice((0.1, 3.0, 60.0)))
            mount.engine.run_until_idle()
            mount.engine.keeper.work_once()
        here = {bytes(chunk) for held in mount.fs._files.values() for chunk in held.chunks.values()}
        there = {content for _, content in server.tree().values()}
        assert set(contents.values()) <= here | there, f"step {step}"
    server.faults.clear()
    for _ in range(5):
        mount.clock.advance(200)
        mount.sync(rounds=80)
    assert {path: content for path, (kind, content) in server.tree().items() if kind == "file"} == contents
    mount.engine.close()


@pytest.mark.promise("lazy.no-false-push")
@pytest.mark.parametrize("seed", range(40))
def test_renames_of_what_never_came_lose_nothing(seed: int, tmp_path: Path) -> None:
    rename_only(seed, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1500))
def test_many_renames_of_what_never_came_lose_nothing(seed: int, tmp_path: Path) -> None:
    rename_only(seed, tmp_path)


def test_an_engine_that_is_closed_answers_its_readers(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"text")
    lazy.sync()
    told: list[FsError | None] = []
    lazy.engine.fetcher.stop()
    lazy.engine.fetcher.bring(lazy.ino("/a"), told.append)
    assert len(told) == 1
    assert told[0] is not None


def test_offline_is_not_gone(lazy: Mount, server: FakeServer) -> None:
    server.write("/a", b"text")
    lazy.sync()
    server.down = True
    with pytest.raises(OfflineError):
        lazy.engine.fetcher.fetch(lazy.ino("/a"))
    assert lazy.engine.status().lost == 0
