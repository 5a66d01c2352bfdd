"""The doctor's live test: mount a memory of its own, write a file, find it by meaning, take everything away again."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.mounts.doctor_checks import Check
from memdir.core.errors import MemdirError

if TYPE_CHECKING:
    from memdir.client.local import ServerInfo
    from memdir.daemon.registry import MountRecord, MountRegistry

_TEXT: Final = "The ferry to the island leaves the harbour at nine in the morning.\n"
_QUERY: Final = "when does the boat depart"
"""No word of it is in the text: only a search by meaning finds it."""
_START_TIMEOUT_S: Final = 30.0
_WAIT_MS: Final = 20_000
_NAME: Final = "round trip"


def check_round_trip(registry: MountRegistry, server: ServerInfo) -> list[Check]:
    """Mount, write, search, unmount, remove; one check for the trip and one more when something could not be removed."""
    from memdir.daemon.launch import start
    from memdir.daemon.registry import MountSpec

    name = f"doctor-{secrets.token_hex(6)}"
    folder = Path(tempfile.mkdtemp(prefix="memdir-doctor-"))
    place = folder / "mount"
    place.mkdir()
    record: MountRecord | None = None
    try:
        began_s = time.monotonic()
        record = start(MountSpec(name=name, path=str(place), drain_timeout_s=5.0), foreground=False, timeout_s=_START_TIMEOUT_S)
        mount_s = time.monotonic() - began_s
        trip = _write_and_find(record, place, mount_s)
    except (MemdirError, OSError) as error:
        detail = error.message if isinstance(error, MemdirError) else str(error)
        hint = getattr(error, "hint", "")
        repair = hint if hint and "memdir doctor" not in hint else "repair what failed above; see `memdir logs --server`"
        trip = Check(name=_NAME, status="fail", detail=detail, repair=repair)
    problems = _clean_up(registry, record, folder, name, server)
    return [
        trip,
        *([Check(name="clean-up", status="warn", detail="; ".join(problems), repair=f"remove {folder}")] if problems else []),
    ]


def _write_and_find(record: MountRecord, place: Path, mount_s: float) -> Check:
    from memdir.cli.targets import control

    if not (place / "profile.md").read_bytes():
        return Check(name=_NAME, status="fail", detail="profile.md is empty", repair="see the log of the mount")
    began_s = time.monotonic()
    (place / "ferry.md").write_text(_TEXT, encoding="utf-8")
    wait_s = _WAIT_MS / 1000
    control(record).call("sync", wait_s + 30.0, wait=True, timeout_s=wait_s)  # a paraphrase needs the transformer's vector
    answer: dict[str, Any] = control(record).call(
        "grep", wait_s + 30.0, q=_QUERY, paths=["/"], limit=5, mode="semantic", explain=False, wait_ms=_WAIT_MS
    )
    found_s = time.monotonic() - began_s
    hits = answer.get("hits") or []
    if not hits or hits[0]["path"] != "/ferry.md" or hits[0]["kind"] == "pending":
        why = str(answer.get("note") or "the search by meaning did not return it")
        return Check(
            name=_NAME, status="fail", detail=f"a file was written but not found: {why}", repair="see `memdir logs --server`"
        )
    detail = f"mounted in {mount_s:.2f} s, written and found by meaning in {found_s:.2f} s"
    return Check(name=_NAME, status="ok", detail=detail)


def _clean_up(registry: MountRegistry, record: MountRecord | None, folder: Path, name: str, server: ServerInfo) -> list[str]:
    """What could not be taken away."""
    from memdir.cli.mounts.unmount import stop_daemon
    from memdir.daemon.recovery import clear

    problems = []
    records = registry.find_by_name(name) if record is None else [record]
    for left in records:
        try:
            if left.state == "alive":
                stop_daemon(left, drain_timeout_s=0.0, force=True)
            clear(registry, left)
            registry.remove(left.id)
            shutil.rmtree(left.cache_dir)
        except (MemdirError, OSError) as error:
            problems.append(f"the test mount: {error}")
    try:
        os.rmdir(folder / "mount")  # never deletes files: a mount that is still there must survive this
        os.rmdir(folder)
    except OSError as error:
        problems.append(f"{folder}: {error.strerror}")
    try:
        _forget(name, server)
    except MemdirError as error:
        problems.append(f"the test memory on the server: {error.message}")
    return problems


def _forget(name: str, server: ServerInfo) -> None:
    from memdir.client.errors import NotFoundError
    from memdir.client.http import Client

    with Client.to(server) as client:
        try:
            client.delete_container(name)
        except NotFoundError:
            return  # the write never reached the server
