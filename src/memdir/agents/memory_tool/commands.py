"""The six commands of the memory tool, with the texts that Anthropic documents for its results and errors
(platform.claude.com/docs/en/agents-and-tools/tool-use/memory-tool): models were trained with them.

Bounds of our own: files up to FILE_MAX_BYTES, a view up to VIEW_MAX_CHARS (the rest by `view_range`), a folder up to
ENTRIES_MAX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.agents.memory_tool.files import ENTRIES_MAX, FILE_MAX_BYTES, Entry, MemoryFiles, MemoryToolError, Names
from memdir.agents.memory_tool.paths import names_of, shown
from memdir.api.agents import AGENT_CONTAINER_DEFAULT

TOOL_TYPE: Final = "memory_20250818"
TOOL_NAME: Final = "memory"
LINES_MAX: Final = 999_999
VIEW_MAX_CHARS: Final = 16_000
_LEVELS: Final = 2
_AROUND: Final = 4
"""Lines of a snippet before and behind an edit."""
_QUOTED_MAX_CHARS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The content of the `tool_result` block, and its `is_error`."""

    text: str
    is_error: bool


class MemoryTool:
    """Runs what a model asks of its memory. `definition` goes into the request's `tools`, each `tool_use` input to `run`.

    >>> tool = MemoryTool.on_folder("/mnt/notes/memory")
    >>> tool.run({"command": "view", "path": "/memories"}).text
    """

    definition: Final = {"type": TOOL_TYPE, "name": TOOL_NAME}

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files
        self._commands: dict[str, Callable[[Mapping[str, Any]], str]] = {
            "view": self._view, "create": self._create, "str_replace": self._str_replace, "insert": self._insert,
            "delete": self._delete, "rename": self._rename,
        }  # fmt: skip

    @classmethod
    def on_folder(cls, folder: str | Path) -> MemoryTool:
        """On a folder: `memory` of a mount, or any other. It is made when it does not exist."""
        from memdir.agents.memory_tool.folder import FolderFiles

        return cls(FolderFiles(Path(folder)))

    @classmethod
    def on_server(cls, container: str = AGENT_CONTAINER_DEFAULT) -> MemoryTool:
        """On `/memory` of a container of this user's server, which is started when it does not run; no mount is needed."""
        from memdir.agents.memory_tool.remote import ServerFiles

        return cls(ServerFiles.found(container))

    def run(self, given: object) -> Reply:
        """Do one command, the `input` of a `tool_use` block; what goes wrong is told in the reply, whatever a model sent."""
        if not isinstance(given, Mapping) or (command := self._commands.get(str(given.get("command")))) is None:
            return Reply(text=f"Error: there is no such command; there are {', '.join(self._commands)}", is_error=True)
        try:
            return Reply(text=command(given), is_error=False)
        except MemoryToolError as error:
            return Reply(text=error.message, is_error=True)

    # --- the commands --------------------------------------------------------------------------------------------

    def _view(self, given: Mapping[str, Any]) -> str:
        names = names_of(given.get("path"))
        if self._files.kind(names) == "dir":
            if given.get("view_range") is not None:
                raise MemoryToolError("Error: `view_range` is for files, and the path is a directory")
            return self._folder(names)
        raw = self._files.read(names)
        if raw is None:
            raise MemoryToolError(f"The path {shown(names)} does not exist. Please provide a valid path.")
        lines = lines_of(text_of(names, raw))
        if len(lines) > LINES_MAX:
            raise MemoryToolError(f"File {shown(names)} exceeds maximum line limit of 999,999 lines.")
        first, last = _range(given.get("view_range"), len(lines))
        return f"Here's the content of {shown(names)} with line numbers:\n" + _numbered(lines, first, last)

    def _create(self, given: Mapping[str, Any]) -> str:
        names = _below_root(given.get("path"), "created")
        content = _bytes(names, _text(given, "file_text"))
        if not self._files.create(names, content):
            raise MemoryToolError(f"Error: File {shown(names)} already exists")
        return f"File created successfully at: {shown(names)}"

    def _str_replace(self, given: Mapping[str, Any]) -> str:
        names = names_of(given.get("path"))
        old, new = _text(given, "old_str"), _text(given, "new_str", default="")
        snippets: list[str] = []

        def edit(raw: bytes) -> bytes:
            text = text_of(names, raw)
            at = _only_place(names, text, old)
            changed = text[:at] + new + text[at + len(old) :]
            line = text.count("\n", 0, at) + 1
            snippets[:] = [_snippet(changed, line, line + new.count("\n"))]
            return _bytes(names, changed)

        if not self._files.change(names, edit):
            raise MemoryToolError(f"Error: The path {shown(names)} does not exist. Please provide a valid path.")
        return f"The memory file has been edited.\n{snippets[0]}"

    def _insert(self, given: Mapping[str, Any]) -> str:
        names = names_of(given.get("path"))
        at, text = given.get("insert_line"), _text(given, "insert_text")

        def edit(raw: bytes) -> bytes:
            lines = lines_of(text_of(names, raw))
            if not isinstance(at, int) or isinstance(at, bool) or not 0 <= at <= len(lines):
                raise MemoryToolError(
                    f"Error: Invalid `insert_line` parameter: {_quoted(at)}. It should be within the range of lines of the "
                    f"file: [0, {len(lines)}]"
                )
            lines[at:at] = lines_of(text) or [""]
            return _bytes(names, "\n".join(lines) + "\n")

        if not self._files.change(names, edit):
            raise MemoryToolError(f"Error: The path {shown(names)} does not exist")
        return f"The file {shown(names)} has been edited."

    def _delete(self, given: Mapping[str, Any]) -> str:
        names = _below_root(given.get("path"), "deleted")
        if not self._files.delete(names):
            raise MemoryToolError(f"Error: The path {shown(names)} does not exist")
        return f"Successfully deleted {shown(names)}"

    def _rename(self, given: Mapping[str, Any]) -> str:
        old = _below_root(given.get("old_path"), "renamed")
        new = names_of(given.get("new_path"))
        if self._files.kind(old) is None:
            raise MemoryToolError(f"Error: The path {shown(old)} does not exist")
        if new[: len(old)] == old and new != old:
            raise MemoryToolError(f"Error: {shown(old)} cannot be moved into itself")
        if not new or not self._files.rename(old, new):
            raise MemoryToolError(f"Error: The destination {shown(new)} already exists")
        return f"Successfully renamed {shown(old)} to {shown(new)}"

    # --- views ---------------------------------------------------------------------------------------------------

    def _folder(self, names: Names) -> str:
        entries = self._files.below(names, levels=_LEVELS)
        more = len(entries) > ENTRIES_MAX
        entries = entries[:ENTRIES_MAX]
        what = f"Here're the files and directories up to {_LEVELS} levels deep in {shown(names)}"
        lines = [f"{what}, excluding hidden items and node_modules:", f"{size_text(_sum(entries, names))}\t{shown(names)}"]
        for entry in entries:
            size = entry.size_bytes if entry.kind == "file" else _sum(entries, entry.names)
            lines.append(f"{size_text(size)}\t{shown(entry.names)}")
        if more:
            lines.append(f"[only the first {ENTRIES_MAX:,} are listed; view a directory in it for the others]")
        return "\n".join(lines)


