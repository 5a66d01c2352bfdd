"""What people and programs do in a mount: system calls, saves as editors make them, and real programs. Everything is told to
the recorder, with what was seen before it and whether it was answered."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from memdir.client.errors import ClientError, OfflineError, RateLimitedError, ServerError
from memdir.client.http import Client
from tests.checker.history import History, Look, Op, digest
from tests.checker.machines import CONTAINER, Machine

SHARED_FOLDERS = ("/team/d0", "/team/d1", "/team/d2")
_PAUSE_MAX_S = 0.12
_LARGE_BYTES = 120_000
_PROGRAM_LIMIT_S = 120.0
GONE = frozenset({errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENODEV})
"""What a program gets whose mount's daemon was killed, or whose contents do not come."""


class Recorder:
    """Keeps the history, and writes it to a file as it happens."""

    def __init__(self, log: TextIO) -> None:
        self.history = History()
        self._log = log
        self._lock = threading.Lock()
        self.began_s = time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() - self.began_s

    def op(self, op: Op) -> None:
        with self._lock:
            self.history.ops.append(op)
            self._log.write(json.dumps({key: value for key, value in asdict(op).items() if value}) + "\n")

    def look(self, look: Look) -> None:
        with self._lock:
            self.history.looks.append(look)
            self._log.write(json.dumps(asdict(look)) + "\n")

    def say(self, what: str) -> None:
        with self._lock:
            self._log.write(json.dumps({"at_s": self.now_s(), "what": what}) + "\n")
            self._log.flush()


class Contents:
    """Contents unlike all others. Bytes that are no text, so that nothing is merged: both sides of a conflict have to stay."""

    def __init__(self, who: str, seed: int) -> None:
        self._who, self._number = who, 0
        self._rng = random.Random(seed)

    def next(self) -> bytes:
        self._number += 1
        mark = f"{self._who} {self._number}\n".encode() + b"\0"
        size = self._rng.choice((0, 50, 900, 3000, 3000, _LARGE_BYTES))
        return mark + self._rng.randbytes(size)


