"""A real mount whose real server is wiped, put back from a copy of its files, and lets go of its history."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memdir.client.errors import NotFoundError
from memdir.client.local import ensure_server, stop_server
from memdir.core.clock import ENV_OFFSET
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountRecord
from tests.daemon.test_lazy import put, server_client
from tests.daemon.test_mount import STOP_S, Home, home, until

pytestmark = pytest.mark.mount
__all__ = ["home"]


def memdir(*words: str, code: int = 0, **env: str) -> str:
    """The real command."""
    command = [sys.executable, "-m", "memdir.cli", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | env)
    assert done.returncode == code, done.stderr
    return done.stdout


def pushed(home: Home, record: MountRecord) -> None:
    until(lambda: home.call(record, "sync", wait=True, timeout_s=20)["drained"] is True)


def at_server(path: str) -> bytes | None:
    with server_client() as client:
        try:
            return client.read_file("notes", path)
        except NotFoundError:
            return None


def data_folder() -> Path:
    return Path(ensure_server(app_paths()).data_dir)


def held(home: Home, record: MountRecord) -> int:
    count = home.call(record, "status")["held_deletions"]
    assert isinstance(count, int)
    return count


@pytest.mark.promise("sync.wiped")
def test_after_its_server_was_wiped_a_mount_works_on_says_so_and_puts_everything_back_when_asked(home: Home) -> None:
    record = home.mount()
    (home.place / "d").mkdir()
    for number in range(8):
        (home.place / "d" / f"{number}.md").write_text(f"text {number}\n")
    pushed(home, record)
    folder = data_folder()
    stop_server(app_paths(), timeout_s=STOP_S)
    shutil.rmtree(folder)
    ensure_server(app_paths())
    until(lambda: held(home, record) == 9)
    (home.place / "new.md").write_text("written meanwhile\n")
    (home.place / "d" / "0.md").write_text("edited meanwhile\n")
    pushed(home, record)
    until(lambda: at_server("/new.md") == b"written meanwhile\n")
    assert at_server("/d/1.md") is None
    assert at_server("/d/0.md") == b"edited meanwhile\n"
    assert (home.place / "d" / "1.md").read_text() == "text 1\n"
    told = memdir("status", "notes")
    assert "8 files missing at the server, which was wiped or restored" in told
    assert "--upload-again" in told
    assert "--confirm-deletions" in told
    assert "8 files will be put at the server again" in memdir("sync", "notes", "--upload-again")
    pushed(home, record)
    for number in range(1, 8):
        assert at_server(f"/d/{number}.md") == f"text {number}\n".encode()
    with server_client() as client:
        client.delete_container("notes")
    until(lambda: held(home, record) == 10)
    assert "missing at the server" in memdir("unmount", "notes")
    assert (sorted(path.name for path in home.place.iterdir())) == []


@pytest.mark.promise("sync.backup")
def test_a_server_whose_files_were_put_back_by_hand_gets_what_it_lost_although_it_counted_on(home: Home) -> None:
    record = home.mount()
    for name in ("kept", "edited", "deleted"):
        (home.place / name).write_text("old\n")
    pushed(home, record)
    folder = data_folder()
    stop_server(app_paths(), timeout_s=STOP_S)
    shutil.copytree(folder, folder.with_name("backup"))
    ensure_server(app_paths())
    until(lambda: bool(home.server_of(record)["online"]))
    (home.place / "edited").write_text("newer\n")
    (home.place / "deleted").unlink()
    (home.place / "later").write_text("of the lost hour\n")
    pushed(home, record)
    stop_server(app_paths(), timeout_s=STOP_S)
    shutil.rmtree(folder)
    folder.with_name("backup").rename(folder)
    put({f"/theirs-{number}": b"theirs\n" for number in range(12)})  # before the mount comes back: the numbers pass its own
    until(lambda: (home.place / "theirs-11").exists() and at_server("/later") == b"of the lost hour\n")
    pushed(home, record)
    until(lambda: at_server("/deleted") is None)
    assert at_server("/edited") == b"newer\n"
    assert {path.name for path in home.place.iterdir() if path.name != "profile.md"} == {
        "kept", "edited", "later", *(f"theirs-{number}" for number in range(12))
    }  # fmt: skip
    assert held(home, record) == 0

    # The same by the product's own backup, which gives the container a new epoch.
    archive = home.place.parent / "backup.tar"
    memdir("server", "backup", str(archive))
    (home.place / "edited").write_text("after the backup\n")
    pushed(home, record)
    stop_server(app_paths(), timeout_s=STOP_S)
    memdir("server", "restore", str(archive), "--force")
    ensure_server(app_paths())
    until(lambda: at_server("/edited") == b"after the backup\n")

    # A feed that is not told any more: everything is compared, within the same life.
    stop_server(app_paths(), timeout_s=STOP_S)
    put({"/theirs-0": b"while it was away\n"})
    with server_client() as client:
        client.delete_file("notes", "/theirs-1")
    stop_server(app_paths(), timeout_s=STOP_S)
    memdir("server", "vacuum", "--history-days", "1", **{ENV_OFFSET: "200000"})
    ensure_server(app_paths())
    until(lambda: not (home.place / "theirs-1").exists())
    until(lambda: (home.place / "theirs-0").read_bytes() == b"while it was away\n")
