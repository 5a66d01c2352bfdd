"""Folders that tools made and can make again: they stay on this machine unless somebody asks for them.

What such a folder is, is told by what is in it and beside it, not by its name alone: an environment has a `pyvenv.cfg`, a
cache a `CACHEDIR.TAG` (bford.info/cachedir), `target` stands beside a `Cargo.toml`. A name that people give to folders of their
own (`build`, `dist`, `out`, `vendor`) counts only where a `.gitignore` above says that it is not kept, or where tools left
their mark in it. A pattern `!name/` in `.memdirignore` brings a folder back, `!*` all of them.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memdir.core.clock import Clock
from memdir.core.gitignore import GitIgnore
from memdir.core.ignore_rules import GIT_IGNORE, IGNORE_FILE_MAX_BYTES, MEMDIR_IGNORE
from memdir.core.sqlite import Database
from memdir.fs.errors import FsError
from memdir.fs.path import decode, encode, is_within, join, split
from memdir.fs.tree import LocalChangedError, SyncTree

if TYPE_CHECKING:
    from memdir.fs.types import LocalFact

FILES_COUNTED_MAX: Final = 200_000
_FOLDERS_MAX: Final = 4096
_FRESH_S: Final = 2.0
"""How long it counts what a folder was found to be: markers may come after the first files."""
_CACHE_TAG: Final = b"Signature: 8a477f597d28d172789f06886806bc55"

_BY_NAME: Final[Mapping[str, str]] = {
    **dict.fromkeys((".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", "CVS"), "a repository's own records"),
    **dict.fromkeys(("node_modules", "bower_components", "jspm_packages", ".pnpm-store"), "packages of JavaScript"),
    ".memdir-research": "the records of a research",
    **dict.fromkeys(("__pycache__", ".eggs", "__pypackages__"), "what Python makes"),
    **dict.fromkeys(
        (
            ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".hypothesis", ".ipynb_checkpoints", ".cache",
            ".import_linter_cache", ".parcel-cache", ".turbo", ".next", ".nuxt", ".svelte-kit", ".angular", ".gradle",
            ".terraform", ".direnv", ".stack-work", "dist-newstyle", "elm-stuff", ".dart_tool", ".zig-cache", "zig-cache",
            ".bundle", ".nyc_output", ".sass-cache", ".ccls-cache",
        ),
        "a cache",
    ),
}  # fmt: skip
_BY_MARK: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "pyvenv.cfg": ("a Python environment", frozenset({"pyproject.toml", "setup.py", "requirements.txt", ".git", "README.md"})),
    "conda-meta": ("a conda environment", frozenset()),
    "CMakeCache.txt": ("what CMake made", frozenset({"CMakeLists.txt", ".git"})),
    "build.ninja": ("what Ninja builds from", frozenset({"meson.build", "CMakeLists.txt", "BUILD.gn", ".git"})),
}
"""Something in the folder tells what it is, unless it is somebody's project as well: people build inside of their sources."""
_BESIDE: Final[Mapping[str, tuple[str, ...]]] = {
    "target": ("Cargo.toml", "pom.xml", "build.sbt", "project.clj"),
    "build": (
        "build.gradle", "build.gradle.kts", "setup.py", "pyproject.toml", "package.json", "CMakeLists.txt",
        "meson.build", "pubspec.yaml",
    ),
    "dist": ("package.json", "pyproject.toml", "setup.py", "setup.cfg"),
    "out": ("package.json", "build.gradle", "CMakeLists.txt"),
    "_build": ("mix.exs", "dune-project", "rebar.config", "conf.py", "Makefile"),
    "deps": ("mix.exs",),
    "vendor": ("composer.json", "go.mod", "Gemfile"),
    "Pods": ("Podfile",),
    "bin": ("*.csproj",),
    "obj": ("*.csproj",),
    "coverage": ("package.json",),
    "htmlcov": ("pyproject.toml", "setup.py", "setup.cfg"),
}  # fmt: skip
"""Names that tools use beside a manifest."""
_TOOLS_OWN: Final = frozenset({"target", "Pods", "htmlcov"})
"""Of them those that nobody gives to a folder of their own there."""
_LEFT_IN: Final = frozenset(
    {"autoload.php", "modules.txt", ".rustc_info.json", "lcov.info", "project.assets.json", "bdist.linux-x86_64", "doctrees"}
)
"""What tools leave in folders with the other names."""
_PACKAGE: Final = re.compile(r"(?<=.)\.(?:egg-info|dist-info)\Z")
_LISTS_FILES: Final[Mapping[str, str]] = {".egg-info": "SOURCES.txt", ".dist-info": "RECORD"}
"""The list of files that setuptools and pip write beside it; what people write by hand for tests has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A folder that stays here."""

    path: str
    reason: str
    """What it is, in words."""


