"""Programs, services and the like of which somebody has one of a kind: who switched to Helix has another editor than Vim now.
It takes to know that both are editors, so the common ones are listed (`store.text.tools`). Pure; English, with the words for a
change in German, Spanish and French.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memdir.memory.change_words import root
from memdir.memory.dates import MONTH, WEEKDAY
from memdir.store.text.stopwords import STOP_WORDS
from memdir.store.text.tools import KINDS
from memdir.store.text.words import words

_KNOWN: Final = 32_768


def _roots(text: str) -> frozenset[str]:
    return frozenset(map(root, words(text)))


def _by_name() -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for kind in KINDS:
        for name in kind.names:
            kinds.setdefault(name, []).append(kind.name)
    return kinds


_KINDS: Final = _by_name()
_SAID_OF: Final = {kind.name: _roots(f"{kind.name} {kind.words}") for kind in KINDS}
"""Roots of words that only say of which kind it is."""
_WORD: Final = re.compile(r"\w+")
_FIRST_WORDS: Final = frozenset(_WORD.findall(one)[0].casefold() for one in _KINDS)


def _any_of(names: list[str]) -> str:
    return "|".join(re.escape(one) for one in sorted(names, key=lambda one: (-len(one), one)))


_NAME: Final = re.compile(
    rf"(?<![\w.@/-])(?:(?i:(?P<any>{_any_of([one for one in _KINDS if one[0] != '='])}))|"
    rf"(?P<exact>{_any_of([one[1:] for one in _KINDS if one[0] == '='])}))(?![\w@/]|[.-]\w)"
)
_WITHIN: Final = re.compile(r"[\w,'’)] $|[(/-]$")
"""What stands before a word that begins no sentence."""
_CHANGED_TO: Final = re.compile(
    r"\b(?:(?:switch(?:ed|ing)?|mov(?:ed|ing)|migrat(?:ed|ing)|chang(?:ed|ing)|port(?:ed|ing)|convert(?:ed|ing)|went|gone|going|"
    r"transferr?ed|jumped|back|imported|exported|gewechselt|umgestiegen|umgezogen|umgestellt|migriert|wechselten|wechselte|"
    r"cambi[éóe]\w*|pas[éóa]\w*|migr[éóa]\w*|mud[éóa]\w*|pass[ée]e?s?|migré\w*|basculé\w*|changé)\b[^.;!?]{0,60}"
    r"\b(?:to|onto|auf|zu|nach|a|à|sur|vers)|(?:back|moved|wieder) (?:on|auf)|"
    r"(?:rewr(?:ote|itten)|ported)\b[^.;!?]{0,60}\b(?:in|to)|"
    r"(?:swapped|exchanged|replaced|dropped|ditched|traded|ersetzt|reemplazado|remplacé)\b[^.;!?]{0,60}"
    r"\b(?:for|with|by|durch|por|par)|"
    r"(?:settled|agreed|decided|standardi[sz]ed) (?:up)?on|(?:staying|sticking|going|went) with)"
    r"(?: \w+ing)?(?: (?:an?|the|my|our|das|die|den|el|la|le))? $",
    re.IGNORECASE,
)
"""What stands before the new one."""
_MEANWHILE: Final = (
    r"(?:now|these days|nowadays|from now on|from (?:today|tomorrow|next \w+|\w+day)(?: on)?|instead|for good|going forward|"
    r"as of \w+|since (?!I\b|we\b)|jetzt|inzwischen|ab sofort|seit|mittlerweile|ahora|desde|maintenant|désormais|depuis)"
)
_SINCE: Final = re.compile(rf"^[^.;,!?]{{0,40}}?\b{_MEANWHILE}", re.IGNORECASE)
_NOW: Final = re.compile(rf"(?:\b{_MEANWHILE}\b[^.;,!?]{{0,40}}|\b(?:I|we)['’]ve been using )$", re.IGNORECASE)
_TAKES_OVER: Final = re.compile(r"^ (?:is in\b(?=\s*[.,;!]|\s*$)|(?:has |have )?replaced\b)")
_NOT_NOW: Final = re.compile(
    r"\b(?:tried|try|trying|test(?:ed|ing)|evaluat\w+|think\w*|consider\w*|maybe|might|could|should|would|wants?|wanted|demo|"
    r"also|both|besides|alongside|in addition|too|not|never|n['’]t|today only|for (?:the|an?|one|two) (?:\w+ )?(?:demo|day|"
    r"night|week|weekend|workshop|talk|trip)|tonight|reading about|learn(?:ing|ed)?|post about|talk about|course|"
    r"next (?:year|month)|vielleicht|auch|nicht|kein\w*|tal vez|también|aussi|peut-être)\b",
    re.IGNORECASE,
)
"""Of a change that is none: tried, thought of, for one time, beside the other."""
_MOMENT: Final = re.compile(
    r"\b(?:I(?:['’]m| am)|[Ww]e(?:['’]re| are)) (?:drinking|having|listening|watching|calling|looking|sitting|waiting|talking|"
    r"opening|checking|installing|downloading)\b|\bI(?:['’]m| am) on (?:a |the )?(?i:zoom|skype|webex|jitsi|teams|google meet|"
    r"facetime)\b"
)
"""What somebody does at this moment."""
_NOT_HAD: Final = re.compile(
    r"\b(?:not|never|don['’]?t|doesn['’]?t|no|hates?|dislikes?|wants?|wish|learn(?:s|ing)?|studying|interview\w*|talks?|course|"
    r"book|consider\w*|plan\w*|thinking|allergic|(?:works?|worked|working|job|engineer|intern\w*) (?:at|for)|nicht|kein\w*|"
    r"nunca|pas|jamais)\b",
    re.IGNORECASE,
)
"""Of a fact that does not say that somebody has it."""
_REASON: Final = re.compile(
    r"\b(?:after|because|since|when|so|as|and|but|while|thanks|due to|on (?:[\w'’]+ ){0,4}(?:orders?|advice|recommendation)|"
    r"weil|nach|seit|porque|parce|car)\b.*",
    re.DOTALL,
)
_LAST_CLAUSE: Final = re.compile(r"[.;!?]|, (?:and |but |so )?(?=I\b|we\b|it\b|the\b|my\b|our\b)")
_TIME: Final = re.compile(rf"\b(?:{WEEKDAY}|{MONTH})\b", re.IGNORECASE)
_STOPS: Final = frozenset("m re ve ll s d t".split()).union(  # noqa: SIM905
    *(STOP_WORDS[language] for language in ("english", "german", "spanish", "french"))
)
_OF_ANYTHING: Final = _roots("""
    use used using uses run running live lives work write written build built keep kept go went do done make made take have
    had host hosted handle manage put get got give move moved switch switched migrate migrated change changed port ported
    convert rewrite rewrote rewritten replace replaced drop dropped transfer swap swapped settle agree decide stay stick import
    export ditch jump standardise standardize listen browse code drink deploy message chat call track read log speak note
    store bundle version everything everybody everyone all whole company team us people finally completely fully
    officially just really month week year weekend morning evening today yesterday last next new good now since instead day user
    main default favourite favorite preferred personal go-to setup stack back another
    benutzen nutzen laufen umgestiegen gewechselt jetzt alles uso usar usamos ahora todo pasé cambié utilise utilisons
    maintenant passé passés passée tout
