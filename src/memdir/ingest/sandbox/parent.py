"""The server's side: starts the fork server when it is needed, watches each child, and kills it when it takes too long."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memdir.core.descriptors import wait_readable
from memdir.core.errors import StorageError
from memdir.ingest.extractors.formats import Format
from memdir.ingest.extractors.ocr import ENV_LANGUAGES
from memdir.ingest.extractors.output import TEXT_MAX_CHARS, ExtractionError
from memdir.ingest.extractors.speech import ENV_MODEL
from memdir.ingest.sandbox.messages import LINE_MAX_BYTES, SOURCE_FILE, TEXT_FILE

log = logging.getLogger(__name__)

SOURCE_MAX_BYTES: Final = 2 << 30
_DOCUMENT_MAX_BYTES: Final = 256 << 20
_KEPT_ENVIRONMENT: Final = ("PATH", "LANG", "LC_ALL", "TESSDATA_PREFIX", "VIRTUAL_ENV", ENV_LANGUAGES, ENV_MODEL)
"""No keys, no addresses of databases."""
NEEDS_TIME: Final = "time"
"""What a text needs that was cut off because its file took too long: on an idle machine it may be whole."""
FORK_SERVER: Final = ("-m", "memdir.ingest.sandbox.fork_server")
_PARTS: Final = {"pdf": "page"}
"""Of these kinds one part that takes too long, or ends the process, is passed over, and another process goes on behind it."""
_PASSED_OVER_MAX: Final = 3
_START_S: Final = 60.0
"""For a fork server to load its libraries and for the child to begin, on a machine that is busy."""
_LOOK_S: Final = 0.5
"""How often a wait looks whether the server ends."""
_IDLE_S: Final = 120.0
"""A fork server without work ends after this, and gives its memory back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of one child. `silent_s` bounds the time from one page, sheet, message or second of sound to the next."""

    silent_s: float = 10.0
    total_s: float = 600.0
    memory_bytes: int = 512 << 20
    recognition_s: float = 90.0
    """For one picture, in place of `silent_s`."""
    recognition_bytes: int = 2 << 30
    """Of memory from the first picture on, in place of `memory_bytes` when that is less."""
    source_bytes: int = _DOCUMENT_MAX_BYTES


DEFAULT_LIMITS: Final = Limits()
_LIMITS: Final = {
    "pdf": Limits(total_s=1800.0),
    # Weights, samples and frames; one window of ten minutes is decoded before the first sentence comes.
    "audio": Limits(silent_s=180.0, total_s=4 * 3600.0, memory_bytes=3 << 30, source_bytes=SOURCE_MAX_BYTES),
    "video": Limits(silent_s=180.0, total_s=4 * 3600.0, memory_bytes=3 << 30, source_bytes=SOURCE_MAX_BYTES),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The text of a file and what is known of it; `text` is Markdown."""

    kind: str
    media_type: str
    engine: str
    title: str
    text: str
    facts: Mapping[str, str | int]
    truncated: bool
    needs: str
    peak_bytes: int
    """Of memory, in the child."""


@dataclass(slots=True)
class _Told:
    """What a child has said so far."""

    pid: int = 0
    kind: str = ""
    known: dict[str, Any] | None = None
    """All of an Extraction but the text."""
    done: int = 0
    total: int = 0
    """Parts read, of how many; 0 when that is not known."""
    answer: dict[str, Any] | None = None
    """How it ended: `whole` or an `error`; None when it died."""
    buffer: bytes = b""
    heard_s: float = field(default_factory=time.monotonic)
    recognising: bool = False
    """The last it said was that it looks at a picture."""


