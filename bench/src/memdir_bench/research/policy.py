"""A model without a model: fixed rules that research the questions of a topic, for tests and for figures that repeat.

It reads nothing but what a real model is sent, and answers with the same calls. Each line `- QUESTION` of the topic is a
question; a round takes the first few open ones, searches, fetches, and keeps the lines that share the most words with each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.llm.port import Message, Reply, ToolCall, ToolSpec, Usage, estimated_tokens
from memdir.research.web.local_index import stems
from memdir.research.workspace import slug

_QUESTION: Final = re.compile(r"^- (.+)$", re.M)
_RESULT: Final = re.compile(r"^\d+\. .*\n   (\S+)", re.M)
_ARCHIVED: Final = re.compile(r"^\S+ is archived as (\S+), text in lines (\d+) to (\d+)", re.M)
_LINE: Final = re.compile(r"^ {0,5}(\d+)\t(.+)$")
_TODO: Final = re.compile(r"^- \[( |x)\] (.+)$", re.M)
LINES_KEPT: Final = 6
_CONTEXT_LINES: Final = 6


@dataclass(frozen=True, slots=True)
class _Turn:
    """The conversation so far, taken apart."""

    prompt: str
    replies: int
    results: list[Message]
    """Of the last answer."""
    calls: list[ToolCall]


class Policy:
    """See `memdir.llm.port.Model`. `questions_per_round` bounds what a round looks at."""

    name = "policy:rules"

    def __init__(self, *, questions_per_round: int = 4) -> None:
        self._per_round = questions_per_round
        self.asked = 0

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """One answer; what it would cost is estimated from its length."""
        del tools, schema  # the rules know the tools by their names
        self.asked += 1
        turn = _taken_apart(messages)
        calls = self._calls(system, turn)
        numbered = tuple(
            ToolCall(id=f"p{turn.replies}-{at}", name=name, arguments=given) for at, (name, given) in enumerate(calls)
        )
        usage = Usage(
            input_tokens=estimated_tokens(system, messages),
            output_tokens=len(json.dumps([one[1] for one in calls])) // 4,
            usd=0.0,
        )
        return Reply(text="", calls=numbered, usage=usage)

    def _calls(self, system: str, turn: _Turn) -> list[tuple[str, dict[str, Any]]]:
        system = " ".join(system.split())
        if "Context Builder" in system:
            return self._build(turn)
        if "First plan the report" in system:
            return _outline(turn)
        if "write one section" in system:
            return _section(turn)
        return [("finish", {"summary": "read"})]

    def _build(self, turn: _Turn) -> list[tuple[str, dict[str, Any]]]:
        todo = _questions(turn.prompt)
        open_now = [question for question, done in todo.items() if not done][: self._per_round]
        if turn.replies == 0:
            return [("web_search", {"query": question}) for question in open_now] or [self._finished(todo)]
        if turn.calls and turn.calls[0].name == "web_search":
            fetches = []
            for question, result in zip(open_now, turn.results, strict=False):
                urls = list(dict.fromkeys(_RESULT.findall(result.text)))[:2]
                if urls:
                    fetches.append(("fetch", {"urls": urls, "question": question}))
            return fetches or [self._finished(todo)]
        if turn.calls and turn.calls[0].name == "fetch":
            return self._noted(turn, todo)
        if turn.calls and turn.calls[-1].name == "finish":
            return self._mended(turn, todo)
        return [self._finished(todo)]

    def _noted(self, turn: _Turn, todo: dict[str, bool]) -> list[tuple[str, dict[str, Any]]]:
        calls: list[tuple[str, dict[str, Any]]] = []
        sources: list[str] = []
        for call, result in zip(turn.calls, turn.results, strict=False):
            question = str((call.arguments or {}).get("question", ""))
            found = _best_lines(question, result.text)
            sources += [path for path, _first, _last in _ARCHIVED.findall(result.text)]
            if found:
                body = "\n".join(f"- {text} [{path}#L{line}]" for path, line, text in found)
                calls.append(("write", {"path": _note(question), "text": f"# {question}\n\n{body}\n"}))
                todo[question] = True
        written = [str(one[1]["path"]) for one in calls]
        text = "\n".join(str(one[1]["text"]) for one in calls)
        unused = [path for path in dict.fromkeys(sources) if path not in text]
        calls.append(("write", {"path": "index.md", "text": _index(turn.prompt, todo, written, unused)}))
        return [*calls, self._finished(todo)]

    def _mended(self, turn: _Turn, todo: dict[str, bool]) -> list[tuple[str, dict[str, Any]]]:
        """The lines that the checks name are taken out of the notes."""
        wrong = re.findall(r"^(knowledge_base/\S+?):(\d+): ", turn.results[-1].text, re.M)
        calls: list[tuple[str, dict[str, Any]]] = []
        for call in turn.calls:
            path = str((call.arguments or {}).get("path", ""))
            bad = {int(line) for at, line in wrong if at == path}
            if call.name == "write" and bad:
                lines = str((call.arguments or {})["text"]).split("\n")
                kept = [line for number, line in enumerate(lines, start=1) if number not in bad]
                calls.append(("write", {"path": path, "text": "\n".join(kept)}))
        return [*calls, self._finished(todo, complete=False)]

    def _finished(self, todo: dict[str, bool], *, complete: bool | None = None) -> tuple[str, dict[str, Any]]:
        done = all(todo.values()) if complete is None else complete
        return "finish", {
            "complete": done,
            "summary": f"{sum(todo.values())} of {len(todo)} questions answered",
            "exhaustive_coverage": "every question of the topic" if done else "questions are open",
            "information_density": "lines of the pages",
            "next_round": [question for question, answered in todo.items() if not answered][:10],
        }


def _taken_apart(messages: Sequence[Message]) -> _Turn:
    last = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "assistant"), None)
    return _Turn(
        prompt=messages[0].text,
        replies=sum(one.role == "assistant" for one in messages),
        results=[] if last is None else [one for one in messages[last + 1 :] if one.role == "tool"],
        calls=[] if last is None else list(messages[last].calls),
    )


def _questions(prompt: str) -> dict[str, bool]:
    """Question to whether it is answered: from the index, else from the topic."""
    index = prompt.partition("index.md:\n")[2].partition("\n\nThe workspace:")[0]
    planned = {question: mark == "x" for mark, question in _TODO.findall(index)}
    if planned:
        return planned
    topic = prompt.partition("\n\nRound ")[0]
    return dict.fromkeys(_QUESTION.findall(topic), False)


def _note(question: str) -> str:
    return f"knowledge_base/answers/{slug(question, 60)}.md"


def _index(prompt: str, todo: dict[str, bool], written: list[str], unused: list[str]) -> str:
    old = prompt.partition("index.md:\n")[2]
    notes = sorted({*re.findall(r"knowledge_base/answers/\S+\.md", old.partition("## TODO")[0]), *written})
    before = re.findall(r"^- (sources/\S+\.md)", old.partition("## Unused Sources")[2], re.M)
    lines = ["# Index", "", "## Target Hierarchy", "", *(f"- {one}" for one in notes), "", "## TODO", ""]
    lines += [f"- [{'x' if done else ' '}] {question}" for question, done in todo.items()]
    lines += ["", "## Unused Sources", "", *(f"- {one}: no line of it answers" for one in dict.fromkeys([*before, *unused]))]
    return "\n".join(lines) + "\n"


def _best_lines(question: str, result: str) -> list[tuple[str, int, str]]:
    wanted = stems(question)
    path, first = "", 0
    before: list[set[str]] = []
    scored: list[tuple[int, str, int, str]] = []
    for row in result.split("\n"):
        archived = _ARCHIVED.match(row)
        if archived:
            path, first = archived[1], int(archived[2])
        line = _LINE.match(row)
        if line and path and int(line[1]) >= first:
            text = _plain(line[2])
            own = stems(text) & wanted
            # A page says what it speaks of once, and then "the default is 5".
            around = set[str]().union(*before[-_CONTEXT_LINES:]) - own
            before.append(own)
            if own and len(own) + len(around) >= min(2, len(wanted)) and len(text.split()) > 2 and "…" not in text:
                scored.append((-3 * _weight(own) - 2 * _weight(around), path, int(line[1]), text))
        else:
            before.clear()
    return [(path, line, text) for _score, path, line, text in sorted(scored)[:LINES_KEPT]]


def _weight(words: set[str]) -> int:
    """Identifiers say more than words."""
    return sum(1 if word.isalpha() else 4 for word in words)


def _plain(markdown: str) -> str:
    """A line without links, headings and other marks that would not be the line's own words."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    return re.sub(r"[\[\]<>|¶*#\\]|^\s*[-+>]\s", " ", text).strip()