""")
"""What may be said of a tool of any kind."""
_OTHERS: Final = _roots("""
    wife husband partner girlfriend boyfriend fiancé fiancée son daughter mother father mum mom dad parents brother sister
    grandmother grandfather grandma grandpa aunt uncle cousin niece nephew boss manager flatmate roommate client customer
    colleague friend neighbour neighbor supplier competitor school frau mann sohn tochter mutter vater bruder schwester chef
    kunde kundin freund freundin esposa marido hijo hija madre padre hermano hermana jefe jefa cliente amigo amiga femme mari
    fils fille mère père frère sœur client ami amie
""")
"""Who uses what somebody else does not."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One of a kind, by its name in lower case; `start` and `end` in the text. What may be of two kinds is two."""

    kind: str
    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Switch:
    """The one of its kind that somebody has now, in the place of another. `about`: roots of what else is said of it."""

    kind: str
    name: str
    about: frozenset[str]


@lru_cache(maxsize=_KNOWN)
def tools_of(text: str) -> tuple[Tool, ...]:
    """Those that are named, in their order."""
    if _FIRST_WORDS.isdisjoint(_WORD.findall(text.casefold())):
        return ()
    return tuple(
        Tool(kind, match[0].casefold(), match.start(), match.end())
        for match in _NAME.finditer(text)
        if not match["exact"] or _WITHIN.search(text, 0, match.start())
        for kind in _KINDS[f"={match['exact']}" if match["exact"] else match["any"].casefold()]
    )


def is_tool(text: str) -> bool:
    """Whether it is the name of one."""
    return any(one.end - one.start == len(text) for one in tools_of(f"in {text}"))


def switches(statement: str) -> Iterator[Switch]:
    """To what somebody switched, as a statement says."""
    for tool in tools_of(statement):
        before = _LAST_CLAUSE.split(statement[: tool.start])[-1]
        after = _REASON.sub("", re.split(r"[.;!?,]", statement[tool.end :])[0])
        if _NOT_NOW.search(f"{before}; {after}") or _MOMENT.search(statement, 0, tool.end):
            continue
        if _CHANGED_TO.search(before) or _NOW.search(before) or _SINCE.match(statement[tool.end :]) or _TAKES_OVER.match(after):
            yield Switch(tool.kind, tool.name, _about(tool, f"{before} {after}"))


def is_replaced(fact: str, switch: Switch) -> bool:
    """Whether a fact tells of one other of that kind, and of the same use of it."""
    names = {one.name for one in tools_of(fact) if one.kind == switch.kind}
    if len(names) != 1 or switch.name in names or _NOT_HAD.search(fact):
        return False
    roots = _roots(fact)
    return switch.about <= roots | _SAID_OF[switch.kind] and roots & _OTHERS <= switch.about


def is_of_kind(subject: str, kind: str) -> bool:
    """Whether the subject of a statement says no more than the kind: "our CI"."""
    return _roots(subject) - _OF_ANYTHING - _roots("our my the") <= _SAID_OF[kind]


def _about(tool: Tool, clause: str) -> frozenset[str]:
    """Without what is said of any of its kind."""
    told = words(_TIME.sub(" ", _NAME.sub(" ", clause)))
    roots = {root(word) for word in told if word not in _STOPS and len(word) > 1 and not word[0].isdigit()}
    return frozenset(roots) - _OF_ANYTHING - _SAID_OF[tool.kind]
