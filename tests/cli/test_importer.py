"""Importing a folder: what comes in, what stays out and why, and that the source is never touched."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.daemon.importer import ImportReport, ImportStoppedError, import_folder
from memdir.fs.errors import FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO, Data, Inode, Owner, RemoteFile

SECRET = "ghp" + "_" + "a1B2" * 9


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    return folder


@pytest.fixture
def fs() -> Iterator[MemoryFs]:
    made = MemoryFs(uid=os.getuid(), gid=os.getgid())
    yield made
    made.close()


def write(root: Path, path: str, content: bytes | str = b"text\n") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def at(fs: MemoryFs, path: str) -> Inode:
    inode = fs.get(ROOT_INO)
    for name in filter(None, path.split("/")):
        inode = fs.lookup(inode.ino, os.fsencode(name))
    return inode


def content(fs: MemoryFs, path: str) -> bytes:
    inode = at(fs, path)
    data = fs.read(inode.ino, 0, inode.size)
    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else b"".join(bytes(piece) for piece in data)


def tree(fs: MemoryFs, ino: int = ROOT_INO, prefix: str = "") -> set[str]:
    found = set()
    for entry in fs.readdir(ino):
        path = prefix + os.fsdecode(entry.name)
        found.add(path)
        if entry.inode.is_dir:
            found |= tree(fs, entry.inode.ino, path + "/")
    return found


def skipped(report: ImportReport) -> dict[str, str]:
    return {entry.path: entry.reason for entry in report.skipped}


def test_files_folders_and_links_come_in_with_modes_and_times(source: Path, fs: MemoryFs) -> None:
    write(source, "a.md", "hello\n").chmod(0o640)
    write(source, "deep/er/b.sh", "#!/bin/sh\n").chmod(0o755)
    write(source, "empty", b"")
    (source / "hollow").mkdir(mode=0o750)
    (source / "link").symlink_to("deep/er/b.sh")
    os.utime(source / "a.md", ns=(1_600_000_000_123_456_789, 1_500_000_000_987_654_321))
    os.utime(source / "deep", ns=(1, 1_400_000_000_000_000_001))
    report = import_folder(fs, source)
    assert tree(fs) == {"a.md", "deep", "deep/er", "deep/er/b.sh", "empty", "hollow", "link"}
    assert content(fs, "a.md") == b"hello\n"
    assert at(fs, "a.md").mtime_ns == 1_500_000_000_987_654_321
    assert at(fs, "deep").mtime_ns == 1_400_000_000_000_000_001
    assert stat.S_IMODE(at(fs, "a.md").mode) == 0o640
    assert stat.S_IMODE(at(fs, "deep/er/b.sh").mode) == 0o755
    assert stat.S_IMODE(at(fs, "hollow").mode) == 0o750
    assert fs.readlink(at(fs, "link").ino) == b"deep/er/b.sh"
    assert (report.files, report.folders, report.symlinks, report.size_bytes) == (3, 3, 1, 16)
    assert (report.skipped, report.remarks) == ([], [])


def test_a_read_only_folder_comes_in_with_its_files(source: Path, fs: MemoryFs) -> None:
    write(source, "locked/a.md")
    (source / "locked").chmod(0o500)
    import_folder(fs, source)
    assert content(fs, "locked/a.md") == b"text\n"
    assert stat.S_IMODE(at(fs, "locked").mode) == 0o500
    (source / "locked").chmod(0o700)


def test_odd_names_come_in_byte_for_byte(source: Path, fs: MemoryFs) -> None:
    names = [
        b"caf\xe9.md",
        "記憶.md".encode(),
        b"new\nline",
        b"-rf",
        b"a" * 255,
        b" ",
        "e\u0301.md".encode(),
        "\u00e9.md".encode(),
    ]
    for name in names:
        (Path(os.fsdecode(os.path.join(os.fsencode(source), name)))).write_bytes(name)
    import_folder(fs, source)
    assert {entry.name for entry in fs.readdir(ROOT_INO)} == set(names)


def test_a_large_file_comes_in_whole(source: Path, fs: MemoryFs) -> None:
    data = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(100_000))
    write(source, "big.bin", data)
    report = import_folder(fs, source)
    assert content(fs, "big.bin") == data
    assert report.size_bytes == len(data)


def test_holes_stay_holes_and_read_as_zeros(source: Path, fs: MemoryFs) -> None:
    with open(source / "sparse", "wb") as handle:
        handle.seek(8 << 20)
        handle.write(b"end")
        handle.truncate(12 << 20)
    import_folder(fs, source)
    assert at(fs, "sparse").size == 12 << 20
    assert content(fs, "sparse") == b"\0" * (8 << 20) + b"end" + b"\0" * ((4 << 20) - 3)


def test_hard_links_stay_one_file(source: Path, fs: MemoryFs) -> None:
    first = write(source, "a.md", "shared")
    os.link(first, source / "z.md")
    import_folder(fs, source)
    assert at(fs, "a.md").ino == at(fs, "z.md").ino
    assert at(fs, "a.md").nlink == 2


def test_ignored_paths_stay_out_with_the_pattern_as_reason(source: Path, fs: MemoryFs) -> None:
    write(source, ".gitignore", "*.log\nnode_modules/\n")
    write(source, ".memdirignore", "private/\n")
    write(source, "a.log")
    write(source, "node_modules/x/y.js")
    write(source, "private/diary.md")
    write(source, "sub/.gitignore", "draft*\n")
    write(source, "sub/draft1.md")
    report = import_folder(fs, source)
    assert tree(fs) == {".gitignore", ".memdirignore", "sub", "sub/.gitignore"}
    assert skipped(report) == {
        "a.log": "ignored by .gitignore: *.log",
        "node_modules/": "ignored by .gitignore: node_modules/",
        "private/": "ignored by .memdirignore: private/",
        "sub/draft1.md": "ignored by sub/.gitignore: draft*",
    }


def test_secrets_stay_out_and_are_not_repeated(source: Path, fs: MemoryFs) -> None:
    write(source, "notes.md", f"my key:\n{SECRET}\n")
    write(source, "big.txt", b"ordinary line\n" * 100_000 + SECRET.encode())
    write(source, ".env", "A=1")
    write(source, "keys/id_rsa", "x")
    write(source, "fine.md", "nothing here")
    report = import_folder(fs, source)
    assert tree(fs) == {"keys", "fine.md"}
    reasons = skipped(report)
    assert reasons["notes.md"] == "secret: GitHub token in line 2"
    assert reasons["big.txt"] == "secret: GitHub token in line 100001"
    assert reasons[".env"].startswith("secret: ")
    assert SECRET not in repr(report)


def test_version_control_folders_stay_out_with_a_reason(source: Path, fs: MemoryFs) -> None:
    write(source, ".git/config")
    write(source, "sub/.git", "gitdir: ../x")
    write(source, ".gitattributes")
    report = import_folder(fs, source)
    assert tree(fs) == {".gitattributes", "sub"}
    assert set(skipped(report)) == {".git/", "sub/.git"}
    assert "version control" in skipped(report)[".git/"]


def test_names_that_memdir_provides_stay_out_at_the_root_only(source: Path, fs: MemoryFs) -> None:
    write(source, "profile.md")
    write(source, ".memdir/x")
    write(source, "sub/profile.md")
    report = import_folder(fs, source)
    assert tree(fs) == {"sub", "sub/profile.md"}
    assert set(skipped(report)) == {"profile.md", ".memdir/"}


def test_special_files_stay_out(source: Path, fs: MemoryFs) -> None:
    os.mkfifo(source / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(source)
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
    report = import_folder(fs, source)
    assert tree(fs) == set()
    assert skipped(report) == {
        "pipe": "a named pipe, which a memory does not hold",
        "sock": "a socket, which a memory does not hold",
    }


def test_links_that_lead_out_come_in_and_are_listed(source: Path, fs: MemoryFs) -> None:
    (source / "absolute").symlink_to("/etc/passwd")
    (source / "up").symlink_to("../elsewhere")
    (source / "dangling").symlink_to("nowhere")
    (source / "sub").mkdir()
    (source / "sub" / "back").symlink_to("../dangling")
    report = import_folder(fs, source)
    assert report.symlinks == 4
    assert {entry.path for entry in report.remarks} == {"absolute", "up"}
    assert fs.readlink(at(fs, "absolute").ino) == b"/etc/passwd"


def test_a_link_to_a_folder_is_not_walked_into(source: Path, fs: MemoryFs, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md")
    (source / "door").symlink_to(tmp_path / "outside")
    (source / "loop").symlink_to(".")
    import_folder(fs, source)
    assert tree(fs) == {"door", "loop"}


def test_what_is_on_the_server_only_is_compared_by_its_hash(source: Path, fs: MemoryFs) -> None:
    for name, data in (("same.md", b"the same"), ("other.md", b"one size")):
        write(source, name, "the same")
        file = RemoteFile(
            path=f"/{name}", size=8, content_hash=hashlib.sha256(data).hexdigest(), mode=0o644, mtime_ns=1
        )  # fmt: skip
        fs.put_absent(f"/{name}", file, expected=None)
    report = import_folder(fs, source)
    assert report.unchanged == 1
    assert set(skipped(report)) == {"other.md"}


def test_what_stands_in_the_memory_is_kept(source: Path, fs: MemoryFs) -> None:
    write(source, "a.md", "from the folder")
    write(source, "b.md", "the same")
    write(source, "c", "a file here")
    (source / "d").mkdir()
    owner = Owner(0, 0)
    for name, data in ((b"a.md", b"from the memory"), (b"b.md", b"the same"), (b"d", b"a file there")):
        fs.write(fs.create(ROOT_INO, name, stat.S_IFREG | 0o644, owner).ino, 0, data)
    fs.mkdir(ROOT_INO, b"c", 0o755, owner)
    report = import_folder(fs, source)
    assert content(fs, "a.md") == b"from the memory"
    assert content(fs, "d") == b"a file there"
    assert at(fs, "c").is_dir
    assert report.unchanged == 1
    assert set(skipped(report)) == {"a.md", "c", "d/"}


def test_importing_twice_changes_nothing(source: Path, fs: MemoryFs) -> None:
    write(source, "a.md")
    write(source, "sub/b.md")
    (source / "link").symlink_to("a.md")
    import_folder(fs, source)
    before = {path: (at(fs, path).ino, at(fs, path).mtime_ns) for path in tree(fs)}
    again = import_folder(fs, source)
    assert (again.files, again.folders, again.symlinks, again.unchanged, again.skipped) == (0, 0, 0, 3, [])
    assert {path: (at(fs, path).ino, at(fs, path).mtime_ns) for path in tree(fs)} == before


def test_the_source_is_not_touched(source: Path, fs: MemoryFs) -> None:
    write(source, "sub/a.md", f"x {SECRET}")
    write(source, "sub/b.md")
    os.symlink("b.md", source / "sub" / "link")

    def snapshot() -> dict[str, tuple[int, int, int, int]]:
        infos = {str(path): os.lstat(path) for path in sorted(source.rglob("*"))}
        return {path: (info.st_ino, info.st_mode, info.st_mtime_ns, info.st_size) for path, info in infos.items()}

    before = snapshot()
    import_folder(fs, source)
    assert snapshot() == before


def test_a_very_deep_folder_comes_in(source: Path, fs: MemoryFs) -> None:
    """Deeper than Python may recurse."""
    folders = [source]
    for _ in range(1200):
        folders.append(folders[-1] / "d")
        folders[-1].mkdir()
    file = write(folders[-1], "a.md", "bottom")
    try:
        import_folder(fs, source)
        assert content(fs, "/".join(["d"] * 1200) + "/a.md") == b"bottom"
    finally:
        file.unlink()
        for folder in reversed(folders):
            folder.rmdir()


class _Failing(MemoryFs):
    """A memory whose disk is full after `room` more bytes."""

    room = 0

    def write(self, ino: int, offset: int, data: Data) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise FsError(errno.ENOSPC)
        return super().write(ino, offset, data)


def test_a_full_disk_stops_the_import_and_leaves_no_half_file(source: Path) -> None:
    write(source, "a.md", b"x" * 600)
    write(source, "b.md", b"y" * 600)
    fs = _Failing(uid=0, gid=0)
    fs.room = 1000
    with pytest.raises(ImportStoppedError, match=r"stopped at b\.md: No space left"):
        import_folder(fs, source)
    assert tree(fs) == {"a.md"}
    fs.room = 10_000
    assert import_folder(fs, source).files == 1
    assert content(fs, "b.md") == b"y" * 600
    fs.close()


def test_a_half_file_of_a_killed_import_is_taken_away(source: Path, fs: MemoryFs) -> None:
    fs.write(fs.create(ROOT_INO, b".#memdir-import", stat.S_IFREG | 0o600, Owner(0, 0)).ino, 0, b"half")
    write(source, "a.md")
    import_folder(fs, source)
    assert tree(fs) == {"a.md"}


def test_a_file_that_cannot_be_read_is_listed(source: Path, fs: MemoryFs, monkeypatch: pytest.MonkeyPatch) -> None:
    write(source, "a.md")
    write(source, "b.md")
    real_open = os.open

    def refusing(path: object, flags: int, *rest: int, **more: int) -> int:
        if str(os.fsdecode(path) if isinstance(path, bytes) else path).endswith("a.md"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_open(path, flags, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    report = import_folder(fs, source)
    monkeypatch.undo()
    assert tree(fs) == {"b.md"}
    assert skipped(report) == {"a.md": "cannot be read: Permission denied"}


def test_progress_is_told_of_every_file(source: Path, fs: MemoryFs) -> None:
    for number in range(5):
        write(source, f"{number}.md", b"x" * 10)
    seen: list[tuple[int, int, str]] = []
    import_folder(fs, source, progress=lambda files, size, path: seen.append((files, size, path)))
    assert seen == [(number, number * 10, f"{number}.md") for number in range(5)]


def test_every_imported_path_becomes_an_intent_but_the_temporary_one_never(source: Path, fs: MemoryFs) -> None:
    write(source, "a.md")
    write(source, "sub/b.md")
    import_folder(fs, source)
    paths = {intent.path for intent in fs.intents(0, 1000)}
    assert {"/a.md", "/sub/b.md"} <= paths
    assert not any("memdir-import" in path for path in paths)
