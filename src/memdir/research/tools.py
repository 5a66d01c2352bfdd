"""The tools of both agents. Every result is bounded, every refusal says what to do, and nothing is written outside of what the
stage may write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import re2
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memdir.core.errors import MemdirError
from memdir.llm.port import ToolCall, ToolSpec
from memdir.research import outline as plans
from memdir.research.agent import FINISHES_MAX, Result
from memdir.research.archive import Archive
from memdir.research.checks import Checks, Finding
from memdir.research.citations import stamped
from memdir.research.digest import numbered
from memdir.research.fence import fenced
from memdir.research.state import Stage
from memdir.research.web.local_index import Entry, LocalIndex
from memdir.research.workspace import FILE_MAX_BYTES, INDEX, NOTES, SECTIONS, SOURCES, Workspace, split_lines

READ_MAX_CHARS: Final = 16_000
_LISTED_MAX: Final = 400
_HITS_MAX: Final = 40
_URLS_MAX: Final = 8
_FINDINGS_SHOWN: Final = 25
_CHANGING: Final = frozenset({"write", "edit", "move", "delete", "fetch"})
_REPEATS_MAX: Final = 5
"""Then the stage ends: what goes round in circles costs, and comes to nothing."""


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ListFiles(Arguments):
    folder: str = Field(default="", max_length=1000, description="such as knowledge_base; empty for the whole workspace")


class Read(Arguments):
    path: str = Field(max_length=1000)
    first: int = Field(default=1, ge=1, description="number of the first line")
    last: int | None = Field(default=None, ge=1, description="number of the last line; by default as many as fit")


class Write(Arguments):
    path: str = Field(max_length=1000)
    text: str = Field(max_length=FILE_MAX_BYTES, description="the whole file")


class Edit(Arguments):
    path: str = Field(max_length=1000)
    old: str = Field(min_length=1, max_length=FILE_MAX_BYTES, description="text that occurs exactly once in the file")
    new: str = Field(max_length=FILE_MAX_BYTES)


class Move(Arguments):
    path: str = Field(max_length=1000)
    to: str = Field(max_length=1000)


class Delete(Arguments):
    path: str = Field(max_length=1000)


class Search(Arguments):
    query: str = Field(min_length=1, max_length=1000)


class Grep(Arguments):
    pattern: str = Field(min_length=1, max_length=500, description="a regular expression (RE2), case does not matter")
    folder: str = Field(default="", max_length=1000)


class WebSearch(Arguments):
    query: str = Field(min_length=1, max_length=400)


class Fetch(Arguments):
    urls: list[str] = Field(
        min_length=1, max_length=_URLS_MAX, description="addresses from a web_search, or links in archived pages"
    )
    question: str = Field(default="", max_length=1000, description="what you want to know from them")


class FinishRound(Arguments):
    complete: bool = Field(description="whether the knowledge base answers the topic; false asks for another round")
    summary: str = Field(max_length=4000, description="what this round found")
    exhaustive_coverage: str = Field(
        max_length=2000, description="can a question on the topic not be answered from the knowledge base?"
    )
    information_density: str = Field(
        max_length=2000, description="do the notes hold specific figures and facts, or vague summaries?"
    )
    next_round: list[str] = Field(default=[], max_length=30, description="what the next round should do")


class FinishWriting(Arguments):
    summary: str = Field(max_length=4000, description="what was written or changed, and what is weak")


class Outside(Protocol):
    """Searches and fetches, journalled by the run."""

    def search(self, query: str) -> Result: ...

    def fetch(self, urls: Sequence[str], question: str) -> Result: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a stage may do: the names of its tools, which paths it may write, and what must hold before it may end."""

    tools: tuple[str, ...]
    may_write: Callable[[str], bool]
    where: str
    """For people and models: what `may_write` lets through."""
    findings: Callable[[dict[str, Any]], list[Finding]]
    finish: type[Arguments]