class Sandbox:
    """Reads documents in children. Thread-safe; each call waits for its own child."""

    def __init__(self, limits: Mapping[str, Limits] | None = None) -> None:
        """`limits` by kind, instead of those here."""
        self._limits = _LIMITS if limits is None else limits
        self._lock = threading.Lock()
        self._reading = threading.Condition()
        self._read_now: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._children = 0
        self._idle: threading.Timer | None = None

    def extract(
        self,
        pieces: Iterable[bytes],
        found: Format,
        *,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
        checkpoint: Callable[[], None] = lambda: None,
    ) -> Extraction:
        """The text of the document whose bytes are `pieces`.

        `progress` is told (done, total; total 0: not known) of units that depend on the kind. `checkpoint` is called at least
        every _LOOK_S seconds; what it raises ends the child and is raised. ExtractionError, with the kind as far as it is
        known in `error.kind`, when the document cannot be read; StorageError when no child can be started.
        """
        limits = self._limits.get(found.kind, DEFAULT_LIMITS)
        with tempfile.TemporaryDirectory(prefix="memdir-extract-") as name:
            folder = Path(name)
            _write(folder / SOURCE_FILE, pieces, limits.source_bytes)
            request: dict[str, Any] = {
                "folder": str(folder),
                "kind": found.kind,
                "media_type": found.media_type,
                "module": found.module,
                "memory_bytes": limits.memory_bytes,
                "recognition_bytes": limits.recognition_bytes,
                "cpu_s": int(limits.total_s * 2),
            }
            end_s = time.monotonic() + limits.total_s
            told = self._read(request, limits, end_s, progress, checkpoint)
            needs_time = False
            for _ in range(_PASSED_OVER_MAX):
                if told.known is None or not _can_go_on(told):
                    break
                ending = _ending(told)
                needs_time = needs_time or "silent" in ending
                unread = f"{_PARTS[told.kind]} {told.done + 1}: {ending['error']}"
                facts = {**told.known["facts"], "unread": _joined(told.known["facts"].get("unread"), unread)}
                known = {**told.known, "facts": facts}
                request |= {"first_part": told.done + 1, "facts": facts}
                told = self._read(request, limits, end_s, progress, checkpoint)
                told.known = told.known or known
            return _result(told, folder, needs_time=needs_time)

    def _read(
        self,
        request: dict[str, Any],
        limits: Limits,
        end_s: float,
        progress: Callable[[int, int], None],
        checkpoint: Callable[[], None],
    ) -> _Told:
        """What one child says; it is ended at `end_s` of the monotonic clock."""
        reading, writing = os.pipe()
        try:
            try:
                self._send(json.dumps(request).encode(), writing)
            finally:
                os.close(writing)
            return _watched(reading, limits, end_s, progress, checkpoint)
        finally:
            os.close(reading)
            self._ended()

    @contextlib.contextmanager
    def alone(self, content_hash: str) -> Iterator[None]:
        """Wait until no other thread is inside with the same contents: the second finds what the first has read."""
        with self._reading:
            while content_hash in self._read_now:
                self._reading.wait()
            self._read_now.add(content_hash)
        try:
            yield
        finally:
            with self._reading:
                self._read_now.discard(content_hash)
                self._reading.notify_all()

    def close(self) -> None:
        """End the fork server and its children."""
        with self._lock:
            self._stop()

    def _send(self, request: bytes, pipe: int) -> None:
        with self._lock:
            self._children += 1
            if self._idle is not None:
                self._idle.cancel()
                self._idle = None
            for last in (False, True):
                if self._process is None or self._process.poll() is not None:
                    self._start()
                assert self._control is not None
                try:
                    socket.send_fds(self._control, [request], [pipe])
                except OSError as error:
                    self._stop()
                    if last:
                        raise StorageError(f"documents cannot be read: {error}") from error
                else:
                    return

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment |= {"MALLOC_ARENA_MAX": "2", "OMP_NUM_THREADS": "2", "HF_HUB_OFFLINE": "1"}
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", *FORK_SERVER],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment,
                    cwd="/",
                )
        except OSError as error:
            ours.close()
            raise StorageError(f"documents cannot be read: {error}") from error
        self._control = ours

    def _ended(self) -> None:
        with self._lock:
            self._children -= 1
            if not self._children and self._process is not None:
                self._idle = threading.Timer(_IDLE_S, self._rest)
                self._idle.daemon = True
                self._idle.start()

    def _rest(self) -> None:
        with self._lock:
            if not self._children:
                self._stop()

    def _stop(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            try:
                self._process.wait(2.0)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _write(path: Path, pieces: Iterable[bytes], most: int) -> None:
    size = 0
    with path.open("wb") as handle:
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise ExtractionError(f"it is larger than {most >> 20} MiB", hint="split it; it is kept byte for byte")
            handle.write(piece)


def _watched(
    reading: int, limits: Limits, end_s: float, progress: Callable[[int, int], None], checkpoint: Callable[[], None]
) -> _Told:
    """Everything that the child says until it ends, or until it is ended."""
    told = _Told()
    try:
        while told.answer is None:
            checkpoint()
            now_s = time.monotonic()
            if now_s > end_s:
                told.answer = _stopped(f"reading it takes longer than {limits.total_s:g} s") | {"late": True}
                break
            least_s = limits.recognition_s if told.recognising else 0.0 if told.pid else _START_S
            silent_s = max(limits.silent_s, least_s)
            if now_s - told.heard_s > silent_s:
                told.answer = _stopped(f"a part of it takes longer than {silent_s:g} s") | {"silent": True}
                break
            if not wait_readable(reading, timeout_s=_LOOK_S):
                continue
            data = os.read(reading, 64 << 10)
            if not data:
                break
            _heard(told, data, progress)
    finally:
        if told.pid:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(told.pid, signal.SIGKILL)
    return told


def _heard(told: _Told, data: bytes, progress: Callable[[int, int], None]) -> None:
    told.heard_s = time.monotonic()
    *lines, told.buffer = (told.buffer + data).split(b"\n")
    if len(told.buffer) > LINE_MAX_BYTES:
        told.answer = _stopped("the process that read it said too much")
        return
    for line in lines:
        message = json.loads(line)
        told.recognising = "recognising" in message
        told.known = message.get("known", told.known)
        if "pid" in message:
            told.pid = int(message["pid"])
        elif "done" in message:
            told.done, told.total = int(message["done"]), int(message["total"])
            progress(told.done, told.total)
        elif "whole" in message or "error" in message:
            told.answer = message
        elif "kind" in message:
            told.kind = str(message["kind"])


def _stopped(reason: str) -> dict[str, Any]:
    return {"error": reason, "hint": "split it or make it smaller"}


def _ending(told: _Told) -> dict[str, Any]:
    """`whole`, or `error` with a sentence and what else is known of it."""
    return told.answer or {"error": "the process that read it died: damaged, or made to do harm"}


def _can_go_on(told: _Told) -> bool:
    """Whether it ended in the middle of a part behind which there are others, and there is time."""
    ended = "error" in _ending(told) and "late" not in _ending(told)
    return ended and told.kind in _PARTS and told.done + 1 < told.total


def _joined(*reasons: object) -> str:
    return "; ".join(str(reason) for reason in reasons if reason)


def _result(told: _Told, folder: Path, *, needs_time: bool) -> Extraction:
    """What was read before an error came is a text like others, and says that it is not all."""
    answer = _ending(told)
    error = str(answer.get("error", ""))
    if "detail" in answer:
        log.info("a %s could not be read:\n%s", told.kind, answer["detail"])
    text = _read(folder / TEXT_FILE) if told.known is not None else ""
    needs = str(answer.get("needs", ""))
    if told.known is None or (error and not text):
        raise ExtractionError(error, hint=str(answer.get("hint", "")), needs=needs, kind=told.kind)
    facts = dict(told.known["facts"])
    if error:
        facts["unread"] = _joined(facts.get("unread"), f"what follows: {error}")
    return Extraction(
        kind=str(told.known["kind"]),
        media_type=str(told.known["media_type"]),
        engine=str(told.known["engine"]),
        title=str(told.known["title"]),
        text=text,
        facts=facts,
        truncated=bool(told.known["truncated"]) or bool(error),
        needs=str(told.known["needs"] or needs or (NEEDS_TIME if needs_time or "silent" in answer else "")),
        peak_bytes=int(told.known["peak_bytes"]),
    )


def _read(path: Path) -> str:
    """Ends with one line feed unless there are no words in it."""
    try:
        with path.open(encoding="utf-8", errors="replace") as handle:
            text = handle.read(TEXT_MAX_CHARS).rstrip()
    except FileNotFoundError:
        return ""
    return text + "\n" if text else ""
