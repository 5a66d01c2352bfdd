"""Parts into the bytes of one file and out of them again: JSON, TOML, Markdown. Pure: no files."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any, Final, Literal

from memdir.agents.installers import jsontext
from memdir.agents.installers.hosts import NAME, Kind, Part
from memdir.core.errors import StorageError
from memdir.core.markedblock import Inserted, with_block, without_block

_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A part that is in the file, and what it takes to undo that. `put` in JSON, `inserted` in a text."""

    part: Part
    put: jsontext.Put | None = None
    inserted: Inserted | None = None


def present(data: bytes, kind: Kind, part: Part) -> Literal["yes", "other", "no"]:
    """Whether the part is in the file; `other`: something else has its name there. MemdirError for what cannot be read."""
    _, text = _decoded(data)
    if kind == "json":
        if not text.strip():
            return "no"
        if jsontext.found(text, part.path, part.key, lambda value: is_ours(value, part.value)):
            return "yes"
        named = part.key is not None and jsontext.found(text, part.path, part.key, lambda _: True)
        return "other" if named else "no"
    if kind == "toml":
        servers = _toml(text).get("mcp_servers", {})
        if not isinstance(servers, dict):
            raise StorageError("mcp_servers is no table", hint="mend it by hand; nothing was changed")
        server = servers.get(NAME)
        if server is None:
            return "no"
        return "yes" if is_ours(server, tomllib.loads("\n".join(part.lines))["mcp_servers"][NAME]) else "other"
    if f"memdir:begin {part.key} " not in text:
        return "no"
    return "yes" if all(line in text for line in part.lines) else "other"


def with_part(data: bytes, kind: Kind, part: Part) -> tuple[bytes, Done]:
    """`data` with a part that is not there. MemdirError for what cannot take it."""
    bom, text = _decoded(data)
    if kind == "json":
        longer, done = jsontext.put(text if text.strip() else "{}" + text, part.path, part.key, part.value)
        return bom + longer.encode(), Done(part=part, put=done)
    assert part.key is not None
    longer_data, inserted = with_block(data, part.key, part.lines, "hash" if kind == "toml" else "html")
    if kind == "toml":
        _check_toml(_toml(text), longer_data, part)
    return longer_data, Done(part=part, inserted=inserted)


def without_part(data: bytes, kind: Kind, done: Done) -> bytes:
    """`data` without the part, whatever else was changed. MemdirError when that would change something else."""
    if kind == "json":
        bom, text = _decoded(data)
        if done.put is None or not text.strip():
            return data
        return bom + jsontext.take_out(text, done.put, lambda value: is_ours(value, done.part.value)).encode()
    assert done.part.key is not None
    rest = without_block(data, done.part.key, done.inserted, "hash" if kind == "toml" else "html")
    if kind == "toml":
        before = _toml(_decoded(data)[1])
        before.get("mcp_servers", {}).pop(NAME, None)
        if before.get("mcp_servers") == {}:
            del before["mcp_servers"]
        if _toml(_decoded(rest)[1]) != before:
            raise StorageError(
                f"lines were added to the table mcp_servers.{NAME}",
                hint="take the table out by hand, with what was added to it",
            )
    return rest


def is_ours(value: Any, put_in: Any) -> bool:
    """Whether a value is what we put in, or that with other settings around the same command."""
    return bool(value == put_in) or (bool(_commands(value)) and _commands(value) == _commands(put_in))


def _commands(value: Any) -> list[Any]:
    if not isinstance(value, dict):
        return []
    handlers = value.get("hooks")
    if isinstance(handlers, list):
        return [handler.get("command") for handler in handlers if isinstance(handler, dict)]
    return [value["command"], value.get("args")] if "command" in value else []


def _decoded(data: bytes) -> tuple[bytes, str]:
    """Byte order mark and text. StorageError for anything but UTF-8."""
    if data.startswith(_UTF16):
        raise StorageError("it is UTF-16 text", hint="hosts read UTF-8: convert it")
    bom = _BOM if data.startswith(_BOM) else b""
    try:
        return bom, data[len(bom) :].decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(f"it is no UTF-8 text (byte {error.start})", hint="mend it by hand; nothing was changed") from None


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StorageError(f"it is no TOML: {error}", hint="mend it by hand; nothing was changed") from None


def _check_toml(before: dict[str, Any], data: bytes, part: Part) -> None:
    """A table behind everything else is valid, unless `mcp_servers` is written inline."""
    table = tomllib.loads("\n".join(part.lines))
    expected = {**before, "mcp_servers": {**before.get("mcp_servers", {}), **table["mcp_servers"]}}
    try:
        after = tomllib.loads(_decoded(data)[1])
    except tomllib.TOMLDecodeError:
        after = {}
    if after != expected:
        raise StorageError("mcp_servers is written inline and cannot get a table", hint="write it as [mcp_servers.NAME] tables")