def _outline(turn: _Turn) -> list[tuple[str, dict[str, Any]]]:
    notes = re.findall(r"^(knowledge_base/\S+\.md) \(", turn.prompt, re.M)
    sections = "\n".join(
        f"## {path.rpartition('/')[2][:-3].replace('-', ' ')}\nWhat the note says.\nEvidence: {path}\n" for path in notes
    )
    return [("write", {"path": "report_outline.md", "text": f"# Answers\n{sections}"}), ("finish", {"summary": "planned"})]


def _section(turn: _Turn) -> list[tuple[str, dict[str, Any]]]:
    task = turn.prompt.rpartition("Write the section ")[2]
    path = re.search(r"(sections/\S+\.md)", task)
    notes = re.findall(r"knowledge_base/\S+?\.md", task)
    assert path is not None, "the prompt names the file"
    if turn.replies == 0:
        return [("read", {"path": note}) for note in notes]
    if turn.calls[0].name == "read":
        lines = [
            match[2][2:]
            for one in turn.results
            for row in one.text.split("\n")
            if (match := _LINE.match(row)) and match[2].startswith("- ")
        ]
        return [
            ("write", {"path": path[1], "text": "\n\n".join(lines) or "No evidence was found for this section."}),
            ("finish", {"summary": "written"}),
        ]
    return [("finish", {"summary": "as it is"})]
