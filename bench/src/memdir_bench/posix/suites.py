"""The suites: workloads that build on each other in one folder. A suite runs in a new folder of a target, from the first step
to the last; the runner leaves out reads nobody asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir_bench.posix.sizes import FILES_PER_FOLDER, SMALL_FILE_BYTES, Sizes
from memdir_bench.posix.steps import Program, Step, count_files, expect
from memdir_bench.posix.streams import stream
from memdir_bench.posix.trees import NEEDLE, Fixtures

_SAVED_BYTES: Final = 1080


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """`names` are the workloads it can yield."""

    name: str
    names: tuple[str, ...]
    steps: Callable[[Path, Fixtures, Sizes], Iterator[Step]]


def small_file_paths(folder: Path, count: int) -> list[str]:
    """Folders of a hundred, as everywhere in this benchmark."""
    return [f"{folder}/d{number // FILES_PER_FOLDER:04d}/file-{number:06d}.txt" for number in range(count)]


def write_new(paths: list[str], data: bytes, *, exclusive: bool = True) -> None:
    """open(O_CREAT), write, close."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if exclusive else os.O_TRUNC)
    for path in paths:
        fd = os.open(path, flags, 0o644)
        os.write(fd, data)
        os.close(fd)


def read_each(paths: list[str], size_bytes: int) -> None:
    """open, read, close."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        length = len(os.read(fd, 65536))
        os.close(fd)
        if length != size_bytes:
            expect(f"bytes of {path}", length, size_bytes)


def stat_each(paths: list[str]) -> None:
    for path in paths:
        os.stat(path)


def small(folder: Path, _fixtures: Fixtures, sizes: Sizes) -> Iterator[Step]:
    """Files of 1 KiB, one system call after the other."""
    paths = small_file_paths(folder, sizes.files)
    for parent in sorted({os.path.dirname(path) for path in paths}):
        os.mkdir(parent)
    count = len(paths)
    data = (b"memory " * (SMALL_FILE_BYTES // 7 + 1))[:SMALL_FILE_BYTES]
    saved = (b"a new version of this note\n" * 40)[:_SAVED_BYTES]

    def save() -> None:
        for path in paths:
            write_new([f"{path}.tmp"], saved, exclusive=False)
            os.rename(f"{path}.tmp", path)

    def read() -> None:
        read_each(paths, SMALL_FILE_BYTES)

    def stat() -> None:
        stat_each(paths)

    def remove() -> None:
        for path in paths:
            os.unlink(path)

    def check_saved() -> None:
        read_each(paths, len(saved))

    yield Step(name="create", ops=count, unit="file", changes=True, work=lambda: write_new(paths, data), check=read)
    yield Step(name="stat_warm", ops=count, unit="file", prepare=stat, work=stat)
    yield Step(name="open_read_warm", ops=count, unit="file", prepare=read, work=read)
    yield Step(name="lookup", ops=count, unit="file", cold="names", work=stat)
    yield Step(name="stat_cold", ops=count, unit="file", cold="all", work=stat)
    yield Step(name="open_read_cold", ops=count, unit="file", cold="all", work=read)
    yield Step(name="save_by_rename", ops=count, unit="file", changes=True, work=save, check=check_saved)
    yield Step(
        name="unlink", ops=count, unit="file", changes=True, work=remove,
        check=lambda: expect("files left", count_files(folder), 0),
    )  # fmt: skip


def documents(folder: Path, fixtures: Fixtures, _sizes: Sizes) -> Iterator[Step]:
    """10,000 notes: copied in, searched with the usual programs, deleted."""
    tree = fixtures.documents
    place, empty = folder / "documents", str(fixtures.empty)
    copy = Program("cp", "-r", str(tree.folder), str(place))
    yield Step(
        name="copy_documents", ops=tree.files, unit="file", changes=True, work=copy, size_bytes=tree.size_bytes,
        check=lambda: expect("copied files", count_files(place), tree.files),
    )  # fmt: skip
    tools: list[tuple[str, tuple[str, ...], Callable[[bytes], int], int]] = [
        ("find", ("find",), lambda out: out.count(b".md\n"), tree.files),
        ("ls_lr", ("ls", "-lR"), lambda out: out.count(b".md\n"), tree.files),
        ("grep_r", ("grep", "-rl", NEEDLE), lambda out: out.count(b"\n"), tree.needles),
    ]
    if shutil.which("rg"):
        tools.append(("ripgrep", ("rg", "-l", NEEDLE), lambda out: out.count(b"\n"), tree.needles))
    for warmth in ("warm", "cold"):
        for name, command, count, wanted in tools:
            codes = (0, 1) if NEEDLE in command else (0,)  # a search exits 1 when there is nothing to find
            run, load = Program(*command, str(place), codes=codes), Program(*command, empty, codes=codes)
            yield Step(
                name=f"{name}_{warmth}", ops=tree.files, unit="file", work=run, load=load,
                prepare=run if warmth == "warm" else load, cold="" if warmth == "warm" else "all",
                check=_checked(name, run, count, wanted),
            )  # fmt: skip
    yield Step(
        name="rm_rf", ops=tree.files, unit="file", changes=True, work=Program("rm", "-rf", str(place)),
        check=lambda: expect("entries left", len(os.listdir(folder)), 0),
    )  # fmt: skip


def _checked(name: str, run: Program, count: Callable[[bytes], int], wanted: int) -> Callable[[], None]:
    return lambda: expect(f"files that {name} listed", count(run.output), wanted)


def sources(folder: Path, fixtures: Fixtures, _sizes: Sizes) -> Iterator[Step]:
    """A source tree: unpacked, cloned, looked at by git."""
    tree = fixtures.sources
    unpacked, clone = folder / "unpacked", folder / "clone"
    unpacked.mkdir()
    yield Step(
        name="untar", ops=tree.files, unit="file", changes=True, size_bytes=tree.size_bytes,
        work=Program("tar", "-xf", str(fixtures.archive), "-C", str(unpacked)),
        check=lambda: expect("unpacked files", count_files(unpacked), tree.files),
    )  # fmt: skip
    if fixtures.repository is None:
        return
    yield Step(
        name="git_clone", ops=tree.files, unit="file", changes=True,
        work=Program("git", "clone", "-q", "--no-hardlinks", str(fixtures.repository), str(clone)),
        check=lambda: expect("cloned files", count_files(clone), tree.files),
    )  # fmt: skip
    status = Program("git", "-C", str(clone), "status", "--porcelain")
    load = Program("git", "-C", str(fixtures.tiny_repository), "status", "--porcelain")

    def check() -> None:
        expect("changes git sees in a new clone", status.lines, 0)

    yield Step(name="git_status_warm", ops=tree.files, unit="file", prepare=status, work=status, check=check)
    yield Step(name="git_status_cold", ops=tree.files, unit="file", prepare=status, cold="all", load=load, work=status,
               check=check)  # fmt: skip


SUITES: Final = (
    Suite(
        name="small",
        names=(
            "create", "stat_warm", "stat_cold", "lookup", "open_read_warm", "open_read_cold", "save_by_rename", "unlink",
        ),
        steps=small,
    ),
    Suite(
        name="documents",
        names=(
            "copy_documents", "find_warm", "find_cold", "ls_lr_warm", "ls_lr_cold", "grep_r_warm", "grep_r_cold",
            "ripgrep_warm", "ripgrep_cold", "rm_rf",
        ),
        steps=documents,
    ),
    Suite(name="sources", names=("untar", "git_clone", "git_status_warm", "git_status_cold"), steps=sources),
    Suite(
        name="stream",
        names=("stream_write", "stream_read_warm", "stream_read_cold", "random_read_warm", "random_read_cold"),
        steps=stream,
    ),
)  # fmt: skip

WORKLOADS: Final = tuple(name for suite in SUITES for name in suite.names)
