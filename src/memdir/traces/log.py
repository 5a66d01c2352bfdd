"""The log of events: lines of JSON in segments that are only added to, bounded in size and age, on this machine alone.

A folder is traced when it is asked for; names can be left out; `pause` stops all recording, `forget` deletes what a path, a
session or a time is about.
"""

from __future__ import annotations

import fcntl
import fnmatch
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Final

from memdir.core.paths import write_private
from memdir.traces.events import Event, hash_of

SEGMENT_MAX_BYTES: Final = 4 << 20
LOG_MAX_BYTES: Final = 256 << 20
"""The oldest segments go first."""
KEEP_DAYS: Final = 180
LINE_MAX_BYTES: Final = 4 << 20
_DAY_S: Final = 86_400
FORGOTTEN_MAX: Final = 64
"""So many requests to forget are kept, the latest ones: events that a recorder had not written yet are dropped by them."""
_PREFIX: Final = "events-"
IGNORED: Final = (
    ".git", ".cache", "__pycache__", "node_modules", "*.pyc", ".memdir*", ".Trash-*", "Trash", ".venv", "*.sock",
    ".ssh", ".gnupg", ".aws", ".password-store", "keyrings", "*.key", "*.pem", "*.p12", "*.pfx", "*.kdbx", "*.keystore",
    "id_rsa*", "id_ecdsa*", "id_ed25519*", ".env", ".env.*", ".netrc", ".pgpass", ".git-credentials", ".*_history",
)  # fmt: skip
"""What no person does, and what nobody wants to be seen."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Events from one moment to another (both included), of a session, at or below a path: in its root, or absolute on this
    machine. None: any."""

    session: str | None = None
    path: tuple[int, str] | None = None
    """As `path_key` gives it: a request to forget a path must not keep it."""
    since_ms: int = 0
    until_ms: int | None = None

    def has(self, event: Event) -> bool:
        """Whether an event is one of them."""
        return (
            self.since_ms <= event.timestamp_ms
            and (self.until_ms is None or event.timestamp_ms <= self.until_ms)
            and self.session in (None, event.session)
            and (self.path is None or self._is_at(event, *self.path))
        )

    @staticmethod
    def _is_at(event: Event, chars: int, digest: str) -> bool:
        names = [event.path, *(str(event.fields[key]) for key in ("old_path", "src_path") if key in event.fields)]
        places = [place for name in names for place in (name, event.root + name)]
        return any(
            len(place) >= chars and place[chars : chars + 1] in ("", "/") and path_key(place[:chars])[1] == digest
            for place in places
        )


def path_key(path: str) -> tuple[int, str]:
    """Characters and hash of a path: they tell what stands at or below it, and not what it is."""
    path = path.rstrip("/")
    return len(path), hash_of(path.encode("utf-8", "surrogateescape"))


