"""What somebody is noted to have said of themselves, as their own statement: an agent writes "The user told me they moved to
Graz", somebody who keeps a diary "Ana says she works at Nexia now". German, Spanish and French of the user only. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.relations import FAMILY, KIN

_USER: Final = r"(?:[Tt]he |This |Our )?[Uu]ser"
_NAME: Final = (
    r"(?!(?:The|This|Our|User|She|He|They|It|I|We|You|Who|Somebody|Someone|Nobody|Everyone|Everybody|People|"
    r"Yesterday|Today|Tonight|Then|Later|When|If|After|Before|And|But|So)\b)"
    rf"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){{0,2}}|My (?:{KIN}|{FAMILY})"
)
_SAYS: Final = (
    r"(?:said|says|told (?:me|us)|tells (?:me|us)|mentioned|mentions|confirmed|confirms|noted|notes|explained|explains|"
    r"reported|reports|clarified|stated|states|added|revealed|announced|shared|pointed out|complained|wrote|texted(?: me)?|"
    r"reminded (?:me|us)|informed (?:me|us)|let (?:me|us) know|corrected (?:me|us))(?: (?:today|yesterday|earlier|again))?"
)
_REPORT: Final = re.compile(
    r"(?:(?:Summary|Note|Context|Recap|Update|FYI): )?"
    rf"(?:(?:(?P<user>{_USER})|(?P<name>{_NAME}))(?: (?:also|just|then|later|now|has|had|again)){{0,2}} "
    rf"(?P<says>{_SAYS})(?P<that>:| that\b)?|(?P<source>(?:According to|Per) (?:the )?[Uu]ser)[,:]?) (?=\w)"
    r"(?P<whose>(?P<they>they|he|she)(?:(?P<short>['’](?:s|re|ve|ll))|\b)|(?:their|his|her)(?= [a-z]))? ?"
)
_PLAIN: Final = re.compile(r"(?:(?:[Ww]e|[Oo]ur|[Tt]he|[Aa]ll|[Nn]o|[A-Z][\w-]*) )?\w[^?]{8,}")
"""What the user may have said of something else."""
_OF_WRITER: Final = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Yy]ou|[Yy]our)\b")
"""In what the user said, the agent."""
_ELSEWHERE: Final = re.compile(
    r"(?:Der (?:Ben|N)utzer|(?:Die )?(?:Ben|N)utzerin|El usuario|(?:La )?[Uu]suaria|L['’]utilisateur|L['’]utilisatrice|"
    r"(?P<user>User|Nutzer|Benutzer|Usuario)) (?=[a-zà-ÿ])"
    r"(?P<says>(?:hat )?(?:mir )?(?:sagte?|gesagt|erwähnte?|erzählte?|meinte?|berichtete?|schrieb)(?: mir| uns)?,? (?:er|sie) |"
    r"(?:me |nos )?(?:dijo|dice|comentó|mencionó|contó|explicó) que |"
    r"(?:m['’]a |nous a |a |me )?(?:dit|mentionné|expliqué|indiqué|raconté) qu['’](?:il|elle) )?(?=[a-zà-ÿ])"
)
"""The user in other languages, and what they are noted to have said."""
_BACK_IN_TIME: Final = re.compile(r"(?:was|were|had|would|could|should|might)\b|['’]d\b")
"""Reported like this it may be so now, or have been."""
ADVERBS: Final = r"(?:(?:now|also|still|usually|always|never|really|only|mostly|currently|just|already|recently|no longer) )*"
"""Before a verb."""
_PLURAL: Final = re.compile(rf"(?P<adverbs>{ADVERBS})(?P<verb>[a-z]+(?:n['’]t)?)")
_IRREGULAR: Final = {
    "are": "is", "have": "has", "do": "does", "go": "goes", "aren't": "isn't", "haven't": "hasn't", "don't": "doesn't",
    "study": "studies", "teach": "teaches",
}  # fmt: skip
_REGULAR: Final = frozenset(
    """
    attend avoid code commute dislike drink drive eat enjoy expect feel hate hope keep know like live love need own plan play
    prefer rent run sleep speak start take think travel use want work write
    """.split()  # noqa: SIM905
)
_SHORT: Final = {"s": "is", "re": "is", "ve": "has", "ll": "will"}


def direct(statement: str, called: frozenset[str] = frozenset()) -> tuple[int, str, bool] | None:
    """From which character on a statement is what somebody said of themselves, that by itself, with who they are in place of a
    pronoun, and whether the user, who is `called` so, said it; None where it reports nothing, or not only of who said it."""
    found = _REPORT.match(statement)
    if found is None:
        other = _ELSEWHERE.match(statement)
        if other is None or (other["user"] and other["says"] is None):
            return None
        return 0, f"User {statement[other.end() :]}", other["says"] is not None
    is_of_user = found["name"] is None or found["name"].casefold() in called
    rest, pronoun = statement[found.end() :], found["whose"]
    if pronoun is None:
        is_said = found["source"] or (is_of_user and (found["that"] or found["says"].startswith("sa")))
        is_of_all = bool(is_said) and _OF_WRITER.search(rest) is None and _PLAIN.match(rest) is not None
        return (found.end(), rest[:1].upper() + rest[1:], True) if is_of_all else None
    is_plural = pronoun.startswith("they")
    if (is_plural and not is_of_user) or _BACK_IN_TIME.match(rest):
        return None  # of more than who said it, or of no time that is certain
    who = "The user" if is_of_user else found["name"]
    if pronoun in {"their", "his", "her"}:
        return found.start("whose"), f"{who}'s {rest}", is_of_user
    if found["short"]:
        rest = f"{_SHORT[found['short'][1:]]} {rest}"
    elif is_plural:
        rest = _of_one(rest)
    goes_on = re.search(rf" (?:and|but|so) (?={found['they']} )", rest)
    if goes_on is not None:
        more = rest[goes_on.end() + len(found["they"]) + 1 :]
        rest = rest[: goes_on.end()] + (_of_one(more) if is_plural else more)
    return found.start("whose"), f"{who} {rest}", is_of_user


def _of_one(rest: str) -> str:
    """ "now live in Graz" as it is said of one person."""
    found = _PLURAL.match(rest)
    if found is None:
        return rest
    verb = found["verb"].replace("’", "'")
    verb = _IRREGULAR.get(verb, f"{verb}s" if verb in _REGULAR else verb)
    return f"{found['adverbs']}{verb}{rest[found.end() :]}"
