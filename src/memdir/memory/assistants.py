"""What other assistants (ChatGPT, Claude, Gemini, Copilot) remember of their user, as people copy it out of them. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.markup import blanked

_ASSISTANT: Final = (
    r"(?:chat-?gpt|gpt(?:-?\d\w*)?|openai|claude(?:-ai|-code)?|anthropic|gemini|google-ai|bard|copilot|grok|perplexity|mistral|"
    r"le-chat|deepseek|meta-ai|mem0|letta|ai|llm|assistant)"
)
_KEPT: Final = (
    r"(?:memor(?:y|ies)|erinnerungen|memorias?|recuerdos|souvenirs|mémoires?|saved-info|personali[sz]ation|custom-instructions|"
    r"instructions|context|profile|about-me)"
)
_NAME: Final = re.compile(
    rf"(?:(?:my|old|all|exported?|saved)-)*(?:{_ASSISTANT}-(?:(?:my|saved|user|exported)-)*{_KEPT}|"
    rf"(?:saved|exported)-memories|saved-info|model-set-context|custom-instructions|"
    rf"(?:memor(?:y|ies)|{_ASSISTANT})-(?:export(?:ed)?|import(?:ed)?|dump)|"
    rf"what-{_ASSISTANT}-knows(?:-about-me)?|{_KEPT}-(?:from|of|in)-{_ASSISTANT})"
    r"(?:-(?:export|backup|list|dump|import|old|v?\d+|[a-z]{2}))*"
)
"""`chatgpt-memories`, `claude-memory-export`, `gemini-saved-info`, `memories-from-claude`."""
_CLAUDE_CODE: Final = re.compile(
    r"---\r?\n(?=(?:[^\n]{1,2000}\n){0,12}?name:)(?=(?:[^\n]{1,2000}\n){0,12}?description:)"
    r"(?:[^\n]{1,2000}\n){1,12}?[ \t]*type:[ \t]*(?P<type>user|feedback|project|reference)[ \t]*\r?\n"
)
_LINE_MIN_WORDS: Final = 3
_FENCE: Final = re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE)
_DAY: Final = re.compile(
    r"^(?P<mark>[ \t]*(?:[-*+•]|\d{1,4}[.)])[ \t]+)?"
    r"\[(?:(?P<day>\d{4}-\d\d-\d\d)[^\]\n]{0,20}|(?:date )?unknown|undated|no date|n/a)\][.:]?[ \t]+(?:[-–—:][ \t]+)?(?=\S)",
    re.MULTILINE | re.IGNORECASE,
)
"""`1. [2026-06-11]. `, `[2026-06-11] - `, before a memory."""


def is_of_assistant(name: str) -> bool:
    """Whether a file, by its name in lower case with `-` between words, holds what an assistant remembers of its user."""
    return _NAME.fullmatch(re.sub(r"[()\[\]]", "", name)) is not None


def claude_code_type(text: str) -> str | None:
    """Of a file in which Claude Code keeps one memory, what its head says the memory is about: `user`, `feedback`, `project` or
    `reference`; None of other texts."""
    head = _CLAUDE_CODE.match(text)
    return None if head is None else head["type"]


def as_list(text: str) -> str:
    """The same number of characters as a list, its days in front of the items as journals have them; without the fence that
    may stand around all of it."""
    fences = list(_FENCE.finditer(text))
    if len(fences) == 2 and not text[: fences[0].start()].strip() and not text[fences[1].end() :].strip():
        text = _FENCE.sub(blanked, text)
    return _DAY.sub(_dated, text)


def is_memory(said: str) -> bool:
    """Whether a sentence in such a text is one, and does not head or introduce others."""
    return not said.endswith(":") and (said.endswith(".") or len(said.split()) >= _LINE_MIN_WORDS)


def _dated(found: re.Match[str]) -> str:
    width = len(found[0])
    day = f"- {found['day']}: " if found["day"] else "- "
    return (day if len(day) <= width else day.removeprefix("- ")).ljust(width)
