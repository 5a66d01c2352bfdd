"""What is still to be done, and that it is done: "Renew the domain before Dec 12" is over with "Domain renewed", "Wants to
plant a quince tree" with "Planted the quince tree". The verb must be the same, and so what it is done to. English, Spanish and
French. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memdir.memory.change_words import root

_LABEL: Final = r"(?:[^:–]{1,40}(?: –|:) )?"
_WISH: Final = re.compile(
    rf"{_LABEL}(?:(?:I|We|The user|User|[A-ZÀ-Þ]\w+)(?:['’](?:m|re))? )?(?:still |am |are |is )*"
    r"(?:(?:needs?|wants?|plans?|intends?|hopes?|(?:would|['’]d) like|meant|planning|hoping|going|trying|decided) to |"
    r"(?P<must>(?:ha(?:ve|s)|remember|supposed) to |must |should )|to ?do:? )(?P<verb>[a-z]+) "
    r"(?!(?:more|less|better)\b)(?P<what>[^;!?]{2,80})",
    re.IGNORECASE,
)
_LOOKS_FOR: Final = re.compile(
    rf"{_LABEL}(?:(?:I['’]m|We['’]re|I am|We are|The user is|User is) )?(?:still )?(?:looking|searching) for "
    r"(?P<what>[^;!?]{2,80})",
    re.IGNORECASE,
)
_ORDER: Final = re.compile(rf"{_LABEL}(?P<verb>[A-Za-z][a-z]+) (?P<what>[^;!?]{{2,80}})")
_PASTS: Final = """
    send sent, buy bought, write wrote written, pay paid, find found, make made, take took taken, get got, sell sold, tell told,
    do did done, build built, bring brought, give gave given, meet met, read read, put put, set set, hold held, speak spoke,
    choose chose chosen, hang hung, cut cut, feed fed, run ran, fix fixed, sew sewed, see saw seen, draw drew drawn,
    rewrite rewrote rewritten, catch caught, teach taught, lend lent, light lit, sweep swept
"""
_BASE: Final = {past: one.split()[0] for one in _PASTS.split(",") for past in one.split()[1:]}
"""Of a verb's past."""
_FOUND: Final = frozenset(map(root, ("find", "get", "buy", "rent", "hire", "adopt")))
"""What ends looking for something."""
_PAST: Final = rf"(?P<verb>[a-z]+ed|{'|'.join(_BASE)})"
_DID: Final = re.compile(
    r"(?:^|[,;–] |\. |\band )(?:(?:I|We|The user|User)(?:['’]ve| have| has)? )?(?:(?:finally|just|already|also|then) )*"
    rf"{_PAST} (?:up |off |out |back )?(?!(?:that|how|why|what|whether)\b)(?P<what>(?:[^.;,!?]|\.(?=\w)){{2,60}})",
    re.IGNORECASE,
)
_IS_DONE: Final = re.compile(
    r"(?:^|[,;–] |\. |\band )(?P<what>(?:[^.;,!?:]|\.(?=\w)){2,60}?)(?P<passive> (?:is|are|was|were|got|has been|have been))?"
    rf"(?: (?:now|finally|all))* {_PAST}"
    r"(?=\s*[.!,;]|\s*$| (?:today|yesterday|now|at last|finally|last|this|on \w+day)\b)",
    re.IGNORECASE,
)
_DID_ROMANCE: Final = re.compile(
    r"(?:^|[,;–] |\. |\b[ye]t? )(?:(?:hoy|ayer|ya|por fin|aujourd[’']hui|hier|enfin),? )*"
    r"(?:(?:he|hemos) |j[’']ai |on a |nous avons )?(?:enfin )?"
    r"(?P<stem>[^\W\d_]{2,}?)(?P<end>ado|ido|é|amos|í|imos) (?P<what>(?:(?:al?|à|el|la|los|las|mis?|una?|le|les|mes|mon|ma|"
    r"notre|nuestr[oa]s?|un|une|du|au) |l[’'])(?:[^.;,!?]){2,60})",
    re.IGNORECASE,
)
"""Spanish and French: a participle, or a past tense, before what something is done to."""
_INFINITIVES: Final = {
    "ado": ("ar",), "amos": ("ar",), "ido": ("er", "ir"), "í": ("er", "ir"), "imos": ("er", "ir"), "é": ("ar", "er"),
}  # fmt: skip
_SPELLINGS: Final = (("gu", "g"), ("qu", "c"))
"""How a stem is spelt before "é", and in the infinitive: "pagué", "pagar"."""
_OF_PEOPLE: Final = frozenset({"called", "wrote", "replied", "answered", "texted", "phoned", "mailed", "asked", "visited"})
"""With "The bank called" nobody called the bank."""
_NOT_YET: Final = re.compile(
    r"\b(?:not|never|will|shall|should|must|to be|needs?|going|would|could|tomorrow|if|when|until|almost|nearly|half|partly|"
    r"tried|planned|wanted|forgot|failed|nobody|no one)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    r" (?:before|by|until|till|in|at|on|for|to|about|with|from|because|so|when|after|next|this)\b.*| \(.*|\.$"
)


@dataclass(frozen=True, slots=True)
class Task:
    """The root of the verb (none of who looks for something), and what it is done to. `is_order`: nothing but its form says
    that it is a task, and no rule ("Call Karl", "Run the linter", "Must pay rent")."""

    verb: str
    what: str
    is_order: bool = False


def task_of(statement: str) -> Task | None:
    """What somebody has to do, or wants to."""
    found = _LOOKS_FOR.match(statement)
    if found is not None:
        return Task("", found["what"])
    found = _WISH.match(statement)
    if found is not None:
        return Task(root(found["verb"].casefold()), found["what"], is_order=found["must"] is not None)
    found = _ORDER.match(statement)
    return None if found is None else Task(root(found["verb"].casefold()), found["what"], is_order=True)


def done_in(statement: str) -> Iterator[tuple[frozenset[str], str]]:
    """What a statement says is done: roots that the verb may have, and what it was done to."""
    if _NOT_YET.search(statement):
        return
    for pattern in (_DID, _IS_DONE):
        for found in pattern.finditer(statement):
            verb = found["verb"].casefold()
            if verb in _OF_PEOPLE and not found.groupdict().get("passive", " "):
                continue
            base = _BASE.get(verb)
            verbs = {base} if base else {verb, verb.removesuffix("d"), verb.removesuffix("ed")}
            yield frozenset(map(root, verbs)), found["what"]
    for found in _DID_ROMANCE.finditer(statement):
        stem, end = found["stem"].casefold(), found["end"].casefold()
        stems = {
            stem,
            *(stem.removesuffix(said) + written for said, written in _SPELLINGS if end == "é" and stem.endswith(said)),
        }
        yield frozenset(root(one + infinitive) for one in stems for infinitive in _INFINITIVES[end]), found["what"]


def is_done(task: Task, verbs: frozenset[str]) -> bool:
    """Whether it is what was to be done, by the roots of `done_in`."""
    return task.verb in verbs if task.verb else not verbs.isdisjoint(_FOUND)


def object_of(what: str) -> str:
    """What something is done to, without when, where and for whom."""
    return _BEFORE.sub("", what)


def is_order(statement: str) -> bool:
    """Whether a task may be a rule as well: "Run the linter before a commit"."""
    task = task_of(statement)
    return task is not None and task.is_order
