"""Settings of hosts that turn hooks off: what is set up there does nothing, and the user should know."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Final

from memdir.agents.installers import jsontext
from memdir.agents.installers.hosts import Reach, targets
from memdir.core.errors import MemdirError
from memdir.core.othersfiles import read_file

_SWITCHES: Final[dict[str, tuple[tuple[tuple[str, ...], bool], ...]]] = {
    "claude-code": ((("disableAllHooks",), True),),
    "codex": ((("features", "hooks"), False), (("features", "codex_hooks"), False)),
    "gemini": ((("hooksConfig", "enabled"), False),),
    "cursor": (),
}
"""Path of a setting, and the value that turns hooks off. Documented by the hosts beside their hooks."""
_FILE_MAX_BYTES: Final = 4 << 20


def hooks_turned_off(host: str, reach: Reach) -> list[str]:
    """A sentence for each setting in the host's files that keeps the hook from running."""
    found = []
    for target in targets(host, reach):
        if target.kind == "text":
            continue
        value = _value(target.file, toml=target.kind == "toml")
        for path, off in _SWITCHES[host]:
            if _at(value, path) is off:
                found.append(f"{target.file} turns hooks off: {'.'.join(path)} is {str(off).lower()}")
    return found


def _value(file: Path, *, toml: bool) -> Any:
    """None for what cannot be read: that is told by whoever wants to change it."""
    try:
        read = read_file(file.resolve(), max_bytes=_FILE_MAX_BYTES)
        text = "" if read is None else read[0].decode("utf-8-sig")
        if not text.strip():
            return None
        return tomllib.loads(text) if toml else jsontext.parse(text).value
    except (MemdirError, OSError, ValueError):
        return None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value
