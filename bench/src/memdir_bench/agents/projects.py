"""Eight projects: what is remembered of each, and what people type while they work on it.

One file a project in `projects/`. `half: tuned` or `half: held` (nothing was ever fitted on those), then lines
`ID [TAGS] MEMORY`, `? KIND ID: PROMPT` for a prompt that needs a memory, `! KIND: PROMPT` for one that needs none. A `\\n` in a
prompt is a line's end. Prompts are worded otherwise than the memories; both were written by hand for this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

_MEMORY: Final = re.compile(r"(m\d+) \[([^\]]+)\] (.+)")
_PROMPT: Final = re.compile(r"[?!] (\w+)(?: (m\d+))?: (.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """`needs`: the memory; None for a prompt that needs none."""

    kind: str
    needs: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """`memories`: tags and content by id."""

    name: str
    held: bool
    memories: dict[str, tuple[list[str], str]]
    prompts: list[Prompt]


def projects() -> Iterator[Project]:
    """By name."""
    for file in sorted(files("memdir_bench.agents").joinpath("projects").iterdir(), key=lambda one: one.name):
        half, *lines = file.read_text(encoding="utf-8").splitlines()
        memories, prompts = {}, []
        for line in lines:
            if found := _MEMORY.fullmatch(line):
                memories[found[1]] = found[2].split(", "), found[3]
            elif found := _PROMPT.fullmatch(line):
                prompts.append(Prompt(kind=found[1], needs=found[2], text=found[3].replace("\\n", "\n")))
            else:
                raise ValueError(f"{file.name}: {line!r} is neither a memory nor a prompt")
        yield Project(name=file.name.removesuffix(".txt"), held=half == "half: held", memories=memories, prompts=prompts)
