"""`memdir grep` inside the shell: a search of the memory by meaning, and what of its options agents use."""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import Any, Final

from memdir.core.errors import MemdirError, UsageError
from memdir.core.limits import EXACT_LIMIT_MAX, QUERY_MAX_CHARS, SEARCH_LIMIT_MAX
from memdir.shell.commands.call import Call
from memdir.shell.commands.options import parsed

_LIMIT: Final = 10
_CONTEXT_MAX: Final = 100
_NEAREST: Final = 5
_USAGE: Final = (
    "usage: memdir grep [-k N] [-C N] [-F | -E] [-i] [-w] [-l] [-c] [--budget TOKENS] [--containing TEXT] QUERY [PATH...]"
)
_LONG: Final = {
    "literal": "F", "regex": "E", "ignore-case": "i", "word-regexp": "w", "files-with-matches": "l", "count": "c",
    "context=": "C", "budget=": "budget", "containing=": "containing", "help": "help", "regexp=": "e",
}  # fmt: skip

Ask = Callable[[dict[str, Any]], dict[str, Any]]


def memory_command(name: str, ask: Ask) -> Callable[[Call], None]:
    """The command `memdir` of a shell over the container `name`."""

    def memdir(call: Call) -> None:
        if call.args[:1] != ["grep"]:
            raise UsageError(f"in this shell there is `memdir grep`; {_USAGE}")
        call.name = "memdir grep"
        try:
            _grep(call, name, ask)
        except MemdirError as error:
            call.fail(error.message, 2)

    return memdir


def _grep(call: Call, name: str, ask: Ask) -> None:
    found, operands = parsed(call.args[1:], "FEiwlcnrHh", "kCe", _LONG)
    options = dict(found)
    if "help" in options:
        call.say(_USAGE)
        return
    if "e" in options:
        operands.insert(0, options["e"])
    if not operands or not operands[0].strip():
        raise UsageError(f"the query is empty; {_USAGE}")
    query, paths = operands[0], operands[1:]
    if len(query) > QUERY_MAX_CHARS:
        raise UsageError(f"the query has {len(query)} characters, at most {QUERY_MAX_CHARS} are allowed")
    exact = bool({"F", "E"} & options.keys())
    root = f"/{name}"
    places = [call.space.resolved(path) for path in paths] or [root]
    outside = [path for path, place in zip(paths, places, strict=False) if place != root and not place.startswith(root + "/")]
    if outside:
        raise UsageError(f"{outside[0]} is not in the memory; it is at {root}")
    limit = _number(options.get("k"), 1, EXACT_LIMIT_MAX if exact else SEARCH_LIMIT_MAX, "-k") or _LIMIT
    around = _number(options.get("C"), 0, _CONTEXT_MAX, "-C")
    question: dict[str, Any] = {
        "q": query, "paths": [place[len(root) :] or "/" for place in places], "limit": limit if "k" in options or not exact else
        SEARCH_LIMIT_MAX, "mode": "literal" if "F" in options else "regex" if "E" in options else "semantic",
    }  # fmt: skip
    if exact:
        flags = {"i": "ignore_case", "w": "whole_words", "l": "files_only", "c": "count"}
        question |= {word: True for letter, word in flags.items() if letter in options}
        question |= {} if around is None else {"before": around, "after": around}
    else:
        question |= {"nearest": _NEAREST} | ({} if around is None else {"context": around})
        question |= {"containing": texts} if (texts := [text for name, text in found if name == "containing"]) else {}
        if "budget" in options:
            question["budget_tokens"] = _number(options["budget"], 1, 1_000_000, "--budget")
    _print(call, root, ask(question), options, lines=around is not None)


def _print(call: Call, root: str, answer: dict[str, Any], options: dict[str, str], *, lines: bool) -> None:
    def typed(path: object) -> str:
        return posixpath.relpath(f"{root}{path}", call.space.cwd)

    hits = answer.get("hits") or []
    shown = [(typed(hit["path"]), hit) for hit in hits]
    counts = answer.get("counts") or []
    if "c" in options:
        for path, count in counts:
            call.say(f"{typed(path)}:{count}")
    elif "l" in options:
        for path in dict.fromkeys(path for path, _ in shown):
            call.say(path)
    else:
        for path, hit in shown:
            _hit(call, path, hit, lines=lines)
    for path in answer.get("unresolved") or ():
        call.fail(f"{typed(path)}: no such file or folder", 2)
    if answer.get("note"):
        call.err.append(f"memdir grep: {answer['note']}\n")
    if not hits and not any(count for _, count in counts):
        call.status = max(call.status, 1)


def _hit(call: Call, path: str, hit: dict[str, Any], *, lines: bool) -> None:
    first, last, text = hit["start_line"], hit["end_line"], str(hit["text"])
    mark = "[memory] " if hit["kind"] == "memory" else ""
    if not lines:
        place = str(first) if last <= first else f"{first}-{last}"
        call.say(f"{path}:{place}:{mark}{' '.join(text.split())}")
        return
    matched = hit.get("matched") or [[first, last]]
    for number, line in enumerate(text.split("\n")[: last - first + 1], start=first):
        between = ":" if any(low <= number <= high for low, high in matched) else "-"
        call.say(f"{path}{between}{number}{between}{mark}{line}")


def _number(text: str | None, low: int, high: int, option: str) -> int | None:
    if text is None:
        return None
    if not text.isdigit() or not low <= int(text) <= high:
        raise UsageError(f"{option}: {text} is not a whole number from {low} to {high}")
    return int(text)