def size_text(size_bytes: int) -> str:
    """As the documented examples have it: 5.5K, 1.2M."""
    size = float(size_bytes)
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size:.0f}{unit}" if unit == "B" else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}G"


def lines_of(text: str) -> list[str]:
    """The lines of a text; a newline at the end begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def text_of(names: Names, raw: bytes) -> str:
    """A file's text. What is no UTF-8 is not shown and not edited: nobody could put it back as it was."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise MemoryToolError(f"Error: The file {shown(names)} is not a text file in UTF-8") from None


def _below_root(path: object, done: str) -> Names:
    names = names_of(path)
    if not names:
        raise MemoryToolError(f"Error: The directory {shown(names)} itself cannot be {done}")
    return names


def _text(given: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    value = given.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise MemoryToolError(f"Error: Parameter `{name}` is required, and must be a string")
    return value


def _bytes(names: Names, text: str) -> bytes:
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:
        raise MemoryToolError(f"Error: The text for {shown(names)} holds half of a surrogate pair, which no file can") from None
    if len(content) > FILE_MAX_BYTES:
        raise MemoryToolError(
            f"Error: The file {shown(names)} would have {len(content):,} bytes; at most {FILE_MAX_BYTES:,} are allowed. "
            "Split it into several files."
        )
    return content


def _only_place(names: Names, text: str, old: str) -> int:
    """Where `old` stands, once."""
    at = text.find(old) if old else -1
    if at < 0:
        raise MemoryToolError(
            f"No replacement was performed, old_str `{_quoted(old)}` did not appear verbatim in {shown(names)}."
        )
    lines: list[int] = []
    place = at
    while place >= 0 and len(lines) < 100:
        lines.append(text.count("\n", 0, place) + 1)
        place = text.find(old, place + 1)
    if len(lines) > 1:
        raise MemoryToolError(
            f"No replacement was performed. Multiple occurrences of old_str `{_quoted(old)}` in lines: "
            f"{', '.join(map(str, lines))}. Please ensure it is unique"
        )
    return at


def _quoted(value: object) -> str:
    text = str(value)
    return text if len(text) <= _QUOTED_MAX_CHARS else text[:_QUOTED_MAX_CHARS] + "…"


def _range(given: object, count: int) -> tuple[int, int]:
    """First and last line of a view, counted from 1; -1 at the end of a range means to the end."""
    if given is None:
        return 1, count
    numbers = [one for one in given if type(one) is int] if isinstance(given, list | tuple) else []
    if isinstance(given, list | tuple) and len(numbers) == len(given) == 2:
        first, last = numbers[0], count if numbers[1] == -1 else numbers[1]
        if 1 <= first <= last <= count:
            return first, last
    raise MemoryToolError(
        f"Error: Invalid `view_range` parameter: {_quoted(given)}. It should be two line numbers within the range of lines of "
        f"the file: [1, {count}]"
    )


def _numbered(lines: list[str], first: int, last: int) -> str:
    shown_lines: list[str] = []
    used = 0
    for number in range(first, last + 1):
        line = f"{number:6d}\t{lines[number - 1]}"
        used += len(line) + 1
        if used > VIEW_MAX_CHARS:
            if not shown_lines:
                return line[:VIEW_MAX_CHARS] + f"\n[line {number} is cut: it has {len(lines[number - 1]):,} characters]"
            shown_lines.append(f"[cut before line {number} of {len(lines)}; view_range [{number}, {last}] gives the rest]")
            break
        shown_lines.append(line)
    return "\n".join(shown_lines)


def _snippet(text: str, first: int, last: int) -> str:
    lines = lines_of(text)
    first, last = max(first - _AROUND, 1), min(last + _AROUND, len(lines))
    return _numbered(lines, first, last)


def _sum(entries: list[Entry], names: Names) -> int:
    """Of the files that are listed below a folder."""
    return sum(entry.size_bytes for entry in entries if entry.kind == "file" and entry.names[: len(names)] == names)
