"""The processes of a run: one server, and machines that each have a home, a network and a mount of their own. All real, and all
of them can be killed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memdir.client.http import Client
from memdir.core.paths import under_home
from memdir.daemon.control import ControlClient
from memdir.daemon.registry import MountRecord, MountRegistry
from memdir.fs.localonly import is_local_only
from tests.acceptance.driver import Memdir, eventually, kill
from tests.checker.proxy import Proxy

CONTAINER = "team"
_STATUS_S = 30.0
IGNORE_FILE = "/.memdirignore"
"""Written by the mount, which is to sync everything: Git's own files are among what is checked."""
_VIEWS = ("/profile.md", "/.memdir")


class Server:
    """A server in a process; started again it has the same address."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.memdir = Memdir(folder=folder, home=folder / "home")
        self._port = 0
        self.log = folder / "server.log"
        self.start()
        self.key = str(self.memdir.run("server", "key", "create", "--name", "checker", "--json").json()["key"])

    def start(self) -> None:
        state = self.memdir.home / "state" / "server.json"
        state.unlink(missing_ok=True)
        command = [sys.executable, "-m", "memdir.cli", "server", "run", "--port", str(self._port), "--workers", "0"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self.memdir.env, cwd=self.memdir.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        eventually(lambda: state.exists() or self._process.poll() is not None, "the server says where it is", tries=400)
        assert self._process.poll() is None, self.log.read_text()[-2000:]
        self._port = self.address[1]

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(json.loads((self.memdir.home / "state" / "server.json").read_text())["url"])
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def client(self, url: str = "") -> Client:
        host, port = self.address
        return Client(url or f"http://{host}:{port}", self.key)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)

    def close(self) -> None:
        """End it in order."""
        self._process.terminate()
        assert self._process.wait(60) == 0, self.log.read_text()[-2000:]


class Machine:
    """One mount of the memory. `up` is cleared while its daemon is dead."""

    def __init__(self, folder: Path, name: str, server: Server, *, seed: int) -> None:
        folder.mkdir()
        self.name = name
        self.proxy = Proxy(server.address, seed=seed)
        self.memdir = Memdir(
            folder=folder, home=folder / "home", env={"MEMDIR_SERVER_URL": self.proxy.url, "MEMDIR_API_KEY": server.key}
        )
        self.place = folder / CONTAINER
        self.up = threading.Event()
        self._users = [threading.Lock(), threading.Lock()]
        """The mount is not put up again under somebody who is about to use the place."""

    def mount(self) -> None:
        with self._users[0], self._users[1]:
            self.memdir.mount(CONTAINER, "--all", "--path", self.place, "--fetch-timeout", "3", "--drain-timeout", "60")
        self.up.set()

    @contextmanager
    def used(self, user: int) -> Iterator[None]:
        with self._users[user]:
            yield

    @property
    def record(self) -> MountRecord:
        (record,) = MountRegistry(under_home(self.memdir.home)).all()
        return record

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        return ControlClient(self.record.socket_file).call(op, _STATUS_S, **arguments)

    def kill(self) -> None:
        pid = self.record.pid
        assert pid is not None
        self.up.clear()
        kill(pid, signal.SIGKILL)

    def unmount(self) -> str:
        return self.memdir.run("unmount", self.place, limit_s=120).out

    def complaints(self) -> list[str]:
        """What the daemons wrote into their log that no daemon should ever have to write."""
        text = Path(self.record.log_file).read_text(errors="replace")
        return [line for line in text.splitlines() if "Traceback" in line or "internal error" in line]

    def names(self) -> dict[str, Path]:
        """Everything that stands in the mount, but for what stays on this machine."""
        found = {}
        for top, folders, files in os.walk(self.place):
            for name in [*folders, *files]:
                path = Path(top, name)
                inside = "/" + str(path.relative_to(self.place))
                if not is_local_only(inside) and not inside.startswith(_VIEWS):
                    found[inside] = path
        return found

    def tree(self) -> tuple[dict[str, str], set[str]]:
        """Files and links by the hash of their contents, and folders."""
        files, folders = {}, set()
        for inside, path in self.names().items():
            if path.is_symlink():
                files[inside] = hashlib.sha256(os.readlink(path).encode()).hexdigest()
            elif path.is_dir():
                folders.add(inside)
            else:
                files[inside] = hashlib.sha256(path.read_bytes()).hexdigest()
        return files, folders

    def close(self) -> None:
        self.proxy.close()
        self.memdir.close()


def server_tree(client: Client) -> tuple[dict[str, str], set[str], dict[str, bytes]]:
    """As `Machine.tree`, from the bytes that the server gives; and the contents of what stands below /logs."""
    files, folders, logs = {}, set(), {}
    after: str | None = None
    while True:
        page = client.list_files(CONTAINER, after=after)
        for entry in page.entries:
            if entry.kind == "dir":
                folders.add(entry.path)
                continue
            if entry.path == IGNORE_FILE:
                continue
            content = client.read_file(CONTAINER, entry.path)
            files[entry.path] = hashlib.sha256(content).hexdigest()
            assert files[entry.path] == entry.content_hash, entry.path
            if entry.path.startswith("/logs/"):
                logs[entry.path] = content
        after = page.next_after
        if after is None:
            return files, folders, logs


def forget(folder: Path) -> None:
    """A run in order leaves nothing to look at."""
    shutil.rmtree(folder)
