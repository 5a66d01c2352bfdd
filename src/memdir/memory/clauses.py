"""Splits a sentence into the clauses that are facts by themselves, so that each changes apart: "I live in Porto and work at
Tessera". English. Pure."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice
from typing import Final

from memdir.memory.claims import is_bare, is_readable
from memdir.memory.formers import formers_of
from memdir.memory.informal import as_sentences
from memdir.memory.markup import source_at
from memdir.memory.personal import is_claim, is_of_life
from memdir.memory.pronouns import CALLING, MEETING, NEWS, OCCASION, verb_of
from memdir.memory.pronouns_other_languages import met_in
from memdir.memory.relations import KIN
from memdir.memory.statements import SENTENCES, Statement

CLAUSES_MAX: Final = 6
JOINING: Final = r"(?P<mark>;| [–—]| --?|,)?\s(?P<word>(?:and|but|while|whereas)\s)?"
"""Between two clauses."""
_NAME: Final = r"(?!(?:My|Our|Her|His|I|We|She|He)\b)(?:Dr\.? |Mrs?\.? |Ms\.? )?[A-ZÀ-Þ][a-zß-ÿ][\w'’-]*(?: [A-ZÀ-Þ][\w'’-]+)?"
_NO_VERB: Final = r"(?:an?|the|in|at|on|from|with|of|and|or|to|by|for)\b"
_VERBS: Final = (
    r"(?:(?:also|now|currently) )?(?:lives?|works?|speaks?|prefers?|likes?|loves?|hates?|uses?|drinks?|owns?|plays?|drives?|"
    r"rents?|eats?|dislikes?|enjoys?|avoids?|wants?|needs?|reports? to|"
    r"studies|study|teach(?:es)?|runs?|am|are|is|has|have|was (?:born|raised)|were born|grew up|moved|joined|bought|"
    r"started|adopted|(?:never|always)(?= (?:use|eat|drink|wear|work|go|take|drive|buy|cook|touch|miss|sleep|smoke|travel|fly|"
    r"have|do|get|write|read|answer|reply|call|watch|listen|play|run|skip|leave|commit|push|deploy|merge|ask|pay|bring|make|"
    r"add|keep)s?\b))\b"
)
_BEGINS: Final = re.compile(
    rf"(?P<who>I|We|(?:My|Our) [a-z][\w-]*(?: [a-z][\w-]*)?(?: {_NAME})?|She|He|{_NAME})"
    r"(?:['’](?:m|ve|re|s|ll))? (?=[a-z\d])|(?:My|Our|Her|His) (?=[a-z])"
)
"""How a clause with a subject begins that is no part of a longer one ("When I …")."""
_NO_NAMES: Final = frozenset(
    """
    when while if as since because before after once until the it decided moved started stopped finished booked called talked
    asked agreed planned switched changed cancelled met got had went took made gave bought sold spent told sent wrote read ran
    """.split()  # noqa: SIM905
)
"""Nor are verbs of a diary."""
_JOINT: Final = re.compile(
    rf"{JOINING}(?:(?P<own>(?:I|we|she|he)\b(?=['’ ])|"
    rf"(?:(?:my|our|her|his) [\w-]+(?: (?!{_NO_VERB})[a-z]\w+)?(?: {_NAME})?|{_NAME})(?= (?!{_NO_VERB})[a-z]))|"
    rf"(?P<verb>{_VERBS}))(?= ?[\w'’])"
)
_POINTS_BACK: Final = re.compile(
    r"\b(?:it|them|this|that|these|those|there|one|ones|both|either|each)\b|"
    r" (?:do|does|did|is|are|am|\w+n['’]t|not|too|so)\W*$",
    re.IGNORECASE,
)
"""What is understood only together with the clause before."""
_OF_SOMEBODY: Final = re.compile(rf"(?:She|He) {_VERBS}")
_USED_TO: Final = re.compile(r".* used to \w")
_RELATIVE: Final = re.compile(r",? (?:who|which|that|whose|where)\b")
"""What follows it may be about whom it names."""
_WORDS_MIN: Final = 3
_WHOM: Final = rf"(?P<who>(?>(?:my )?(?:{KIN})\b|{_NAME}))"
_TOLD_OF: Final = (
    r"(?: (?!and\b)[^,;:–]{0,40}?)?(?:[,;:]| [–-]|,? and(?= [sS]?he\b))? (?P<rest>(?:[Ss]he|[Hh]e|who)(?P<short>['’]s)? "
    r"(?!(?:was|were|looks?|looked|seem\w*|sound\w*|asked|said|told|sent|sends)\b)(?=[a-z])|(?P<own>[Hh]er|[Hh]is) (?=[a-z]))"
)
_OF_WHOM_MET: Final = re.compile(
    rf"(?:(?:I )?(?:(?i:{MEETING})|(?:[Tt]alked|[Ss]poke) (?:to|with)|(?:[Gg]ot |[Hh]ad )?(?:an? )?(?i:{NEWS}) from|"
    rf"[Hh]ad (?:\w+ )?(?:\w+ )?with)|(?:\w+ )?(?:(?i:{OCCASION})|[Bb]eers?) with)(?: up with)? {_WHOM}{_TOLD_OF}"
)
"""A diary's "Lunch with Ana, she is moving to Graz"."""
_WHO_CALLED: Final = re.compile(rf"{_WHOM} (?:{CALLING})\b{_TOLD_OF}")
"""And "Ana called, she is moving to Graz"."""
_MET_MAX_WORDS: Final = 4
_INTRODUCES: Final = re.compile(r"(?:I['’]m|I am|My name is) (?!(?:not|so|too|very|sorry|sure|glad|going|about|afraid)\b)")
_AND_SO: Final = re.compile(r",? and (?=(?:I )?(?:live(?! alone)|work|have|speak|study|teach)\b)|, (?:and )?")
_OF_ONESELF: Final = (
    (re.compile(r"\d{1,2}(?: years old)?$"), "I'm "),
    (re.compile(r"(?:an?|the) [\w-]+ [\w-]+|an? \w+(?:er|or|ist|ian|ant|nurse)\b"), "I'm "),
    (
        re.compile(
            r"(?:currently |now |originally |happily |recently )?(?:living|working|based|married|single|divorced|widowed|"
            r"retired|engaged|vegan|vegetarian|from [A-Z]|born|raised)\b"
        ),
        "I'm ",
    ),
    (re.compile(r"(?:also )?(?:live|work|have|speak|study|teach|play|run|own|prefer) [a-z]"), "I "),
    (re.compile(r"(?:one|two|three|four|\d) (?:\w+ )?(?:kids?|child(?:ren)?|sons?|daughters?|dogs?|cats?)\b"), "I have "),
    (re.compile(r"I (?:live|work|have|speak|study|teach|play|run|own|prefer|am)\b"), ""),
)
"""What tells something of whoever introduces themselves, and what it lacks to be a sentence."""
_OTHER_LANGUAGES: Final = (
    (
        re.compile(r"Ich (?=[a-zß-ÿ])"),
        re.compile(
            r",? (?:und )?(?=(?:heiße|bin|habe|wohne|lebe|arbeite|komme|spreche|spiele|singe|lerne|studiere|mag|esse|trinke|"
            r"fahre|gehe)\b (?!gern\b))"
        ),
        "Ich ",
    ),
    (
        re.compile(r"(?:Me llamo|Soy|Tengo|Vivo|Trabajo|Estudio) "),
        re.compile(r"(?:,| y) (?=(?:me llamo|soy|tengo|vivo|trabajo|estudio|hablo|toco|juego)\b)"),
        "",
    ),
    (re.compile(r"(?:Je |J['’])[a-zà-ÿ]"), re.compile(r"(?:,| et) (?=j(?:e |['’])[a-zà-ÿ])"), ""),
)
"""How one begins to tell of oneself, where the next clause begins, and what that lacks: "Ich heiße Eva und wohne in Ulm"."""