class TraceLog:
    """In `folder`. Several processes may add; who deletes waits for them."""

    def __init__(self, folder: Path, *, now_s: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now_s = now_s

    # settings

    @property
    def is_paused(self) -> bool:
        return (self._folder / "paused").exists()

    def pause(self) -> None:
        self._make()
        write_private(self._folder / "paused", b"")

    def resume(self) -> None:
        (self._folder / "paused").unlink(missing_ok=True)

    @property
    def ignored(self) -> tuple[str, ...]:
        """Patterns of paths that are left out, with those in `ignore`, a line each."""
        with suppress(FileNotFoundError):
            own = (self._folder / "ignore").read_text(encoding="utf-8", errors="replace").splitlines()
            return IGNORED + tuple(line.strip() for line in own if line.strip() and not line.startswith("#"))
        return IGNORED

    # adding

    def add(self, events: Sequence[Event], *, recorded: bool = True) -> None:
        """All of them, but what is too long for a line; nothing while paused. `recorded`: they come from a mount or a watched
        folder, and what was forgotten before it came here is left out. OSError: the disk."""
        if not events or self.is_paused:
            return
        self._make()
        with self._locked(fcntl.LOCK_SH):
            forgotten = self._forgotten() if recorded else []
            lines = [
                json.dumps(event.as_json(), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
                for event in events
                if not any(one.has(event) for one in forgotten)
            ]
            data = b"".join(line + b"\n" for line in lines if len(line) < LINE_MAX_BYTES)
            if not data:
                return
            path = self._current()
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, data)  # one call: lines of several processes do not mix
                is_full = os.fstat(fd).st_size > SEGMENT_MAX_BYTES
            finally:
                os.close(fd)
        if is_full:
            self.prune()

    def _current(self) -> Path:
        segments = self._segments()
        if segments and segments[-1].stat().st_size <= SEGMENT_MAX_BYTES:
            return segments[-1]
        number = 1 + (int(segments[-1].stem.removeprefix(_PREFIX)) if segments else 0)
        return self._folder / f"{_PREFIX}{number:08}.jsonl"

    def prune(self) -> None:
        """Let the oldest segments go, beyond the size and the age that are kept."""
        with self._locked(fcntl.LOCK_EX):
            segments = self._segments()
            total = sum(path.stat().st_size for path in segments)
            for path in segments[:-1]:
                old = path.stat().st_mtime < self._now_s() - KEEP_DAYS * _DAY_S
                if total > LOG_MAX_BYTES or old:
                    total -= path.stat().st_size
                    path.unlink()

    # reading

    def events(self) -> Iterator[Event]:
        """All of them, in the order in which they were written. A torn line, which a crash leaves, is passed over."""
        for path in self._segments():
            with suppress(FileNotFoundError), open(path, "rb") as handle:
                for line in handle:
                    event = _parsed(line)
                    if event is not None:
                        yield event

    @property
    def size_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._segments())

    # forgetting

    def forget(self, selection: Selection) -> int:
        """Delete events for good, also those up to now that a recorder has not written yet. Returns how many stood here."""
        count = 0
        if not self._folder.is_dir():
            return 0
        if selection.until_ms is None:
            selection = replace(selection, until_ms=int(self._now_s() * 1000))
        with self._locked(fcntl.LOCK_EX):
            forgotten = [*self._forgotten(), selection][-FORGOTTEN_MAX:]
            write_private(self._folder / "forgotten", json.dumps([asdict(one) for one in forgotten]).encode())
            for path in self._segments():
                kept: list[bytes] = []
                before = count
                for line in path.read_bytes().splitlines(keepends=True):
                    event = _parsed(line)
                    if event is not None and not selection.has(event):
                        kept.append(line)
                    elif event is not None:
                        count += 1
                if count > before:
                    _overwrite(path)
                    write_private(path, b"".join(kept))
        return count

    def _forgotten(self) -> list[Selection]:
        try:
            return [Selection(**one) for one in json.loads((self._folder / "forgotten").read_bytes())]
        except FileNotFoundError:
            return []

    # files

    def _make(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _segments(self) -> list[Path]:
        return sorted(self._folder.glob(f"{_PREFIX}*.jsonl"))

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self._make()
        fd = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            yield
        finally:
            os.close(fd)


def _overwrite(path: Path) -> None:
    """Zeros in its place, before the file goes."""
    size = path.stat().st_size
    with open(path, "r+b") as handle:
        handle.write(bytes(size))
        handle.flush()
        os.fsync(handle.fileno())


def _parsed(line: bytes) -> Event | None:
    try:
        found = json.loads(line)
        return Event.of_json(found) if isinstance(found, dict) else None
    except (ValueError, KeyError, TypeError):
        return None


def is_ignored(path: str, patterns: Sequence[str]) -> bool:
    """Whether a path (absolute in its root) is left out, as by fnmatch(3): a pattern of a name leaves out what is called so and
    all below it; one with a slash is of the path as a whole, and of all below that."""
    names, like, paths = _matchers(tuple(patterns))
    parts = path.strip("/").split("/")
    if not names.isdisjoint(parts) or (like is not None and any(map(like.match, parts))):
        return True
    return paths is not None and any(map(paths.match, accumulate(parts, "{}/{}".format)))


@lru_cache(maxsize=16)
def _matchers(patterns: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str] | None, re.Pattern[str] | None]:
    """Names as they are, patterns of names, patterns of paths."""
    listed = [one.rstrip("/") for one in patterns]
    exact = frozenset(one for one in listed if not set(one) & set("*?[/"))
    like = [one for one in listed if "/" not in one and one not in exact]
    paths = [one.removeprefix("/") for one in listed if "/" in one]
    return exact, _any_of(like), _any_of(paths)


def _any_of(patterns: Sequence[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(map(fnmatch.translate, patterns))) if patterns else None