_ARGUMENTS: Final[dict[str, tuple[type[Arguments], str]]] = {
    "list_files": (ListFiles, "List the files of the workspace with their sizes."),
    "read": (Read, "Read a file of the workspace, with line numbers."),
    "write": (Write, "Write a whole file. Cite as [sources/NAME.md#L3-L9]: the lines that say it."),
    "edit": (Edit, "Replace one passage of a file."),
    "move": (Move, "Move a note to another name."),
    "delete": (Delete, "Delete a note."),
    "search": (Search, "Search the workspace for passages, by words."),
    "grep": (Grep, "Find lines of the workspace that match a pattern."),
    "web_search": (WebSearch, "Search for pages. Several narrow questions find more than one wide one."),
    "fetch": (Fetch, "Fetch pages, archive them in sources/ and see what they say on your question, with line numbers."),
}


class Toolbox:
    """The tools of one stage."""

    def __init__(
        self, workspace: Workspace, archive: Archive, checks: Checks, outside: Outside, permission: Permission
    ) -> None:
        self._workspace = workspace
        self._archive = archive
        self._checks = checks
        self._outside = outside
        self._permission = permission

    @property
    def specs(self) -> Sequence[ToolSpec]:
        found = [
            ToolSpec(name=name, description=_ARGUMENTS[name][1], parameters=_schema(_ARGUMENTS[name][0]))
            for name in self._permission.tools
        ]
        done = "Say that this stage is done. Mechanical checks decide; what they find comes back."
        return [*found, ToolSpec(name="finish", description=done, parameters=_schema(self._permission.finish))]

    def run(self, call: ToolCall, stage: Stage) -> Result:
        """See `agent.Tools`."""
        if call.name not in (*self._permission.tools, "finish"):
            return _refused(
                f"there is no tool {call.name!r} in this stage", f"the tools are {', '.join(self._permission.tools)}, finish"
            )
        kind = self._permission.finish if call.name == "finish" else _ARGUMENTS[call.name][0]
        if call.arguments is None:
            return _refused("the arguments are no JSON object", "call the tool again")
        try:
            arguments = kind.model_validate(dict(call.arguments))
        except ValidationError as error:
            told = "; ".join(f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}" for one in error.errors()[:5])
            return _refused(told, "call the tool again")
        try:
            if isinstance(arguments, FinishRound | FinishWriting):
                return self._finish(arguments, stage)
            result: Result = getattr(self, f"_{call.name}")(arguments)
        except MemdirError as error:
            result = _refused(error.message, error.hint)
        times = _repeated(call, result, stage)
        if times:
            return _said_again(result, times)
        return result

    # --- reading

    def _list_files(self, given: ListFiles) -> Result:
        folder = given.folder.rstrip("/")
        if folder and not self._workspace.place(folder).is_dir():
            return _refused(f"there is no folder {folder!r} in the workspace", "an empty `folder` lists everything")
        paths = self._workspace.files(folder)
        lines = [f"{path}  {len(self._workspace.lines(path))} lines" for path in paths[:_LISTED_MAX]]
        if len(paths) > _LISTED_MAX:
            lines.append(f"and {len(paths) - _LISTED_MAX} more: list one folder")
        return Result(text="\n".join(lines) or "no files yet", says=f"list {given.folder or 'all'}")

    def _read(self, given: Read) -> Result:
        text = self._workspace.read(given.path)
        if text is None:
            page = "pages are read after `fetch` has archived them" if "fetch" in self._permission.tools else ""
            return _refused(f"there is no file {given.path!r}", f"list_files shows what is there{'; ' + page if page else ''}")
        lines = list(enumerate(split_lines(text), start=1))
        wanted = lines[given.first - 1 : given.last]
        kept, room = list[tuple[int, str]](), READ_MAX_CHARS
        for one in wanted:
            room -= len(one[1]) + 7
            if room < 0 and kept:
                break
            kept.append(one)
        shown = numbered(kept) or f"(no such lines: the file has {len(lines)})"
        if kept and kept[-1][0] < len(lines):
            shown += f"\n(lines {kept[0][0]} to {kept[-1][0]} of {len(lines)}; read on with `first`)"
        is_outside = given.path.removeprefix("./").startswith(f"{SOURCES}/")
        return Result(text=fenced(shown, given.path) if is_outside else shown, says=f"read {given.path}")

    def _search(self, given: Search) -> Result:
        found = LocalIndex(self._passages()).search(given.query, 12)
        lines = [f"{one.key}: {line}" for one, line in found]
        return Result(
            text=fenced("\n".join(lines), "the workspace") if lines else "nothing found", says=f"search {given.query!r}"
        )

    def _passages(self) -> list[Entry]:
        """Every paragraph of notes and pages, under `path:line`."""
        entries = []
        for path in self._workspace.files():
            if path.endswith(".md"):
                lines = split_lines(self._workspace.read(path) or "")
                at = 0
                while at < len(lines):
                    end = at
                    while end < len(lines) and lines[end].strip() and end - at < 12:
                        end += 1
                    if end > at:
                        entries.append(Entry(key=f"{path}:{at + 1}", title=path, text="\n".join(lines[at:end])))
                    at = max(end, at + 1)
        return entries

    def _grep(self, given: Grep) -> Result:
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        try:
            pattern = re2.compile(given.pattern, options)
        except re2.error as error:
            return _refused(f"{given.pattern!r} is no pattern: {error}", "escape special characters with a backslash")
        hits = []
        for path in self._workspace.files(given.folder.rstrip("/")):
            for number, line in enumerate(self._workspace.lines(path), start=1):
                if pattern.search(line):
                    hits.append(f"{path}:{number}: {line.strip()[:300]}")
                    if len(hits) >= _HITS_MAX:
                        return Result(
                            text=fenced("\n".join(hits), "the workspace") + "\n(more is left out)",
                            says=f"grep {given.pattern!r}",
                        )
        return Result(
            text=fenced("\n".join(hits), "the workspace") if hits else "no line matches", says=f"grep {given.pattern!r}"
        )

    # --- writing

    def _writable(self, path: str) -> str:
        plain = path.removeprefix("./")
        self._workspace.place(plain)
        if not self._permission.may_write(plain):
            hint = f"it writes {self._permission.where}"
            better = f"{NOTES}/{plain.rpartition('/')[2]}"
            if plain.endswith(".md") and self._permission.may_write(better):
                hint += f", for example {better}"
            raise MemdirError(f"{plain!r} may not be written in this stage", hint=hint)
        return plain

    def _write(self, given: Write) -> Result:
        return self._written(self._writable(given.path), given.text)

    def _edit(self, given: Edit) -> Result:
        path = self._writable(given.path)
        text = self._workspace.read(path)
        if text is None:
            return _refused(f"there is no file {path!r}", "write it first")
        count = text.count(given.old)
        if count != 1:
            return _refused(
                f"the old text occurs {count} times in {path}", "give a passage that occurs exactly once, as read shows it"
            )
        return self._written(path, text.replace(given.old, given.new))

    def _written(self, path: str, text: str) -> Result:
        text = stamped(text.replace("\r\n", "\n"), self._archive.lines)
        if not text.endswith("\n"):
            text += "\n"
        if len(text.encode("utf-8", "replace")) > FILE_MAX_BYTES:
            return _refused(f"a file has at most {FILE_MAX_BYTES >> 10} KiB", "split it by subject")
        if path == INDEX:
            text = self._with_round_log(text)
        if text == self._workspace.read(path):
            return Result(text=f"{path} is as it was: nothing changed{self._warned(path, text)}", says=f"write {path}")
        told = f"{path} is written, {len(split_lines(text))} lines{self._warned(path, text)}"
        return Result(text=told, says=f"write {path}", files={path: text})

    def _warned(self, path: str, text: str) -> str:
        found = self._checks.note(path, text) if path.startswith(f"{NOTES}/") else []
        if path.startswith(f"{SECTIONS}/"):
            found = self._checks.text(path, text, strict=True)
        return "\nStill to mend:\n" + "\n".join(map(str, found[:_FINDINGS_SHOWN])) if found else ""

    def _with_round_log(self, text: str) -> str:
        """The log of rounds is kept by the run: an agent rewrites the index around it."""
        log = plans.part(self._workspace.read(INDEX) or "", plans.ROUND_LOG)
        bare = plans.without_part(text, plans.ROUND_LOG)
        body = "\n".join(line for _number, line in log).strip()
        return f"{bare.rstrip()}\n\n## {plans.ROUND_LOG}\n\n{body}\n" if body else bare

    def _move(self, given: Move) -> Result:
        path, to = self._writable(given.path), self._writable(given.to)
        text = self._workspace.read(path)
        if text is None:
            return _refused(f"there is no file {path!r}", "list_files shows what is there")
        if self._workspace.read(to) is not None:
            return _refused(f"{to!r} exists", "choose another name")
        return Result(text=f"{path} is now {to}", says=f"move {path} to {to}", files={to: text, path: None})

    def _delete(self, given: Delete) -> Result:
        path = self._writable(given.path)
        if self._workspace.read(path) is None:
            return _refused(f"there is no file {path!r}", "list_files shows what is there")
        return Result(text=f"{path} is deleted", says=f"delete {path}", files={path: None})

    # --- outside

    def _web_search(self, given: WebSearch) -> Result:
        return self._outside.search(given.query)

    def _fetch(self, given: Fetch) -> Result:
        return self._outside.fetch([url.strip() for url in given.urls], given.question)

    # --- the end of a stage

    def _finish(self, given: FinishRound | FinishWriting, stage: Stage) -> Result:
        said = given.model_dump()
        found = self._permission.findings(said)
        if found and stage.finishes < FINISHES_MAX - 1:
            shown = "\n".join(map(str, found[:_FINDINGS_SHOWN]))
            more = f"\nand {len(found) - _FINDINGS_SHOWN} more" if len(found) > _FINDINGS_SHOWN else ""
            return Result(
                text=f"Not finished. Mend these, then call finish again:\n{shown}{more}",
                says=f"sent back: {len(found)} findings",
            )
        status = "flagged" if found else "complete"
        outcome = {**said, "status": status, "findings": [one.as_json() for one in found[:200]]}
        return Result(text="The stage is done.", says=f"finish: {status}", outcome=outcome)


def _repeated(call: ToolCall, result: Result, stage: Stage) -> int:
    """How often the stage has made the same call since it last changed or fetched anything: small models go round in circles
    where nothing tells them."""
    if result.files:
        return 0
    times = 0
    for message in reversed(stage.messages):
        if message.role == "tool" and message.name in _CHANGING and not message.text.startswith("Refused"):
            break
        times += sum(one.name == call.name and one.arguments == call.arguments and one.id != call.id for one in message.calls)
    return times


def _said_again(result: Result, times: int) -> Result:
    said = f"The same call was made {times + 1} times. Do something else."
    if times >= _REPEATS_MAX:
        return replace(
            result, text=said, outcome={"status": "failed", "why": f"the model made the same call {times + 1} times"}
        )
    return replace(result, text=f"{result.text}\n{said}" if times < 2 else said)


def _refused(why: str, hint: str) -> Result:
    return Result(text=f"Refused: {why}." + (f" {hint[:1].upper()}{hint[1:]}." if hint else ""), says=f"refused: {why[:120]}")


def _schema(kind: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON schema without the titles that pydantic adds."""
    schema = kind.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for one in schema.get("properties", {}).values():
        one.pop("title", None)
    return schema
