"""Who "she" and "he" are: the one person whom the sentence before named. English; where it is not certain, nobody. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memdir.memory.claims import USER, claim_of, is_bare
from memdir.memory.occupations import A_PROFESSION
from memdir.memory.pronouns_other_languages import begins_with_pronoun, named_in, with_name
from memdir.memory.relations import FEMALE, KIN, MALE, PEOPLE

_PRONOUN: Final = re.compile(r"^(?:(?P<who>[Ss]he|[Hh]e)(?P<short>['’]s)?|(?P<own>[Hh]er|[Hh]is)) (?=[a-z])")
_FULL_NAME: Final = re.compile(
    r"^(?:(?:My|Our) [a-z][\w-]*(?: [a-z][\w-]*)? )?"
    r"(?P<name>[A-ZÀ-Þ][a-zß-ÿ'’-]+(?: [A-ZÀ-Þ][a-zß-ÿ'’-]+)+) (?:is|was|has|works|lives|moved|called|joined|likes|and I)\b"
)
CALLING: Final = (
    r"called|rang|phoned|texted|messaged|emailed|mailed|wrote|visited|came (?:round|over|by|to)|(?:stopped|dropped|popped) "
    r"(?:by|in|round|over)"
)
NEWS: Final = r"news|text|message|call|email|letter|postcard|note"
"""Patterns of how somebody gives word."""
_DOES: Final = re.compile(
    r"(?P<name>[A-ZÀ-Þ][a-zß-ÿ'’-]+(?: [A-ZÀ-Þ][a-zß-ÿ'’-]+)?) (?:wants|asked|knows|thinks|hates|loves|dislikes|decides|"
    rf"decided|left|quit|joined|married|told|said|agreed|promised|hopes|plans|{CALLING})\b"
)
"""A name, and what only people do: "Silke wants one line per file"."""
_IS: Final = re.compile(rf"(?P<name>[A-ZÀ-Þ][a-zß-ÿ'’-]+(?: [A-ZÀ-Þ][a-zß-ÿ'’-]+)?) (?:is|was) {A_PROFESSION}")
_HAS: Final = re.compile(
    r"(?:been|got|had|gone|become|begun|split|left|bought|sold|quit|taken|given|made|found|met|broken|fallen|come|torn|won|sent|"
    r"written|chosen|forgotten|seen|done|grown|lost(?= \w)|hurt(?= h)|\w+ed)\b(?!-)"
)
MEETING: Final = r"Met|Saw|Called|Visited|Rang|Phoned|Ran into|Bumped into|Heard from"
OCCASION: Final = r"Lunch|Dinner|Breakfast|Coffee|Tea|Drinks|Call|Catch-up|Walk|Chat"
"""Patterns of how a diary says that one met somebody."""
_SPEAKING: Final = (
    r"[Tt]old|[Aa]sked|[Tt]exted|[Mm]essaged|[Ee]mailed|[Hh]elped|[Cc]aught up with|[Hh]ung out with|"
    r"[Pp]icked up|[Dd]ropped off"
)
_DOING: Final = (
    r"(?:[Ww]ent|[Hh]ad|[Pp]layed|[Ww]atched|[Cc]ooked|[Ww]orked|[Rr]an|[Ss]pent|[Ss]at|[Ss]tayed|[Ww]alked|[Dd]rove|[Dd]id|"
    r"[Ss]aw|[Pp]aired|[Tt]rained)(?: [a-z\d][\w'’-]*){0,5}? with"
)
_MET: Final = re.compile(
    rf"(?:I |We )?(?:(?i:{MEETING})|{_SPEAKING}|{_DOING}|(?:(?:{OCCASION}|Meeting|1:1|Talk) (?:with|to))|"
    r"(?:[Tt]alked|[Ss]poke|[Cc]hatted) (?:with|to))(?: (?:up )?with)? "
    r"(?P<name>(?>[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){0,2}))(?! and\b|,)"
)
"""Whom what follows tells of."""
_OF_THEM: Final = re.compile(
    r"(?P<name>[A-ZÀ-Þ][a-zß-ÿ-]+(?: [A-ZÀ-Þ][a-zß-ÿ-]+)?)['’]s [a-z\d][\w -]{1,30} (?:is|are|was|were|went|has|will)\b"
)
"""Whose party, operation or visa it is; of their sister not they are told."""
_RELATED: Final = re.compile(
    rf"(?P<name>(?:My|Our|[A-ZÀ-Þ][a-zß-ÿ-]+['’]s) (?:(?:older|younger|eldest|youngest|little|big|best|new|ex-?) ?)?"
    rf"(?:{KIN}|{'|'.join(sorted(PEOPLE))})) (?:is|was|has|works|lives|moved|got|just|now|started|lost|sold|bought)\b"
)
"""A relative who is not called by a name, of the user or of somebody: "Ana's sister is a nurse"."""
_USER: Final = "The user"
_OTHERS: Final = re.compile(rf"\b(?:{KIN}|{'|'.join(sorted(PEOPLE))}|kids?|child(?:ren)?|sons|daughters)\b", re.IGNORECASE)
"""Who else may be meant by what stands behind."""
_OF_USER: Final = re.compile(r"(?:The |This )?[Uu]ser (?=[a-z])")


def resolved(statements: Sequence[str], *, goes_on: Sequence[bool], about: str | None = None) -> list[str]:
    """The statements with the name in place of a pronoun at their beginning. `goes_on`: the statement stands right behind the
    one before it, in the same paragraph. `about`: whom the whole text is about, where that is told."""
    about = _USER if about is None and any(map(_OF_USER.match, statements)) else about
    said: list[str] = []
    name: str | None = None
    pronoun: str | None = None
    before: str | None = None
    """What may name somebody; looked at only when a pronoun follows."""
    for last, statement, follows in zip([None, *statements], statements, goes_on, strict=False):
        if not follows:
            name = pronoun = before = None
        found = _PRONOUN.match(statement)
        if found is None and last is not None and begins_with_pronoun(statement):
            name = (None if before is None else named_in(before)) or name
            before = None
            said.append(statement if name is None else with_name(statement, name))
            continue
        if found is None:
            met = None if before is None else _MET.match(before)
            whose = name if met is None else met["name"]
            if whose is not None and is_bare(statement):
                said.append(f"{whose} {statement}")
                continue
            before, name = statement, None
            said.append(statement)
            continue
        if before is not None:
            (name, pronoun), before = _named(before), None
        used = "she" if (found["who"] or found["own"]).casefold() in {"she", "her"} else "he"
        if name is not None and pronoun not in (None, used):
            name = None
            said.append(statement)
            continue
        pronoun = used if name is not None else pronoun
        rest = statement[found.end() :]
        verb = "'s" if found["own"] else verb_of(rest) if found["short"] else ""
        may_be_other = last is not None and _OTHERS.search(last) is not None and _OF_USER.match(last) is None
        who = name or (None if about == _USER and may_be_other else about)
        said.append(statement if who is None else f"{who}{verb} {rest}")
    return said


def verb_of(rest: str) -> str:
    """What "'s" behind "she" or "he" stands for, before `rest`."""
    return " has" if _HAS.match(rest) else " is"


def _named(statement: str) -> tuple[str | None, str | None]:
    """The one person a statement is about, and the pronoun when it tells."""
    rules = (_FULL_NAME, _DOES, _IS, _MET, *(() if _OTHERS.search(statement) else (_OF_THEM,)))
    names = {found["name"] for rule in rules if (found := rule.match(statement)) is not None}
    claim = claim_of(statement)
    pronoun = None
    if claim is not None:
        of_person = claim.subject == USER and claim.attribute in PEOPLE
        told = claim.value if of_person else "" if claim.subject == USER else claim.subject
        at = statement.casefold().find(told) if told else -1
        if at >= 0 and statement[at].isupper():
            names.add(statement[at : at + len(told)])
        if of_person:
            words = set(re.findall(r"\w+", statement.casefold()))
            pronoun = "she" if words & FEMALE else "he" if words & MALE else None
    related = _RELATED.match(statement)
    if related is not None and (not names or re.search(r"['’]s", related["name"])):
        word = related["name"].rpartition(" ")[2]
        return related["name"], "she" if word in FEMALE else "he" if word in MALE else None
    return (next(iter(names)), pronoun) if len(names) == 1 else (None, None)
