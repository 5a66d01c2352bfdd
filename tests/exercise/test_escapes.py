"""No path, symlink, letter or NUL leads out of the root: what stands beside it never changes, and odd names are only names."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.fs import path as paths
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Op
from memdir.fs.fuse.dispatch import Dispatcher
from memdir.fs.fuse.options import FuseOptions, Profile
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO
from tests.exercise.capture import load
from tests.exercise.difference import OwnMount
from tests.exercise.fuzz import request
from tests.exercise.vectors import TARGET, vectors

AnyFs = MemoryFs | SqliteFs
VECTORS = list(vectors())
CANARY = b"nobody writes here"


def outside(top: Path, *inside: str) -> dict[str, tuple[int, bytes]]:
    """Everything below `top` except what is `inside`: types, modes and bytes."""
    found = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if os.path.relpath(os.path.join(folder, name), top) not in inside]
        for name in (*folders, *files):
            full = os.path.join(folder, name)
            mode = os.lstat(full).st_mode
            found[os.path.relpath(full, top)] = (mode, Path(full).read_bytes() if stat.S_ISREG(mode) else b"")
    return found


@pytest.fixture
def beside(tmp_path: Path) -> Iterator[dict[str, tuple[int, bytes]]]:
    """Canaries around the root; afterwards they are as they were, and nothing is there that was not."""
    (tmp_path / TARGET).write_bytes(CANARY)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / TARGET).write_bytes(CANARY)
    inside = ("cache", "mnt", "native", "data", "mnt.log")
    before = outside(tmp_path, *inside)
    yield before
    assert {name: entry for name, entry in outside(tmp_path, *inside).items() if name != "mnt.log"} == before


@pytest.fixture(params=["memory", "sqlite"])
def tree(request: pytest.FixtureRequest, tmp_path: Path, beside: object) -> Iterator[AnyFs]:
    """With symlinks that lead out and in circles."""
    fs: AnyFs
    fs = MemoryFs(clock=FakeClock()) if request.param == "memory" else SqliteFs.open(tmp_path / "cache", clock=FakeClock())
    for name, target in (("link", os.fsencode(tmp_path)), ("up", b"../.."), ("self", b"self")):
        fs.put_symlink(f"/{name}", target, expected=None)
    yield fs
    fs.close()
    if request.param == "sqlite":
        assert check(tmp_path / "cache") == []


def refused_or(call: Callable[[], object]) -> object:
    """What a call gives; a refusal of this layer is fine, anything else is not."""
    try:
        return call()
    except MemdirError as error:
        return error


def every_name(fs: AnyFs) -> Iterator[bytes]:
    stack = [ROOT_INO]
    while stack:
        for entry in fs.readdir(stack.pop()):
            yield entry.name
            if entry.inode.is_dir:
                stack.append(entry.inode.ino)


def test_there_are_enough_vectors() -> None:
    assert len(VECTORS) == len(set(VECTORS)) >= 500


@pytest.mark.promise("exercise.escapes")
def test_no_path_from_the_server_leads_out(tree: AnyFs) -> None:
    for vector in VECTORS:
        for path in (vector, f"/{vector}", f"/inside/{vector}"):
            for call in (
                lambda path=path: tree.fact(path),
                lambda path=path: tree.children(path),
                lambda path=path: tree.is_local_only(path),
                lambda path=path: tree.put_file(path, [b"escaped"], mode=0o644, mtime_ns=0, expected=None),
                lambda path=path: tree.put_dir(path + "/sub", mode=0o755, expected=None),
                lambda path=path: tree.put_symlink(path + "-s", b"/etc", expected=None),
            ):
                refused_or(call)
            fact = refused_or(lambda path=path: tree.fact(path))
            if fact is not None and not isinstance(fact, MemdirError):
                assert paths.checked(fact.path) == fact.path  # type: ignore[attr-defined]
                if fact.path in ("/link", "/up", "/self"):  # type: ignore[attr-defined]
                    continue
                refused_or(lambda fact=fact, path=path: tree.move(path, path + "-moved", expected=fact))
                refused_or(lambda fact=fact, path=path: tree.delete(path, expected=fact))
    names = list(every_name(tree))
    assert len(names) > 500
    assert [name for name in names if name in (b"", b".", b"..") or b"/" in name or b"\0" in name or len(name) > 255] == []
    for name in ("link", "up", "self"):
        assert tree.lookup(ROOT_INO, name.encode()).is_symlink  # nothing was put behind or in the place of one


@pytest.mark.promise("exercise.escapes")
def test_a_path_is_refused_with_a_reason_or_kept_as_it_is() -> None:
    for vector in VECTORS:
        found = refused_or(lambda vector=vector: paths.checked(vector))
        if isinstance(found, MemdirError):
            assert found.message, vector
            continue
        parts = str(found).split("/")[1:]
        assert ".." not in parts
        assert "\0" not in str(found)
        assert found == paths.checked(str(found))
        assert paths.decode(paths.encode(str(found))) == found


@pytest.mark.promise("exercise.escapes")
@pytest.mark.parametrize("profile", ["fast", "observed"])
def test_no_name_in_a_request_leads_out(profile: str, beside: object) -> None:
    """Names that system calls cannot bring: with slashes, NULs, dots."""
    fs = MemoryFs(clock=FakeClock())
    dispatcher = Dispatcher(fs, FuseOptions(profile=Profile(profile)), FakeClock())

    def ask(op: int, body: bytes) -> int:
        message = request(op, ROOT_INO, body)
        answer = dispatcher.answer(memoryview(message), len(message))
        assert answer is not None
        return -abi.OUT_HEADER.unpack_from(answer if isinstance(answer, bytes) else answer[0])[1]

    init = load(profile)[0]
    dispatcher.answer(memoryview(init), len(init))
    for number, vector in enumerate(VECTORS):
        name = vector.encode("utf-8", "surrogatepass") if not _is_plain(vector) else paths.encode(vector)
        for op, body in (
            (Op.MKNOD, abi.MKNOD_IN.pack(stat.S_IFREG | 0o644, 0, 0, 0) + name + b"\0"),
            (Op.CREATE, abi.CREATE_IN.pack(os.O_RDWR, 0o644, 0, 0) + b"c" + name + b"\0"),
            (Op.MKDIR, abi.MKDIR_IN.pack(0o755, 0) + b"d" + name + b"\0"),
            (Op.SYMLINK, b"s%d" % number + b"\0" + name + b"\0"),
            (Op.RENAME2, abi.RENAME2_IN.pack(ROOT_INO, 0, 0) + b"s%d" % number + b"\0r" + name + b"\0"),
            (Op.LOOKUP, name + b"\0"),
        ):
            assert ask(op, body) in _ANSWERS, (vector, op)
    names = list(every_name(fs))
    assert len(names) > 200
    assert [name for name in names if name in (b"", b".", b"..") or b"/" in name or b"\0" in name or len(name) > 255] == []


_ANSWERS = (
    0, errno.EIO, errno.ENOSYS, errno.EINVAL, errno.ENOENT, errno.EEXIST, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EBUSY,
    errno.EISDIR,
)  # fmt: skip


def _is_plain(text: str) -> bool:
    return not any(0xD800 <= ord(letter) < 0xDC80 or 0xDD00 <= ord(letter) <= 0xDFFF for letter in text)


@pytest.mark.mount
@pytest.mark.promise("exercise.escapes")
def test_odd_names_in_a_mount_are_only_names(tmp_path: Path, beside: object, own: OwnMount) -> None:
    """Every vector as one name and as the target of a symlink, byte by byte, also after a remount."""
    expected: dict[bytes, bytes] = {}
    for number, vector in enumerate(VECTORS):
        raw = vector.encode("utf-8", "surrogateescape" if _is_plain(vector) else "surrogatepass").replace(b"\0", b"")
        name = raw.replace(b"/", b"\\")[:255]
        if name in (b"", b".", b"..") or name in expected:
            continue
        place = os.path.join(os.fsencode(own.path), name)
        with open(place, "xb") as handle:
            handle.write(b"%d" % number)
        expected[name] = b"%d" % number
        if 0 < len(raw) < 4096:
            os.symlink(raw, os.path.join(os.fsencode(own.path), b"link-%d" % number))
            assert os.readlink(os.path.join(os.fsencode(own.path), b"link-%d" % number)) == raw
    assert len(expected) > 350
    own.again("clean")
    listed = [name for name in os.listdir(os.fsencode(own.path)) if not name.startswith(b"link-")]
    assert sorted(listed) == sorted(expected)
    for name, text in expected.items():
        assert Path(os.fsdecode(os.path.join(os.fsencode(own.path), name))).read_bytes() == text
    assert set(os.listdir(os.fsencode(own.data))) & set(expected) == set(), "a name from the mount stands in the cache folder"