class Worker:
    """One person at one machine; `run` until `stop`."""

    def __init__(self, machine: Machine, recorder: Recorder, stop: threading.Event, *, seed: int, others: list[str]) -> None:
        self._machine, self._recorder, self._stop = machine, recorder, stop
        self._rng = random.Random(seed)
        self._contents = Contents(machine.name, seed)
        self._own = f"/own-{machine.name}"
        self._bulk = f"/bulk-{machine.name}"
        self._programs = 0
        self.made: list[tuple[str, str]] = []
        """Trees that programs made without a failure: what, and where."""
        self._lines = 0
        self._readable = [*self._own_paths(), *_shared_paths()]
        self._readable += [path for other in others for path in _paths_of_own(f"/own-{other}")]
        self._acts: list[tuple[int, Callable[[], None]]] = [
            (10, self._save_in_place), (14, self._save_beside), (6, self._save_like_vim), (6, self._delete), (7, self._rename),
            (2, self._rename_folder), (2, self._remove_folder), (2, self._truncate), (8, self._append), (3, self._link),
            (2, self._symlink), (1, self._tar), (1, self._git), (2, self._copy_tree),
        ]  # fmt: skip

    # --- the two threads -----------------------------------------------------------------------------------------

    def run(self) -> None:
        shares = [share for share, _ in self._acts]
        while not self._stop.wait(self._rng.uniform(0.005, _PAUSE_MAX_S)):
            if not self._machine.up.wait(0.2):
                continue
            (_, act) = self._rng.choices(self._acts, shares)[0]
            with self._machine.used(0):
                try:
                    act()
                except OSError as error:
                    if error.errno not in (*GONE, errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR):
                        raise

    def look_around(self) -> None:
        """In a thread of its own: what can be seen here."""
        rng = random.Random(self._rng.random())
        while not self._stop.wait(rng.uniform(0.005, _PAUSE_MAX_S)):
            if self._machine.up.wait(0.2):
                with self._machine.used(1):
                    self._look(rng.choice(self._readable))

    def look_at_own(self) -> None:
        """After a kill: is everything there?"""
        for path in self._own_paths():
            self._look(path)

    # --- seeing and telling --------------------------------------------------------------------------------------

    def _real(self, path: str) -> str:
        return str(self._machine.place) + path

    def _look(self, path: str) -> None:
        started_s = self._recorder.now_s()
        try:
            found = self._read(path)
        except OSError:
            return  # the daemon is dead, or the contents are out of reach
        seen = None if found is None else digest(found)
        self._recorder.look(
            Look(machine=self._machine.name, path=path, started_s=started_s, ended_s=self._recorder.now_s(), found=seen)
        )

    def _read(self, path: str) -> bytes | None:
        """None for nothing; a link's target. Twice the same: a read that waits for contents may be cut at their former size."""
        real = self._real(path)
        before: bytes | None = None
        for _ in range(20):
            try:
                if os.path.islink(real):
                    return os.readlink(real).encode()
                with open(real, "rb") as file:
                    content = file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            if content == before:
                return content
            before = content
        raise OSError(errno.EIO, "it never stays the same")

    def _seen(self, path: str) -> str | None:
        found = self._read(path)
        return None if found is None else digest(found)

    @contextmanager
    def _told(self, what: str, **told: Any) -> Iterator[None]:
        """Record what happens inside, as not answered when it fails."""
        started_s = self._recorder.now_s()
        answered = False
        try:
            yield
            answered = True
        finally:
            self._recorder.op(
                Op(machine=self._machine.name, what=what, started_s=started_s, ended_s=self._recorder.now_s(),
                   answered=answered, **told)
            )  # fmt: skip

    # --- places --------------------------------------------------------------------------------------------------

    def _own_paths(self) -> list[str]:
        return _paths_of_own(self._own)

    def _any_path(self) -> str:
        return self._rng.choice(_shared_paths() if self._rng.random() < 0.6 else self._own_paths())

    def _make_folder_of(self, path: str) -> None:
        os.makedirs(os.path.dirname(self._real(path)), exist_ok=True)

    # --- saves ---------------------------------------------------------------------------------------------------

    def _save_in_place(self) -> None:
        path, content = self._any_path(), self._contents.next()
        if "/linked" in path:
            return  # it would change under its other names, too
        self._make_folder_of(path)
        before = self._seen(path)
        with self._told("save in place", puts={path: digest(content)}, removes={path: before}, in_place=True):
            fd = os.open(self._real(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            try:
                assert os.write(fd, content) == len(content)
                if self._rng.random() < 0.3:
                    os.fsync(fd)
            finally:
                os.close(fd)

    def _save_beside(self) -> None:
        """A temporary file renamed over the old one."""
        path, content = self._any_path(), self._contents.next()
        self._make_folder_of(path)
        beside = os.path.join(os.path.dirname(self._real(path)), f".new-{self._rng.randrange(3)}")
        before = self._seen(path)
        with self._told("save beside", puts={path: digest(content)}, removes={path: before}):
            with open(beside, "wb") as file:
                file.write(content)
                if self._rng.random() < 0.3:
                    file.flush()
                    os.fsync(file.fileno())
            os.rename(beside, self._real(path))

    def _save_like_vim(self) -> None:
        """The old file is moved away, the new one written in its place, then the old one is deleted."""
        path, content = self._any_path(), self._contents.next()
        self._make_folder_of(path)
        real, before = self._real(path), self._seen(path)
        if before is None or os.path.islink(real):
            return
        with self._told("save like vim", puts={path: digest(content)}, removes={path: before}, in_place=True):
            os.rename(real, real + "~")
            with open(real, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.unlink(real + "~")

    def _truncate(self) -> None:
        path = self._rng.choice(self._own_paths()[:4])
        content = self._read(path)
        if content is None or len(content) < 60 or os.path.islink(self._real(path)):
            return
        kept = content[: self._rng.randrange(40, len(content))]
        with self._told("truncate", puts={path: digest(kept)}, removes={path: digest(content)}):
            os.truncate(self._real(path), len(kept))

    def _append(self) -> None:
        name = "shared" if self._rng.random() < 0.3 else f"own-{self._machine.name}"
        path = f"/logs/{name}.log"
        self._make_folder_of(path)
        self._lines += 1
        line = f"{self._machine.name} {self._lines}"
        with self._told("append", removes={path: None}, line=line):
            fd = os.open(self._real(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                data = line.encode() + b"\n"
                assert os.write(fd, data) == len(data)
            finally:
                os.close(fd)

    # --- names ---------------------------------------------------------------------------------------------------

    def _delete(self) -> None:
        path = self._any_path()
        before = self._seen(path)
        if before is not None:
            with self._told("delete", removes={path: before}):
                os.unlink(self._real(path))

    def _rename(self) -> None:
        paths = _shared_paths() if self._rng.random() < 0.6 else self._own_paths()
        source, path = self._rng.sample(paths, 2)
        if "/linked" in source + path:
            return
        moved, before = self._seen(source), self._seen(path)
        if moved is not None:
            self._make_folder_of(path)
            with self._told("rename", puts={path: moved}, removes={source: moved, path: before}):
                os.rename(self._real(source), self._real(path))

    def _rename_folder(self) -> None:
        source, path = self._rng.sample(SHARED_FOLDERS, 2)
        if os.path.exists(self._real(path)) or not os.path.isdir(self._real(source)):
            return
        found = self._found_below(source)
        puts = {path + name[len(source) :]: content for name, content in found.items()}
        with self._told("rename folder", puts=puts, removes=found, below=source):
            os.rename(self._real(source), self._real(path))

    def _remove_folder(self) -> None:
        path = self._rng.choice((*SHARED_FOLDERS, f"{self._own}/d"))
        if os.path.isdir(self._real(path)):
            with self._told("rm -r", removes=self._found_below(path), below=path):
                self._program("rm", "-r", self._real(path))

    def _found_below(self, folder: str) -> dict[str, str]:
        found = {}
        for top, _, names in os.walk(self._real(folder)):
            for name in names:
                path = os.path.join(top, name)[len(str(self._machine.place)) :]
                content = self._seen(path)
                if content is not None:
                    found[path] = content
        return found

    def _link(self) -> None:
        source, path = self._rng.sample([path for path in self._own_paths() if "/linked" in path], 2)
        content = self._seen(source)
        if content is not None and self._seen(path) is None:
            with self._told("link", puts={path: content}):
                os.link(self._real(source), self._real(path))

    def _symlink(self) -> None:
        path, target = f"{self._own}/symlink", f"to-{self._machine.name}-{self._rng.randrange(1 << 60)}"
        self._make_folder_of(path)
        before = self._seen(path)
        with self._told("symlink", puts={path: digest(target.encode())}, removes={path: before}):
            if before is not None:
                os.unlink(self._real(path))
            os.symlink(target, self._real(path))

    # --- programs ------------------------------------------------------------------------------------------------

    def _program(self, *command: str, cwd: str | None = None) -> None:
        """Run it; OSError when it fails, as it does when the daemon dies."""
        done = subprocess.run(
            command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROGRAM_LIMIT_S, check=False, text=True
        )
        if done.returncode:
            self._recorder.say(f"{self._machine.name}: {command} failed: {done.stderr[-500:]}")
            raise OSError(errno.EIO, f"{command[0]} failed")

    def _next_bulk(self, what: str) -> str:
        self._programs += 1
        folder = f"{self._bulk}/{what}-{self._programs}"
        os.makedirs(self._real(folder))
        return folder

    def _tar(self) -> None:
        archive = self._machine.memdir.folder / "tree.tar"
        folder = self._next_bulk("tar")
        self._program("tar", "xf", str(archive), "-C", self._real(folder))
        self.made.append(("tar", folder))

    def _copy_tree(self) -> None:
        """And away with one of the older ones."""
        trees = [entry for entry in self.made if entry[0] == "tar"]
        if not trees:
            return
        _, source = self._rng.choice(trees)
        folder = self._next_bulk("copy")
        self._program("cp", "-a", self._real(source) + "/.", self._real(folder))
        self.made.append(("tar", folder))
        if len(trees) > 2:
            self.made.remove(("tar", source))
            self._program("rm", "-rf", self._real(source))

    def _git(self) -> None:
        folder = self._next_bulk("git")
        place = self._real(folder)
        self._program("git", "init", "-q", cwd=place)
        for number in range(4):
            Path(place, f"note-{number}.md").write_bytes(self._contents.next())
        self._program("git", "add", "-A", cwd=place)
        who = ("-c", "user.name=Checker", "-c", "user.email=checker@example.invalid", "-c", "gc.auto=0")
        self._program("git", *who, "commit", "-q", "-m", "first", cwd=place)
        self.made.append(("git", folder))


class ApiClient:
    """Somebody without a mount. A request without an answer is repeated with its key until it has one."""

    def __init__(self, client: Client, recorder: Recorder, stop: threading.Event, *, seed: int) -> None:
        self._client, self._recorder, self._stop = client, recorder, stop
        self._rng = random.Random(seed)
        self._contents = Contents("api", seed)
        self._number = 0

    def run(self) -> None:
        while not self._stop.wait(self._rng.uniform(0.05, 0.6)):
            path = self._rng.choice(_shared_paths())
            if self._rng.random() < 0.8:
                self._put(path)
            else:
                self._delete(path)

    def _put(self, path: str) -> None:
        content, key, now_ns = self._contents.next(), self._key(), time.time_ns()
        self._until_answered(
            "put by the API",
            lambda: self._client.put_file(CONTAINER, path, content, mtime_ns=now_ns, idempotency_key=key),
            puts={path: digest(content)}, removes={path: None},
        )  # fmt: skip

    def _delete(self, path: str) -> None:
        key = self._key()
        self._until_answered(
            "delete by the API",
            lambda: self._client.delete_file(CONTAINER, path, idempotency_key=key), removes={path: None},
        )  # fmt: skip

    def _key(self) -> str:
        self._number += 1
        return f"api-{self._number}-{self._rng.randrange(1 << 60)}"

    def _until_answered(self, what: str, call: Callable[[], object], **told: Any) -> None:
        started_s, answered, refused, open_tries = self._recorder.now_s(), False, False, 0
        while not answered and not refused:
            try:
                call()
                answered = True
            except (OfflineError, ServerError, RateLimitedError):
                open_tries += 1
                if self._stop.wait(0.1):
                    break
            except ClientError:
                refused = True
        op = Op(machine="api", what=what, started_s=started_s, ended_s=self._recorder.now_s(), answered=answered, **told)
        if not refused or open_tries:
            self._recorder.op(op)


def _shared_paths() -> list[str]:
    return [
        *(f"/team/f{number}" for number in range(4)),
        *(f"{top}/f{number}" for top in SHARED_FOLDERS for number in range(2)),
    ]


def _paths_of_own(own: str) -> list[str]:
    plain = [f"{own}/f{number}" for number in range(4)]
    return [*plain, *(f"{own}/linked{number}" for number in range(3)), *(f"{own}/d/f{number}" for number in range(2))]
