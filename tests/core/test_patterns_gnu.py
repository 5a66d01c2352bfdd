"""The lines that an expression finds are those that GNU grep finds: hundreds of expressions, put together at random."""

from __future__ import annotations

import os
import random
import re
import subprocess
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.core.patterns.matcher import Matcher, Pattern

TEXT = (
    "a\nab\nabb\nba\n*a\n+a\n(a)\n[a]\na{1}\na|b\nfoo_bar\nfoo bar\nFoo.Bar\n\nx=1\nx = 12\n/usr/lib\n\\path\n^a$\n"
    "TODO(ann): fix\n"
    "def run(self):\n    return 1\n\ttab\nend.\nA-Z\n2026-11-24\nmail@example.org\nthe the end\nhello, world!\nzzz\n"
)
PARTS = (
    "a", "b", "foo", ".", "*", "+", "?", "^", "$", "|", "(a|b)", "(", ")", "[ab]", "[^a]", "[[:alpha:]]", "[[:space:]]",
    "[0-9]", "[]a]", "{1}", "{,2}", "{2,}", "{", "}", r"\.", r"\(", r"\w", r"\W", r"\s", r"\b", r"\\", r"\{", "x", "=", "-",
    " ", "_", "o", "[[.a.]]", "[[=b=]]", "[a-c]", r"\*", "()", "(|a)",
)  # fmt: skip
KNOWN = (
    "b**",
    "*a",
    "+a",
    "?a",
    "^*a",
    "(*a)",
    "b|*a",
    "{1}a",
    "a{",
    "a{1",
    "a{,2}b",
    "()",
    "a||b",
    "(|a)",
    "a**",
    "a+*",
    "x{0}",
)


def gnu(pattern: str, flags: list[str], file: Path) -> list[int] | None:
    """The numbers of the lines that match, None for an expression that it refuses."""
    command = ["grep", "-n", "-E", *flags, "-e", pattern, str(file)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=30, check=False)
    return None if done.returncode > 1 else [int(line.split(b":")[0]) for line in done.stdout.splitlines()]


def expressions() -> list[str]:
    rng = random.Random(19)
    made = ("".join(rng.choice(PARTS) for _ in range(rng.randint(1, 6))) for _ in range(700))
    # A count where an expression begins means nothing to POSIX, and several things to GNU grep.
    return [*KNOWN, *(pattern for pattern in made if not re.search(r"(?:\A|[|(^])[*+?]*\{\d*,?\d*\}", pattern))]


@pytest.mark.promise("real.grep")
def test_expressions_find_what_gnu_grep_finds(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_text(TEXT)
    data = TEXT.encode()
    asked = differs = 0
    told = []
    for pattern in expressions():
        words = (
            [(["-w"], False, True)] if re.fullmatch(r"[\w.]+", pattern) else []
        )  # with repetitions it takes the longest only
        for flags, case, word in (([], False, False), (["-i"], True, False), *words):
            expected = gnu(pattern, flags, file)
            try:
                matcher = Matcher(Pattern(text=pattern, regex=True, ignore_case=case, whole_words=word))
                found: list[int] | None = [line.number for line in matcher.lines(data)]
            except UsageError:
                found = None
            if expected is None or found is None:
                continue  # what one of both refuses is told with its reason
            asked += 1
            if found != expected:
                differs += 1
                told.append((pattern, flags, found, expected))
    assert asked > 900
    assert not told, told[:20]
