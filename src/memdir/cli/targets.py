"""From what a person types (a name, a path, nothing) to a mount. Reads the registry only, never a mounted file."""

from __future__ import annotations

import os
import shlex
import string
from pathlib import Path
from typing import Final

from memdir.core.errors import NotFoundError, UsageError
from memdir.core.paths import app_paths
from memdir.daemon.control import ControlClient
from memdir.daemon.registry import MountRecord, MountRegistry

NAME_MAX_CHARS: Final = 100
_NAME_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "-_.:")
_LISTED_MAX: Final = 10


def spoken(name: str, path: str) -> str:
    """How a command line names the mount of `name` at `path`: by its name, by its place when that name is mounted twice."""
    running = [record for record in open_registry().find_by_name(name) if record.state != "stopped"]
    return name if len(running) < 2 else shlex.quote(path)


def check_container_name(name: str) -> str:
    """A container's name as the server takes it: letters, digits, `-`, `_`, `.`, `:`, at most 100. UsageError otherwise."""
    if not name:
        raise UsageError("a memory needs a name", hint="for example: memdir mount notes")
    if len(name) > NAME_MAX_CHARS:
        raise UsageError(
            f"the name has {len(name)} characters, at most {NAME_MAX_CHARS} are allowed", hint="choose a shorter one"
        )
    bad = next((character for character in name if character not in _NAME_CHARACTERS), None)
    if bad == "/":
        hint = f"the name is not a path; write `memdir mount {_last_part(name)} --path {shlex.quote(name)}`"
        raise UsageError(f"{name!r} is not a name of a memory: it contains '/'", hint=hint)
    if bad is not None:
        raise UsageError(f"{name!r} is not a name of a memory: it contains {bad!r}", hint="use letters, digits, and - _ . :")
    if name.startswith("-"):
        raise UsageError(
            f"{name!r} is not a name of a memory: it begins with '-', so every command would take it for an option",
            hint="begin with a letter or a digit",
        )
    if name in (".", ".."):
        raise UsageError(f"{name!r} is not a name of a memory: it means a folder", hint="use letters, digits, and - _ . :")
    return name


def _last_part(path: str) -> str:
    part = path.rstrip("/").rpartition("/")[2]
    cleaned = "".join(character if character in _NAME_CHARACTERS else "-" for character in part)
    return cleaned if cleaned not in ("", ".", "..") else "notes"


def open_registry() -> MountRegistry:
    return MountRegistry(app_paths())


def current_folder() -> str:
    """The working directory; UsageError when it was deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current directory does not exist any more", hint="change to another directory") from None


def control(record: MountRecord) -> ControlClient:
    return ControlClient(record.socket_file)


def find_mount(registry: MountRegistry, target: str | None, *, exact: bool = False) -> MountRecord:
    """The mount that `target` means, whatever its state.

    A name, or a path: of the mountpoint when `exact`, else of anything inside the mount. None means the mount around the
    current directory, or the only one that is mounted.
    """
    if target is None:
        return _implied_mount(registry)
    if "/" not in target and target not in (".", ".."):
        named = registry.find_by_name(target)
        running = [record for record in named if record.state != "stopped"]
        if len(running) > 1:
            places = ", ".join(record.path for record in running)
            raise UsageError(f"{target} is mounted {len(running)} times: {places}", hint="give the path instead of the name")
        if named:
            return named[0]
    found = registry.find_by_path(_absolute(target))
    if found is not None and (not exact or found[1] == "/"):
        return found[0]
    if found is not None:
        raise UsageError(f"{target} is inside the mount of {found[0].name}, not its mountpoint", hint=f"use {found[0].path}")
    raise NotFoundError(f"there is no mount {target!r}", hint=describe_mounts(registry))


def path_in_mount(registry: MountRegistry, record: MountRecord, target: str | None) -> str | None:
    """The path inside `record`'s mount that `target` means; None for a name, the mountpoint, or nothing: the whole mount."""
    if target is None or target == record.name:
        return None
    found = registry.find_by_path(_absolute(target))
    return found[1] if found is not None and found[1] != "/" else None


def _absolute(path: str) -> Path:
    return Path(path) if path.startswith("/") else Path(current_folder(), path)


def _implied_mount(registry: MountRegistry) -> MountRecord:
    here = registry.find_by_path(Path(current_folder()))
    if here is not None and here[0].state != "stopped":
        return here[0]
    running = [record for record in registry.all() if record.state != "stopped"]
    if len(running) == 1:
        return running[0]
    if not running:
        raise NotFoundError("nothing is mounted", hint="start with `memdir mount NAME`")
    raise UsageError("there is more than one mount, say which", hint=describe_mounts(registry))


def require_running(record: MountRecord) -> MountRecord:
    """`record` when its daemon runs; else the error that says how to bring it back."""
    state = record.state
    if state == "alive":
        return record
    if state == "dead":
        raise UsageError(
            f"the daemon of {record.name} (pid {record.pid}) ended without unmounting {record.path}",
            hint=f"`{mount_command(record)}` goes on where it was; nothing is lost",
        )
    raise UsageError(f"{record.name} is not mounted", hint=f"mount it with `{mount_command(record)}`")


def mount_command(record: MountRecord) -> str:
    """The command line that mounts `record` again at its place, from the current directory."""
    try:
        beside = os.path.join(os.getcwd(), record.name) == record.path
    except FileNotFoundError:
        beside = False
    return f"memdir mount {record.name}" if beside else f"memdir mount {record.name} --path {shlex.quote(record.path)}"


def describe_mounts(registry: MountRegistry) -> str:
    """For hints: what is mounted now."""
    running = [record for record in registry.all() if record.state != "stopped"]
    if not running:
        return "nothing is mounted; start with `memdir mount NAME`"
    listed = [f"{record.name} at {record.path}" for record in running[:_LISTED_MAX]]
    more = f" and {len(running) - _LISTED_MAX} more" if len(running) > _LISTED_MAX else ""
    return f"mounted: {', '.join(listed)}{more}"
