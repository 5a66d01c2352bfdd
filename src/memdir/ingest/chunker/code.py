"""Source code: a block for each definition, found by its first line and its indentation, without a parser.

Comments, decorators and attributes directly above go with the definition. The heading path is what encloses it.
"""

from __future__ import annotations

import re
from typing import Final

from memdir.ingest.chunker.blocks import Block, Line, Outline, lines_of

SUFFIXES: Final = frozenset(
    {
        *("py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "vue", "svelte", "go", "rs", "java", "kt", "kts", "swift"),
        *("scala", "groovy", "gradle", "c", "h", "cc", "cpp", "cxx", "hpp", "hh", "m", "mm", "cs", "php", "rb", "lua"),
        *("pl", "pm", "sh", "bash", "zsh", "fish", "ps1", "sql", "r", "jl", "ex", "exs", "erl", "hs", "ml", "clj", "dart"),
        *("proto", "tf", "zig", "nim", "vim", "el", "css", "scss", "less"),
    }
)
_MODIFIERS: Final = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|unsafe|pub(?:\([^)]*\))?|const|extern|"
    r"virtual|override|open|sealed|partial|inline|suspend|data|readonly|local|declare)\s+)*"
)
_DEFINITION: Final = re.compile(
    rf"\s*{_MODIFIERS}(?:def|class|fn|func|function\*?|fun|interface|enum|struct|trait|impl|module|namespace|record|object|protocol|"
    r"extension|type|message|service|defmodule|defp?|sub|union|mod)\s+(?:\([^)]*\)\s*)?(?P<name>[A-Za-z_$][\w$.:<>!?]*)"
)
_ASSIGNED: Final = re.compile(
    r"\s*(?:export\s+)?(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function\b|[A-Za-z_$][\w$]*\s*=>)"
)
_BRACED: Final = re.compile(
    r"\s*(?:[\w:<>,*&\[\]~?@.]+\s+)*?[*&]*(?P<name>[A-Za-z_$~][\w$:]*)\s*\([^;]*\)[^;=]*\{\s*(?://.*)?$"
)
_SHELL: Final = re.compile(r"(?P<name>[A-Za-z_][\w-]*)\s*\(\)\s*\{?")
_SQL: Final = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+)?(?:table|view|function|procedure|trigger|index|type)\s+"
    r"(?:if\s+not\s+exists\s+)?(?P<name>[\w.\"`]+)",
    re.IGNORECASE,
)
_CONTROL: Final = frozenset(
    {
        "if",
        "for",
        "while",
        "switch",
        "catch",
        "else",
        "do",
        "return",
        "try",
        "with",
        "match",
        "when",
        "until",
        "foreach",
        "elif",
    }
)
_ABOVE: Final = ("#", "//", "/*", "*", "*/", "@", "--", ";;", "#[", "///", '"""')


def looks_like(text: str) -> bool:
    """Several definitions with the punctuation of code around them; prose with the word "class" is not code."""
    lines = [line for line in lines_of(text[:8000]) if not line.blank]
    definitions = [line for line in lines if _name(line.text) is not None]
    marks = sum(1 for line in lines if line.text.rstrip().endswith(("{", "}", ";", ":", ")", ",")))
    return len(definitions) >= 2 and marks * 2 > len(lines) and any("(" in line.text for line in definitions)


def _name(line: str) -> str | None:
    for pattern in (_DEFINITION, _ASSIGNED, _SQL, _SHELL, _BRACED):
        found = pattern.match(line[:200])
        if found is not None and found["name"] not in _CONTROL:
            return found["name"].rstrip(":")
    return None


def outline(text: str) -> Outline:
    """What stands before the first definition (imports, licence) is a block of its own, by paragraphs."""
    lines = list(lines_of(text))
    blocks: list[Block] = []
    stack: list[tuple[int, str]] = []
    opened = 0
    heading: tuple[str, ...] = ()
    for index, line in enumerate(lines):
        if line.blank:
            continue
        name = _name(line.text)
        paragraph = name is None and not stack and index > 0 and lines[index - 1].blank
        if name is None and not paragraph:
            continue
        start = _with_comments(lines, index) if name is not None else line.start
        if start > opened:
            blocks.append(Block(start=opened, end=start, heading=heading))
            opened = start
        if name is not None:
            while stack and stack[-1][0] >= line.indent:
                stack.pop()
            stack.append((line.indent, name))
            heading = tuple(part for _, part in stack[-4:])
    if opened < len(text):
        blocks.append(Block(start=opened, end=len(text), heading=heading))
    return Outline(title="", blocks=blocks)


def _with_comments(lines: list[Line], index: int) -> int:
    """Where the comments and decorators directly above line `index` begin; at most 40 lines up."""
    first = index
    while first > 0 and index - first < 40:
        above = lines[first - 1]
        if above.blank or not above.text.lstrip().startswith(_ABOVE) or above.indent < lines[index].indent:
            break
        first -= 1
    return lines[first].start
