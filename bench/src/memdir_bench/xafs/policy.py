"""A scripted agent: it looks for what it needs, reads what is printed, follows names, and stops by evidence.

It understands every statement that it sees, as the models that people use do, and knows which facts a question goes through;
what it does not know is where they stand. So what it costs is what the tools print. The same policy in every condition: by
meaning where that is there, then in the files that were found, then by the name that is asked for in all files, page by page,
then what a shell can make of office files.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final, Protocol

from memdir_bench.xafs.questions import Question, followed
from memdir_bench.xafs.solver import readings, stated
from memdir_bench.xafs.world import Fact

CHARS_PER_TOKEN: Final = 4
DRAFTS: Final = "drafts/"
"""An agent sees in a path that something is a draft, and goes on."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command, what it printed, and the same by file: path -> text."""

    command: str
    printed: str
    by_file: dict[str, str]


class Commands(Protocol):
    """A condition: what an agent can do to find `subject`, in the order in which it tries it."""

    def search(self, question: str, subject: str, number: int) -> Step | None:
        """The `number`-th command for it; None when there is nothing left to try."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one question may cost at most."""

    calls: int = 40
    tokens: int = 400_000
    seconds: float = 600.0
    """Of a model or a host program."""


@dataclass(slots=True)
class Account:
    """What a run has cost. An agent sends all that was said so far with every call; what it sent before is `cached`."""

    context: int
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    calls: int = 0
    transcript: list[Step] = field(default_factory=list)

    def call(self, step: Step) -> None:
        self.tokens_in += self.context
        self.tokens_cached += self.context if self.calls else 0
        self.tokens_out += _tokens(step.command)
        self.calls += 1
        self.context += _tokens(step.command) + _tokens(step.printed)
        self.transcript.append(step)

    def answered(self, answer: str) -> None:
        """The last message, which is sent too."""
        self.tokens_in += self.context
        self.tokens_cached += self.context if self.calls else 0
        self.tokens_out += _tokens(answer)

    @property
    def tokens(self) -> int:
        """In and out, as the seed counts them."""
        return self.tokens_in + self.tokens_out


def answer(question: Question, commands: Commands, *, instructions: str, budget: Budget, seed: str) -> tuple[str, Account]:
    """The answer ("" when none was found within the budget) and what it cost."""
    rng = random.Random(seed)  # noqa: S311
    account = Account(context=_tokens(instructions) + _tokens(question.prompt))
    given = followed(question, lambda subject, fact: _found(subject, fact, commands, account, budget, rng)) or ""
    account.answered(given)
    return given, account


def _found(subject: str, fact: Fact, commands: Commands, account: Account, budget: Budget, rng: random.Random) -> str | None:
    """What `fact.relation` of `subject` is, by what the commands print."""
    asked = rng.choice(fact.about.questions).format(s=subject)
    number = 0
    while account.calls < budget.calls and account.tokens < budget.tokens:
        step = commands.search(asked, subject, number)
        if step is None:
            return None
        account.call(step)
        number += 1
        texts = [readings(text) for path, text in step.by_file.items() if DRAFTS not in path]
        value = stated(texts, subject, fact.relation)
        if value is not None:
            return value
    return None


def _tokens(text: str) -> int:
    return len(text) // CHARS_PER_TOKEN + 1
