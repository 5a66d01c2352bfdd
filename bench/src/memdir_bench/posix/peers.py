"""Other FUSE filesystems to compare with: those that are installed, and libfuse's examples, compiled when a compiler is there.

Nothing is fetched. Debian: `apt-get install bindfs` for the first, `libfuse3-dev gcc pkg-config` for the others.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

EXAMPLE_FOLDERS: Final = (
    Path("/usr/share/doc/libfuse3-dev/examples"),
    Path("/usr/share/doc/libfuse-dev/examples"),
    Path("/usr/share/doc/fuse3-devel/example"),
)
_COMPILE_LIMIT_S: Final = 120.0
_HELPERS: Final = ("passthrough_helpers.h",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerProgram:
    """A program that can serve `source` at `mountpoint`."""

    name: str
    command: Callable[[Path, Path], list[str]]
    describes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One of libfuse's own programs."""

    name: str
    source: str
    compiler: str
    options: tuple[str, ...]
    arguments: Callable[[Path, Path], list[str]]
    describes: str


EXAMPLES: Final = (
    Example(
        name="passthrough_hp", source="passthrough_hp.cc", compiler="c++", options=("-std=c++17",),
        arguments=lambda source, place: [str(source), str(place)],
        describes="libfuse's passthrough_hp, C++",
    ),
    Example(
        name="passthrough", source="passthrough.c", compiler="cc",
        options=("-DHAVE_UTIMENSAT", "-DHAVE_SETXATTR", "-DHAVE_POSIX_FALLOCATE", "-DHAVE_COPY_FILE_RANGE"),
        arguments=lambda source, place: ["-f", "-o", f"modules=subdir,subdir={source}", str(place)],
        describes="libfuse's passthrough (path based), C, below its own subdir module",
    ),
    Example(
        name="passthrough_ll", source="passthrough_ll.c", compiler="cc", options=(),
        arguments=lambda source, place: ["-f", "-o", f"source={source},cache=always,timeout=86400", str(place)],
        describes="libfuse's passthrough_ll, C; each lookup searches a list of all inodes",
    ),
)  # fmt: skip
"""In the order of preference for the compiled reference."""

NAMES: Final = ("bindfs", *(example.name for example in EXAMPLES))
DEFAULT_NAMES: Final = ("bindfs", "passthrough_hp", "passthrough")
"""passthrough_ll only when it is asked for: its lookups are O(files)."""


def find(name: str, folder: Path) -> PeerProgram | str:
    """The program, compiled into `folder` where needed, or one line on why it is not there."""
    if name == "bindfs":
        return _bindfs()
    (example,) = (one for one in EXAMPLES if one.name == name)
    installed = shutil.which(name)
    if installed is not None:
        return _program(example, installed)
    source = _source(example.source)
    if source is None:
        return f"{name}: neither installed nor is its source (Debian: libfuse3-dev) in {EXAMPLE_FOLDERS[0]}"
    compiler = shutil.which(example.compiler)
    if compiler is None or shutil.which("pkg-config") is None:
        return f"{name}: {example.compiler} or pkg-config is missing, so it cannot be compiled"
    return _compile(example, source, compiler, folder)


def _bindfs() -> PeerProgram | str:
    binary = shutil.which("bindfs")
    if binary is None:
        return "bindfs: not installed"
    # It lets others in by default, which fusermount3 refuses an ordinary user unless /etc/fuse.conf says so.
    options = [] if os.geteuid() == 0 else ["--no-allow-other"]
    return PeerProgram(
        name="bindfs",
        command=lambda source, place: [binary, "-f", *options, str(source), str(place)],
        describes=f"{_first_line([binary, '--version'])}, default options",
    )


def _program(example: Example, binary: str) -> PeerProgram:
    def command(source: Path, place: Path) -> list[str]:
        return [binary, *example.arguments(source, place)]

    return PeerProgram(name=example.name, command=command, describes=example.describes)


def _source(name: str) -> Path | None:
    """Debian compresses large documents."""
    for folder in EXAMPLE_FOLDERS:
        for candidate in (folder / name, folder / f"{name}.gz"):
            if candidate.is_file():
                return candidate
    return None


def _compile(example: Example, source: Path, compiler: str, folder: Path) -> PeerProgram | str:
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "fuse3"], capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False
    )
    if flags.returncode != 0:
        return f"{example.name}: pkg-config does not know fuse3"
    build = folder / f"build-{example.name}"
    build.mkdir(parents=True, exist_ok=True)
    for name in (example.source, *_HELPERS):
        found = _source(name)
        if found is not None:
            content = found.read_bytes()
            (build / name).write_bytes(gzip.decompress(content) if found.suffix == ".gz" else content)
    binary = build / example.name
    options = ["-O2", "-w", *example.options]
    done = subprocess.run(
        [compiler, *options, str(build / example.source), "-o", str(binary), *flags.stdout.split()],
        capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[0]
        return f"{example.name}: {source} does not compile: {why}"
    program = _program(example, str(binary))
    version = _first_line(["pkg-config", "--modversion", "fuse3"])
    return PeerProgram(
        name=program.name, command=program.command, describes=f"{example.describes}; libfuse {version}, compiled with -O2"
    )


def _first_line(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_LIMIT_S, check=False)
    return (done.stdout.strip().splitlines() or ["unknown version"])[0]
