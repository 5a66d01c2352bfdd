"""Proves that a question is answered by its gold files alone, and not without any one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from memdir_bench.xafs.questions import Question, followed
from memdir_bench.xafs.wording import BY_NAME, VALUES

_KEPT: Final = 256
"""Texts: the same ones are asked for every fact."""


@lru_cache(maxsize=_KEPT)
def readings(text: str) -> str:
    """A text as the patterns want it: one line, without the marks of Markdown and tables."""
    return " ".join(re.sub(r"[*_`>#|\\]+", " ", text).split())


def stated(texts: Iterable[str], subject: str, relation_name: str) -> str | None:
    """What the texts say that the relation of the subject is; None when they say nothing, or several things."""
    relation = BY_NAME[relation_name]
    value = f"(?P<v>{VALUES[relation.kind]})"
    found = set()
    for pattern in (*relation.statements, f"{{s}} {relation.label} {{v}}"):
        filled = re.escape(pattern.rstrip(".")).replace(r"\{s\}", re.escape(subject)).replace(r"\{v\}", value)
        end = r"(?=[.,;|\s]|$)" if pattern.rstrip(".").endswith("{v}") else ""
        expression = re.compile(filled.replace(r"\ ", r"[\s,;|]+") + end)
        for text in texts:
            found |= {match["v"].strip() for match in expression.finditer(text)}
    return found.pop() if len(found) == 1 else None


def solved(question: Question, texts: Sequence[str]) -> str | None:
    """The answer by the texts, None when they do not give it."""
    plain = [readings(text) for text in texts]
    return followed(question, lambda subject, fact: stated(plain, subject, fact.relation))


def proved(question: Question, gold: Mapping[str, str]) -> bool:
    """Whether the gold files (name -> text) answer it, and no part of them does."""
    if solved(question, list(gold.values())) != question.answer:
        return False
    return all(solved(question, [text for name, text in gold.items() if name != left]) is None for left in gold)