def clauses(sentence: str) -> list[tuple[int, int, str]]:
    """Start, end and text of each, in order; one where it says one thing. A clause without a subject has that of
    the one before it, one about somebody whom the user met their name. At most CLAUSES_MAX."""
    met = _OF_WHOM_MET.match(sentence) or _WHO_CALLED.match(sentence)
    if met is not None:
        rest = sentence[met.end("rest") :]
        who = met["who"][:1].upper() + met["who"][1:]
        verb = "'s" if met["own"] else verb_of(rest) if met["short"] else ""
        end, told = met.start("rest"), f"{who}{verb} {rest}"
        back = len(sentence) - len(told)  # what is told ends as the sentence does
        others = [(max(start + back, end), stop + back, text) for start, stop, text in clauses(told)]
        said = f"{sentence[:end].removesuffix(' and ').rstrip(' ,;–-')}."
        if len(said.split()) <= _MET_MAX_WORDS:  # that alone tells nothing
            return [(0, others[0][1], others[0][2]), *others[1:]]
        return [(0, end, said), *others]
    other = met_in(sentence) if is_readable(sentence) else None
    if other is not None:
        end, begins, who = other
        return [(0, end, f"{sentence[:end].rstrip(' ,')}."), (end, len(sentence), f"{who} {sentence[begins:]}")]
    if _INTRODUCES.match(sentence) is not None and is_readable(sentence) and len(own := _introduced(sentence)) > 1:
        return own
    for first, joint, lacking in _OTHER_LANGUAGES:
        if first.match(sentence) is not None and is_readable(sentence):
            return _told_in_turn(sentence, joint, lacking)
    found: list[tuple[int, int, str]] = []
    start, subject = 0, ""
    while is_readable(sentence) and len(found) < CLAUSES_MAX - 1:
        cut = _cut(sentence, start, subject)
        if cut is None:
            break
        end, text, begins, subject = cut
        found.append((start, end, text))
        start = begins
    return [*found, (start, len(sentence), _told(sentence[start:], subject) if found else sentence)]


