"""The scripts that both shells run: written by hand, every flag of every command, agents' sessions, and random ones."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_ALTERNATIVES: Final = re.compile(r"@\{([^{}]*)\}")
_RULE: Final = re.compile(r"«(\w+)»")
_STATEMENTS_DEEP: Final = 6


@dataclass(frozen=True, slots=True)
class Script:
    """`kind`: `language`, `commands`, `flags`, `sessions` or `random`."""

    kind: str
    text: str


def all_scripts(*, seed: int, random_count: int) -> list[Script]:
    """Every script, in a fixed order."""
    found = [Script(kind, text) for kind in ("language", "commands") for text in _separated(kind)]
    found += [Script("flags", text) for line in _text("flags").splitlines() if line for text in _filled(line)]
    found += [Script("sessions", text) for template in _separated("sessions") for text in _expanded(template)]
    return found + [Script("random", text) for text in random_scripts(seed, random_count)]


def _text(name: str) -> str:
    return (files("memdir_bench.shell") / "scripts" / f"{name}.txt").read_text(encoding="utf-8")


def _separated(name: str) -> list[str]:
    return [text.strip("\n") + "\n" for text in _text(name).split("\n%%\n")]


def _filled(line: str) -> list[str]:
    """`cmd %s file :: -a :: -b` is `cmd -a file` and `cmd -b file`."""
    template, *fillings = line.split(" :: ")
    return [template.replace("%s", filling, 1) for filling in fillings]


def _expanded(template: str) -> list[str]:
    """Every combination of the alternatives in `@{one|two}`; equal alternatives are chosen together."""
    groups = list(dict.fromkeys(_ALTERNATIVES.findall(template)))
    found = []
    for picks in itertools.product(*(group.split("|") for group in groups)):
        chosen = dict(zip(groups, picks, strict=True))
        found.append(_ALTERNATIVES.sub(lambda match, chosen=chosen: chosen[match[1]], template))  # type: ignore[misc]
    return found


def random_scripts(seed: int, count: int) -> list[str]:
    """Scripts from `grammar.txt`; the same for the same seed."""
    rules = _rules()
    return [_grown(rules, "script", random.Random(f"{seed}:{number}"), 0) for number in range(count)]  # noqa: S311


def _rules() -> dict[str, list[str]]:
    """Rule -> its alternatives, a line each; those of `script` are several lines that begin with an assignment."""
    rules: dict[str, list[str]] = {}
    for block in re.split(r"^\[(?=\w+\]$)", _text("grammar"), flags=re.MULTILINE)[1:]:
        name, _, body = block.partition("]\n")
        lines = body.removesuffix("\n").split("\n")
        if name == "script":
            lines = [text.rstrip("\n") + "\n" for text in re.split(r"^(?=a=)", body, flags=re.MULTILINE) if text]
        rules[name] = [line.replace("⏎", "\n") for line in lines]
    return rules


def _grown(rules: dict[str, list[str]], name: str, rng: random.Random, depth: int) -> str:
    """One text of a rule: its `«rules»` are grown too, `«k»` is a variable of its own."""
    if name == "statement" and depth > _STATEMENTS_DEEP:
        name = "simple"
    text = rng.choice(rules[name]).replace("«k»", f"k{depth}")
    return _RULE.sub(lambda match: _grown(rules, match[1], rng, depth + 1), text)