class Artifacts:
    """Which folders they are. For any thread; what was found is kept in the records of the mount."""

    def __init__(self, db: Database, tree: SyncTree, clock: Clock) -> None:
        self._db = db
        self._tree = tree
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, str | None]] = OrderedDict()

    def holding(self, path: str) -> Artifact | None:
        """The folder at or above `path` that stays here, if there is one; noted for `met`."""
        at = path.find("/", 1)
        folders = []
        while at >= 0:
            folders.append(path[:at])
            at = path.find("/", at + 1)
        entry = self._tree.fact(path)
        if entry is not None and entry.kind == "dir":
            folders.append(path)
        for folder in folders:
            reason = self._reason(folder)
            if reason is not None:
                self._note(folder, reason)
                return Artifact(path=folder, reason=reason)
        return None

    def met(self) -> list[Artifact]:
        """Those that were met and are still there, in path order."""
        rows = self._db.all("select path, reason from artifact order by path")
        return [Artifact(path=decode(row[0]), reason=row[1]) for row in rows if self._tree.fact(decode(row[0])) is not None]

    def files_in(self, artifact: Artifact) -> int:
        """How many files it holds, at most FILES_COUNTED_MAX."""
        pending, count = [artifact.path], 0
        while pending and count < FILES_COUNTED_MAX:
            for entry in self._tree.children(pending.pop()):
                if entry.kind == "dir":
                    pending.append(entry.path)
                else:
                    count += 1
        return min(count, FILES_COUNTED_MAX)

    def released(self) -> list[str]:
        """Folders that were kept here and are not any more; they are forgotten."""
        self._known.clear()
        rows = [decode(row[0]) for row in self._db.all("select path from artifact")]
        freed = [path for path in rows if self._reason(path) is None]
        with self._db.write() as tx:
            tx.executemany("delete from artifact where path = ?", [(encode(path),) for path in freed])
        return freed

    def was_in(self, path: str) -> bool:
        """Whether `path`, which may be gone, is or was inside of one."""
        rows = self._db.all("select path from artifact")
        return any(is_within(path, decode(row[0])) for row in rows)

    def _note(self, folder: str, reason: str) -> None:
        if self._db.one("select 1 from artifact where path = ? and reason = ?", (encode(folder), reason)) is None:
            with self._db.write() as tx:
                tx.execute(
                    "insert into artifact (path, reason) values (?, ?) "
                    "on conflict (path) do update set reason = excluded.reason",
                    (encode(folder), reason),
                )

    def _reason(self, folder: str) -> str | None:
        now_s = self._clock.monotonic_s()
        known = self._known.get(folder)
        if known is not None and now_s - known[0] < _FRESH_S:
            return known[1]
        reason = None if self._tree.is_asked_for(folder) else self._looked_at(folder)
        self._known[folder] = (now_s, reason)
        self._known.move_to_end(folder)
        while len(self._known) > _FOLDERS_MAX:
            self._known.popitem(last=False)
        return reason

    def _looked_at(self, folder: str) -> str | None:
        above, name = split(folder)
        known = self._nested(folder) or _BY_NAME.get(name)
        if known is not None:
            return known
        inside = {split(entry.path)[1]: entry for entry in self._tree.children(folder)}
        packed = _PACKAGE.search(name)
        if packed is not None and _LISTS_FILES[packed[0]] in inside:
            return "what Python makes"
        for mark, (what, but) in _BY_MARK.items():
            if mark in inside and but.isdisjoint(inside):
                return what
        if "CACHEDIR.TAG" in inside and self._head(inside["CACHEDIR.TAG"], 64).startswith(_CACHE_TAG):
            return "a cache (CACHEDIR.TAG)"
        manifest = self._manifest(above, _BESIDE.get(name, ()))
        if manifest is None:
            return None
        made = name in _TOOLS_OWN or not _LEFT_IN.isdisjoint(inside) or self._ignored_by(folder, GIT_IGNORE) is not None
        return f"made from {manifest}" if made else None

    def _manifest(self, folder: str, names: tuple[str, ...]) -> str | None:
        for name in names:
            if not name.startswith("*"):
                if self._tree.fact(join(folder, name)) is not None:
                    return name
                continue
            found = next((entry for entry in self._tree.children(folder) if entry.path.endswith(name[1:])), None)
            if found is not None:
                return split(found.path)[1]
        return None

    def _nested(self, folder: str) -> str | None:
        """Why a `.memdirignore` below the root leaves it out; the one at the root is the filesystem's."""
        found = self._ignored_by(folder, MEMDIR_IGNORE, below_root=True)
        return None if found is None else f"named by {found}"

    def _ignored_by(self, folder: str, name: str, *, below_root: bool = False) -> str | None:
        """The deepest ignore file above that decides on `folder`, if it leaves it out."""
        above = split(folder)[0]
        while True:
            file = join(above, name)
            entry = None if below_root and above == "/" else self._tree.fact(file)
            if entry is not None and entry.kind == "file" and entry.absent_hash is None:
                relative = folder[len(above.rstrip("/")) + 1 :]
                decided = GitIgnore(self._head(entry, IGNORE_FILE_MAX_BYTES)).decide(encode(relative), is_dir=True)
                if decided is not None:
                    return None if decided.negated else file
            if above == "/":
                return None
            above = split(above)[0]

    def _head(self, entry: LocalFact, size: int) -> bytes:
        try:
            return self._tree.read(entry, 0, min(size, entry.size)) if entry.kind == "file" and entry.size else b""
        except (LocalChangedError, FsError):
            return b""  # looked at again in _FRESH_S