def _introduced(sentence: str) -> list[tuple[int, int, str]]:
    """What somebody says of themselves between commas; what does not tell of them by itself stays with what precedes it."""
    found: list[tuple[int, int, str]] = []
    for start, end in _between(_AND_SO, sentence):
        part = sentence[start:end].rstrip(".! ")
        lacking = next((subject for rule, subject in _OF_ONESELF if rule.match(part)), None) if start else ""
        if lacking is None:
            found[-1] = (found[-1][0], end, f"{sentence[found[-1][0] : end].rstrip('.! ')}.")
        else:
            found.append((start, end, f"{lacking}{part}."))
    return found


def _told_in_turn(sentence: str, joint: re.Pattern[str], subject: str) -> list[tuple[int, int, str]]:
    """The clauses between joints, each with its subject."""
    return [
        (start, end, _told(sentence[start:end], subject if start else "") + ("." if end < len(sentence) else ""))
        for start, end in _between(joint, sentence)
    ]


def _between(joint: re.Pattern[str], sentence: str) -> list[tuple[int, int]]:
    """Where each part between joints begins and ends; at most CLAUSES_MAX, the last of them goes on to the end."""
    joints = list(islice(joint.finditer(sentence), CLAUSES_MAX - 1))
    return list(zip([0, *(one.end() for one in joints)], [*(one.start() for one in joints), len(sentence)], strict=True))


