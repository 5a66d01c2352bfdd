"""What stood at a moment, over random histories and beside a model that remembers every moment; and a folder's changes."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.store.store import Store
from memdir.store.tree.history import DOCUMENTS, MOVES_MAX, path_then
from memdir.store.tree.operations import Delete, Move, Restore
from memdir.store.types import Container
from tests.server.conftest import Putting

Tree = dict[str, tuple[bytes, int]]
PATHS = ("/a", "/b", "/d/a", "/d/b", "/d/e/a", "/f/a", "/f/e/a", "/g/a")


def standing(store: Store, container: Container, at_ms: int, prefix: str = "/", *, page: int = 3) -> Tree:
    renames = store.history.renames(container.id, after_ms=at_ms)
    found: Tree = {}
    cursor: tuple[str, str] | None = (DOCUMENTS, "")
    while cursor is not None:
        lives, cursor = store.history.at(container.id, prefix=prefix, at_ms=at_ms, cursor=cursor, limit=page, renames=renames)
        for life in lives:
            assert life.path not in found, "one content a path"
            assert (life.version is None) == (life.stands_at is not None)
            found[life.path] = (store.blobs.content(life.content_hash), life.mode)
    return found


def within(tree: Tree, folder: str) -> Tree:
    return {path: entry for path, entry in tree.items() if folder == "/" or path == folder or path.startswith(folder + "/")}


class Model:
    """The tree as it is, changed by the same operations."""

    def __init__(self) -> None:
        self.tree: Tree = {}

    def move(self, source: str, target: str) -> None:
        moved = within(self.tree, source)
        for path in moved:
            del self.tree[path]
        self.tree |= {target + path[len(source) :]: entry for path, entry in moved.items()}


def one_step(rng: random.Random, store: Store, container: Container, put: Putting, model: Model) -> None:
    """A random operation; one that is refused changes neither side."""
    kind = rng.choice(["put", "put", "put", "mode", "move", "move", "delete", "restore"])
    path, other = rng.choice(PATHS), rng.choice(["/a", "/b", "/d", "/d/e", "/f", "/g/x", "/h"])
    content, mode = bytes([rng.randrange(65, 91)]), 0o644
    if kind == "put":
        put(path, content)
        model.tree[path] = (content, mode)
    elif kind == "mode" and path in model.tree:
        put(path, model.tree[path][0], mode=0o755)
        model.tree[path] = (model.tree[path][0], 0o755)
    elif kind == "move":
        source = rng.choice(["/a", "/b", "/d", "/d/e", "/f", "/f/e", path])
        store.files.apply(container, Move(from_path=source, path=other))
        within(model.tree, other).clear()
        model.tree.pop(other, None)
        model.move(source, other)
    elif kind == "delete":
        store.files.apply(container, Delete(path=other, recursive=True))
        for gone in within(model.tree, other):
            del model.tree[gone]
    elif kind == "restore":
        gone_ones = store.versions.deleted(container.id, prefix="/", limit=5)
        if gone_ones:
            version = rng.choice(gone_ones)
            assert version.path is not None
            store.files.apply(container, Restore(version=version.id))
            model.tree[version.path] = (store.blobs.content(version.content_hash), version.mode)


def run(seed: int, steps: int, store: Store, container: Container, put: Putting, clock: FakeClock) -> None:
    rng, model = random.Random(seed), Model()
    moments: list[tuple[int, Tree]] = []
    for _ in range(steps):
        clock.advance(1.0)
        with suppress(MemdirError):  # a folder where a file stands, and the like: refused, and nothing has changed
            one_step(rng, store, container, put, model)
        moments.append((clock.now_ns() // 1_000_000 + 500, dict(model.tree)))
    for at_ms, tree in moments:
        assert standing(store, container, at_ms) == tree, f"seed {seed}"
    at_ms, tree = rng.choice(moments)
    for folder in ("/d", "/f", "/d/e", "/a", "/h"):
        assert standing(store, container, at_ms, folder) == within(tree, folder), f"seed {seed}, {folder}"


def test_what_stood_at_any_moment_of_any_history_is_found(
    store: Store, container: Container, put: Putting, clock: FakeClock
) -> None:
    run(1, 80, store, container, put, clock)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_what_stood_in_many_histories(seed: int, store: Store, container: Container, put: Putting, clock: FakeClock) -> None:
    run(seed, 150, store, container, put, clock)


def test_a_change_of_mode_alone_is_a_revision_and_comes_back(store: Store, container: Container, put: Putting) -> None:
    put("/run.sh", b"x", mode=0o755)
    put("/run.sh", b"x", mode=0o644)
    document = store.documents.at(container.id, "/run.sh")
    assert document is not None
    (version,) = store.versions.of_document(document, limit=10)
    assert version.mode == 0o755
    store.files.apply(container, Restore(version=version.id))
    document = store.documents.at(container.id, "/run.sh")
    assert document is not None
    assert document.mode == 0o755


def test_more_renames_than_are_taken_back_are_refused(store: Store, container: Container, put: Putting) -> None:
    put("/a", b"x")
    for number in range(3):
        store.files.apply(container, Move(from_path="/a" if number % 2 == 0 else "/b", path="/b" if number % 2 == 0 else "/a"))
    assert len(store.history.renames(container.id, after_ms=0)) == 3
    assert path_then("/b", store.history.renames(container.id, after_ms=0)) == "/a"
    assert MOVES_MAX >= 1000


def test_a_folders_changes_are_told_newest_first_in_pages(store: Store, container: Container, put: Putting) -> None:
    put("/d/a", b"1")
    put("/elsewhere", b"2")
    put("/d/b", b"3", mode=0o755)
    store.files.apply(container, Move(from_path="/d/a", path="/x"))
    store.files.apply(container, Delete(path="/d", recursive=True))
    rows, more = store.history.happened(container.id, prefix="/d", before=1 << 62, limit=3)
    assert [(row.kind, row.path, row.from_path) for row in rows] == [
        ("delete", "/d", None),
        ("move", "/x", "/d/a"),
        ("put", "/d/b", None),
    ]
    assert rows[2].mode == 0o755
    assert more == rows[-1].seq
    rows, more = store.history.happened(container.id, prefix="/d", before=more, limit=3)
    assert ([(row.kind, row.path) for row in rows], more) == ([("put", "/d/a")], None)


def test_a_lower_number_of_versions_lets_the_others_go_with_their_bytes(
    store: Store, container: Container, put: Putting
) -> None:
    for number in range(6):
        put("/a", b"content %d" % number)
    store.containers.change_settings(container.id, {"versionsMaxCount": 2})
    fewer = store.containers.get("local", "notes")
    assert store.versions.prune(fewer) == 3
    document = store.documents.at(container.id, "/a")
    assert document is not None
    left = store.versions.of_document(document, limit=10)
    assert [store.blobs.content(version.content_hash) for version in left] == [b"content 4", b"content 3"]
    assert store.versions.prune(fewer) == 0
