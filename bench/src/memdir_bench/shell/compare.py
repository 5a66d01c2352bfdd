"""Runs a script in real bash and in the in-process shell on the same files, and says where they differ."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.fs.memory import MemoryFs
from memdir.shell.files import Files
from memdir.shell.shell import Shell
from memdir_bench.shell.tree import FILES, MODIFIED_S

_TIMEOUT_S: Final = 20.0
ENV: Final = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "USER": "user", "HOME": "/tmp"}  # noqa: S108  a folder that both have


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script did. `files`: path -> contents, of a link `-> target`, of a folder None."""

    stdout: str
    exit_code: int
    files: dict[str, bytes | None]
    stderr: str = ""


def in_bash(script: str) -> Outcome:
    """What real bash and the programs of this machine do."""
    root = Path(tempfile.mkdtemp(prefix="memdir-shell-"))
    folder = root / "work"
    try:
        for path, text in FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            os.utime(file, (MODIFIED_S, MODIFIED_S))
        for inner in (folder, *folder.rglob("*/")):
            os.utime(inner, (MODIFIED_S, MODIFIED_S))
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=folder, env=ENV | {"PATH": os.environ["PATH"]}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        text, wrong = (out.decode("utf-8", "replace").replace(str(folder), "/work") for out in (done.stdout, done.stderr))
        return Outcome(_same(text), done.returncode, _on_disk(folder), wrong)
    finally:
        shutil.rmtree(root)


def in_process(script: str) -> Outcome:
    """What the in-process shell does."""
    files = Files(MemoryFs(sync=False))
    for path, text in FILES.items():
        files.mkdir(f"/{path}".rpartition("/")[0] or "/", parents=True)
        files.write(f"/{path}", text.encode())
    for inner in {Path(path) for path in FILES}.union(*(Path(path).parents for path in FILES)):
        files.set_times(str("/" / inner), mtime_ns=MODIFIED_S * 1_000_000_000)
    with Shell.over(files, name="work", env=ENV) as shell:
        done = shell.run_sync(script)
    return Outcome(_same(done.stdout), done.exit_code, _in_memory(files), done.stderr)


def _same(text: str) -> str:
    return _MOMENT.sub(b"TIME", text.encode()).decode()


def difference(expected: Outcome, got: Outcome) -> str:
    """Where they differ: "" or "stdout", "exit code", "files"."""
    parts = [
        ("stdout", expected.stdout != got.stdout),
        ("exit code", expected.exit_code != got.exit_code),
        ("files", expected.files != got.files),
    ]
    return ", ".join(name for name, differs in parts if differs)


_MOMENT: Final = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9}")
"""A time that no two runs share, as `diff -u` and `stat` write it."""


def plain(name: str, data: bytes) -> bytes:
    """Contents without what no two runs share: times, and how an archive was packed."""
    if name.endswith(".gz") and not name.endswith(".tar.gz"):
        return gzip.decompress(data)
    if name.endswith((".tar", ".tgz", ".tar.gz", ".tbz")):
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            return "\n".join(sorted(f"{one.name} {one.size}" for one in archive)).encode()
    return _MOMENT.sub(b"TIME", data)


def _on_disk(folder: Path) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        found[name] = (
            b"-> " + os.fsencode(path.readlink())
            if path.is_symlink()
            else None
            if path.is_dir()
            else plain(name, path.read_bytes())
        )
    return found


def _in_memory(files: Files, folder: str = "") -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for entry in files.entries(folder or "/"):
        path = f"{folder}/{entry.name}"
        if entry.inode.is_dir:
            found[path[1:]] = None
            found |= _in_memory(files, path)
        else:
            found[path[1:]] = (
                b"-> " + files.readlink(path).encode() if entry.inode.is_symlink else plain(path, files.read(path))
            )
    return found