def _cut(sentence: str, start: int, subject: str) -> tuple[int, str, int, str] | None:
    """End and text of the first clause from `start` on, where the next begins, and the subject that the next one lacks."""
    said = _told(sentence[start:], subject)
    lacks_subject = is_bare(said) and " – " not in said
    first = None if lacks_subject else _BEGINS.match(said)
    who = "" if lacks_subject else None if first is None else first["who"]
    if (first is None and not lacks_subject) or (who or "").casefold() in _NO_NAMES:
        return None
    for joint in _JOINT.finditer(sentence, start + 1):
        has_subject = joint["own"] is not None
        is_joined = joint["mark"] is not None or joint["word"] is not None
        goes_on = who is not None and joint["mark"] in ({None, ",", ";"} if lacks_subject else {None, ","})
        if not is_joined or not (has_subject or goes_on):
            continue
        if not has_subject and _RELATIVE.search(sentence, start, joint.start()) is not None:
            continue
        begins = joint.start("own" if has_subject else "verb")
        lacks = "" if has_subject or lacks_subject else f"{who} "
        text, rest = _told(sentence[start : joint.start()], subject), _told(sentence[begins:], lacks)
        is_exchange = joint["mark"] in {None, ","} and bool(formers_of(text)) and _USED_TO.match(text) is None
        if not is_exchange and _are_apart(text, rest, who):
            return joint.start(), f"{text}.", begins, lacks
    return None


def _are_apart(text: str, rest: str, who: str | None) -> bool:
    """Whether two clauses are facts by themselves, and neither needs the other to be understood."""
    is_of_both = rest.startswith("We ") and who not in {None, "I", "We"}  # "Tom is my friend; we met in Leeds"
    least = _WORDS_MIN - 1 if who == "" else _WORDS_MIN
    if is_of_both or min(len(text.split()), len(rest.split())) < least or _POINTS_BACK.search(rest):
        return False
    if who == "" and is_bare(rest):  # "Lives in Porto, works at Tessera"
        return True
    return (_says(text) or _USED_TO.match(text) is not None) and _says(rest)


def _told(clause: str, subject: str) -> str:
    said = subject + clause
    return said[:1].upper() + said[1:]


def _says(clause: str) -> bool:
    return is_claim(clause) or is_of_life(clause) or _OF_SOMEBODY.match(clause) is not None


def parts_of(text: str, piece: Statement, *, is_informal: bool = False) -> list[Statement]:
    """What a statement says, one fact each; of a message, or of an informal note, as it is meant, each with the place of its
    sentence."""
    is_message = piece.speaker is not None
    if piece.form == "pair" or not (is_message or (is_informal and piece.form in {"item", *SENTENCES})):
        return _clauses(text, piece)
    typed = as_sentences(piece.text, is_item=not is_message and piece.form == "item")
    source = text[piece.start : piece.end]
    starts = [piece.start + source_at(source, piece.text, start) for start, _ in typed]
    return [
        replace(piece, start=start, end=end, text=clause)
        for (_, said), start, end in zip(typed, starts, [*starts[1:], piece.end], strict=True)
        for _, _, clause in _cut_up(piece, said)
    ]


def _clauses(text: str, piece: Statement) -> list[Statement]:
    """What a sentence says, one fact each."""
    found = _cut_up(piece, piece.text)
    if len(found) < 2:
        return [replace(piece, text=said) for _, _, said in found]
    source = text[piece.start : piece.end]
    places = [piece.start + source_at(source, piece.text, start) for start, _, _ in found[1:]]
    ends = [piece.start + source_at(source, piece.text, end) for _, end, _ in found[:-1]]
    return [
        replace(piece, start=start, end=end, text=said)
        for start, end, (_, _, said) in zip([piece.start, *places], [*ends, piece.end], found, strict=True)
    ]


def _cut_up(piece: Statement, said: str) -> list[tuple[int, int, str]]:
    """As `clauses`; a pair or a task says one thing."""
    return clauses(said) if piece.form in {"item", *SENTENCES} else [(0, len(said), said)]
