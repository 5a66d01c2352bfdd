"""The trees that are copied, unpacked, searched and cloned: generated, the same for the same seed, on the native disk."""

from __future__ import annotations

import os
import random
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir_bench.corpus import SUBJECTS, sentence
from memdir_bench.posix.sizes import Sizes

NEEDLE: Final = "quicksilver"
"""What the searches look for; in no generated sentence but those of every `_NEEDLE_EVERY`th file."""
_NEEDLE_EVERY: Final = 50
_POOL_LINES: Final = 3000
_PROGRAM_LIMIT_S: Final = 600.0
_EPOCH_S: Final = 1_767_225_600
"""2026-01-01, the time of every generated file in the archive and of the commits."""

GIT_ENV: Final[Mapping[str, str]] = {
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@localhost",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@localhost",
    "GIT_AUTHOR_DATE": f"{_EPOCH_S} +0000",
    "GIT_COMMITTER_DATE": f"{_EPOCH_S} +0000",
    "LC_ALL": "C",
}
"""Nobody's own git settings take part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A folder with what is known about it."""

    folder: Path
    files: int
    size_bytes: int
    needles: int
    """Files that hold the needle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixtures:
    """Everything the workloads start from."""

    empty: Path
    """An empty folder: programs run on it first, so that a cold run does not measure loading the program."""
    documents: Tree
    archive: Path
    sources: Tree
    repository: Path | None
    """None without git."""
    tiny_repository: Path | None


def environment() -> dict[str, str]:
    """For every program a workload runs."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), **GIT_ENV}


def build(folder: Path, sizes: Sizes, *, seed: int, has_git: bool, wanted: frozenset[str]) -> Fixtures:
    """All trees below `folder`. `wanted` names the suites: what none of them uses is made of the fewest files."""
    lines = _pool(seed)
    few = 8
    empty = folder / "empty"
    empty.mkdir()
    documents = _documents(folder / "documents", lines, sizes.documents if "documents" in wanted else few, seed=seed)
    sources = _sources(folder / "sources", lines, sizes.sources if "sources" in wanted else few, seed=seed)
    archive = folder / "sources.tar"
    _pack(sources.folder, archive)
    repository = tiny = None
    if has_git and "sources" in wanted:
        repository = _repository(sources.folder, folder / "repository")
        (tiny := folder / "tiny").mkdir()
        _git(tiny, "init", "-q")
    return Fixtures(
        empty=empty, documents=documents, archive=archive, sources=sources, repository=repository, tiny_repository=tiny
    )


def _pool(seed: int) -> list[str]:
    rng = random.Random(f"{seed}/lines")  # noqa: S311  reproducible text, not a secret
    return [sentence(rng, SUBJECTS[number % len(SUBJECTS)]) for number in range(_POOL_LINES)]


def _text(rng: random.Random, lines: list[str], size_bytes: int, *, needle: bool) -> bytes:
    """Whole sentences, about `size_bytes` (a sentence has some 110)."""
    chosen = rng.choices(lines, k=max(1, size_bytes // 110))
    if needle:
        chosen[len(chosen) // 2] += f" The {NEEDLE} ran out."
    return ("\n".join(chosen) + "\n").encode("utf-8")


def _lognormal(rng: random.Random, median: float, sigma: float, low: int, high: int) -> int:
    """File sizes in real trees are about log-normal (Agrawal et al., A Five-Year Study of File-System Metadata, 2007)."""
    return int(min(high, max(low, rng.lognormvariate(0.0, sigma) * median)))


def _documents(folder: Path, lines: list[str], count: int, *, seed: int) -> Tree:
    """Notes in folders of about 50, median 3 KiB."""
    rng = random.Random(f"{seed}/documents")  # noqa: S311
    size_bytes = needles = 0
    for number in range(count):
        place = folder / f"year-{2000 + number // 500:04d}" / f"topic-{number // 50 % 10:02d}"
        if number % 50 == 0:
            place.mkdir(parents=True, exist_ok=True)
        needle = number % _NEEDLE_EVERY == 7
        needles += needle
        text = _text(rng, lines, _lognormal(rng, 3072, 0.9, 200, 65536), needle=needle)
        size_bytes += (place / f"note-{number:05d}.md").write_bytes(text)
    return Tree(folder=folder, files=count, size_bytes=size_bytes, needles=needles)


def _sources(folder: Path, lines: list[str], count: int, *, seed: int) -> Tree:
    """Like a program's source: packages two deep, median 4 KiB, some scripts, some binary files, a few large ones."""
    rng = random.Random(f"{seed}/sources")  # noqa: S311
    size_bytes = 0
    for number in range(count):
        place = folder / f"package_{number // 120:02d}" / f"part_{number // 12 % 10}"
        if number % 12 == 0:
            place.mkdir(parents=True, exist_ok=True)
        size = _lognormal(rng, 4096, 1.1, 100, 300_000)
        if number % 40 == 0:
            path, content = place / f"image_{number:04d}.bin", rng.randbytes(size)
        else:
            path, content = place / f"module_{number:04d}.py", _text(rng, lines, size, needle=False)
        size_bytes += path.write_bytes(content)
        if number % 25 == 0:
            path.chmod(0o755)
        os.utime(path, (_EPOCH_S, _EPOCH_S))
    return Tree(folder=folder, files=count, size_bytes=size_bytes, needles=0)


def _pack(folder: Path, archive: Path) -> None:
    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid, member.gid, member.uname, member.gname, member.mtime = os.getuid(), os.getgid(), "", "", _EPOCH_S
        return member

    with tarfile.open(archive, "w") as out:
        for name in sorted(os.listdir(folder)):
            out.add(folder / name, arcname=name, filter=plain)


def _repository(sources: Path, folder: Path) -> Path:
    """Two commits in one pack, as after a clone from a host."""
    subprocess.run(["cp", "-r", str(sources), str(folder)], check=True, timeout=_PROGRAM_LIMIT_S)
    _git(folder, "init", "-q", "-b", "main")
    for step in range(2):
        for path in sorted(folder.glob("package_*/*/*.py"))[step::10]:
            with path.open("a", encoding="utf-8") as out:
                out.write(f"# step {step}\n")
        _git(folder, "add", "-A")
        _git(folder, "commit", "-q", "-m", f"Step {step}")
    _git(folder, "gc", "-q")
    return folder


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", *arguments], cwd=folder, env=environment(), check=True, timeout=_PROGRAM_LIMIT_S, stdin=subprocess.DEVNULL,
        capture_output=True,
    )  # fmt: skip
