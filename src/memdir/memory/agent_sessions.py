"""What a user says to an agent at work that a later session should know: corrections, preferences, conventions, decisions.
Pure.

Conservative: of what a user says most is a task of the moment. A sentence is taken when what speaks for something lasting
("never", "we decided", "our X are") outweighs what speaks for the moment ("now", "it", "the button"). Rules and weights
were made on one half of the transcripts of `memdir bench agents`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memdir.store.text.sentences import sentences

TEXT_MAX_CHARS: Final = 320
_TURN_MAX_CHARS: Final = 1_500
"""Of what a user types himself: longer ones are pasted."""
WORDS_MIN, WORDS_MAX = 4, 45


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """`kind`: correction, preference, convention, decision, cause or command. `score` orders them."""

    kind: str
    content: str
    score: float


CODE: Final = re.compile(
    r"```.*?(?:```|\Z)|^(?: {4}|\t|>).*$|^\s*(?:at |File \"|\$ ).*$",
    re.DOTALL | re.MULTILINE,
)
_LINE: Final = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])?\s*(\S.*)")
_QUESTION: Final = re.compile(
    r"\?|^(?:can|could|would|will|should|shall|do(?! not\b)|does|did|is|are|was|were|has|have|what|which|who|why|how|"
    r"(?:when|where)(?! [^,]{2,60}, )|whether)\b(?!.*\b(?:is|are|have to|has to|must) (?:always|never|only)\b)",
    re.IGNORECASE,
)
_DOUBT: Final = re.compile(
    r"\b(?:maybe|perhaps|might|could|not sure|i think|i guess|i wonder|probably|possibly|what if|if that|if it|unless|"
    r"i meant|never ?mind)\b",
    re.IGNORECASE,
)
_OPENING: Final = re.compile(
    r"^(?:(?:ok(?:ay)?|so|and|but|well|hmm+|also|btw|hey|ah|oh|yes|sorry)\b[,:;.!]?\s+)*",
    re.IGNORECASE,
)
_CORRECTING: Final = re.compile(
    r"^(?:no+|nope|wrong(?: approach)?|stop|that(?:['’]s| is) (?:wrong|not (?:right|how)\b[^,.:;–-]*)|"
    r"not like that)\s*[,.:;!–-]+\s*",
    re.IGNORECASE,
)
_NOTE: Final = re.compile(
    r"^(?:please )?(?:fyi|note(?: that)?|heads up|remember(?: that)?|for the record|reminder|keep in mind(?: that)?|"
    r"important|decision|for this project(?:,? please)?|to be clear)\s*[:,]?\s*",
    re.IGNORECASE,
)
_FORBIDDING: Final = re.compile(
    r"^(?:please )?(?:don['’]?t|do not|never|stop|avoid|hands off|no)\b|\bnot (?:even|ever)\b|\bnever\b|"
    r"\bwe (?:do not|don['’]t|never)\b|\b(?:is|are) not allowed\b|\bmust not\b",
    re.IGNORECASE,
)
_PREFERRED: Final = (
    r"\b(?:i(?:['’]d)? (?:always |really |much )?(?:prefer|rather|like|want|expect|hate)|i use|my \w+ (?:use|are|is))\b"
)
_DECIDED: Final = (
    r"\b(?:decided|agreed|settled on|off the table|signed off|postponed|feature freeze|will publish|drop support)\b"
)
_LASTING: Final = (
    (2.0, r"\b(?:always|never|ever|every(?: \w+)?|whenever|from now on|in general|by default|each time)\b"),
    (2.0, _PREFERRED),
    (2.5, (
        r"\bwe (?:all )?(?:always|never|only|do not|don['’]t|stay|use|prefer|organi[sz]e|keep|have the|got rid of|"
        r"agreed|decided|settled|chose|dropped|moved|(?:are|['’]re) (?:switching|moving|migrating|dropping))\b"
    )),
    (2.5, _DECIDED),
    (2.5, r"^let['’]?s (?:go with|stick (?:to|with)|stay with|standardi[sz]e)\b"),
    (2.0, r"\bin (?:this|our|the) (?:repo(?:sitory)?|code ?base|project|team|company|organi[sz]ation)\b"),
    (2.0, r"^our \w+|\bthe convention\b|\bby hand\b|\brule\b|\bpolicy\b"),
    (1.5, r"^(?:please )?ask (?:me|\w+) before|\bask (?:me|her|him|them) before\b|\bbefore you (?:add|touch|change)\b"),
    (1.5, r"\b(?:because|since|as) \S+ \S+|\bso that\b|\botherwise\b"),
    (1.5, r"\b(?:instead of|rather than|and not|, not|not the|no longer)\b"),
    (1.5, r"\b(?:has|have|needs?) to\b|\bmust\b|\bis required\b|\bcan only\b|\bnot allowed\b"),
    (1.5, (
        r"^(?!it\b|that\b|this\b|the (?:test|button|page|error|build|tests)\b|there\b)[\w/. -]{2,40}? (?:are|go|"
        r"goes|live|lives|end|ends|come|comes|need|needs|stay|stays|stand|owns?|gets?|rotates?|run|runs|fail|use|"
        r"uses|does|do|break|breaks|follow) "
    )),
    (1.0, r"^[A-Z][a-z]+ (?:from|in|of|does|owns|is|leads)\b"),
)  # fmt: skip
_MOMENT: Final = (
    (2.5, (
        r"\b(?:now|yet|for now|again|tonight|today|tomorrow|an hour|asap|right away|for the moment|first|next|"
        r"still|already)\b"
    )),
    (2.0, (
        r"^(?:it|that|this|they|he|she|there)(?:['’]s)?\b|\b(?:this|that|the other|the left|the right|the last|"
        r"the second) (?:file|one|function|option|test|line|change|page|button|script|part|time|too)\b"
    )),
    (2.0, (
        r"^(?:please )?(?:fix|add|run|show|explain|rename|commit|revert|move|delete|make|put|continue|try|check|"
        r"look|remove|create|undo|go|skip|start|open|update|change|implement|refactor|print|give|let me|"
        r"let['’]?s (?:see|start|do|try)|wait|ship)\b"
    )),
    (2.0, (
        r"\b(?:the (?:button|header|title|page|list|error|diff|output|demo|example|settings|red|tests? in|variable|"
        r"regex))\b"
    )),
    (1.5, (
        r"\b(?:i get|i(?:['’]m| am) getting|still (?:red|fails|broken)|fails?|error|traceback|exception|broken|"
        r"crash(?:es)?)\b"
    )),
    (1.5, r"\b(?:should (?:be|say)|i need|we need this|i don['’]?t like this|in this script|in the example|page size)\b"),
    (1.5, r"\b(?:worry|yet|for now|long tests|do that|slow(?:er)?|than i(?:['’]d| would) expect)\b"),
)  # fmt: skip
_LASTING_RULES: Final = tuple((weight, re.compile(rule, re.IGNORECASE)) for weight, rule in _LASTING)
_MOMENT_RULES: Final = tuple((weight, re.compile(rule, re.IGNORECASE)) for weight, rule in _MOMENT)
SCORE_MIN: Final = 2.0
_CORRECTION_WORTH: Final = 1.5
_FORBIDDING_WORTH: Final = 1.5
_NOTE_WORTH: Final = 2.0
_TAKEN_BACK: Final = re.compile(
    r"\byou (?:used|wrote|put|added|made)\b.{3,60}\b(?:needs?|must|should|has to|have to|wants?)\b",
    re.IGNORECASE,
)


def candidates_in(text: str) -> Iterator[Candidate]:
    """What of one message should be known later, in its order; nothing of one that is longer than a person types."""
    if len(text) > _TURN_MAX_CHARS:
        return
    for line in CODE.sub("", text).splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        whole = found[1].strip()
        corrects = False
        for start, end in sentences(whole):
            sentence = _OPENING.sub("", whole[start:end].strip())
            rest = _CORRECTING.sub("", sentence)
            corrects = corrects or rest != sentence
            one = _statement(rest, corrects=corrects)
            if one is not None:
                yield one


def _statement(sentence: str, *, corrects: bool) -> Candidate | None:
    bare = _NOTE.sub("", sentence)
    count = len(bare.split())
    if not WORDS_MIN - (1 if corrects else 0) <= count <= WORDS_MAX or len(bare) > TEXT_MAX_CHARS:
        return None
    if _QUESTION.search(bare) or _DOUBT.search(bare):
        return None
    forbids = _FORBIDDING.search(bare) is not None
    score = sum(weight for weight, rule in _LASTING_RULES if rule.search(bare))
    score -= sum(weight for weight, rule in _MOMENT_RULES if rule.search(bare))
    score += _CORRECTION_WORTH * corrects + _FORBIDDING_WORTH * forbids + _NOTE_WORTH * (bare != sentence)
    score += _CORRECTION_WORTH * (_TAKEN_BACK.search(bare) is not None)
    if score < SCORE_MIN:
        return None
    if re.search(_PREFERRED, bare, re.IGNORECASE):
        kind = "preference"
    elif corrects or forbids:
        kind = "correction"
    else:
        kind = "decision" if re.search(_DECIDED, bare, re.IGNORECASE) else "convention"
    return Candidate(kind=kind, content=as_sentence(bare), score=score)


def fits(text: str) -> bool:
    """Whether it is short enough for one memory, and no question."""
    return len(text) <= TEXT_MAX_CHARS and len(text.split()) <= WORDS_MAX and "?" not in text


def as_sentence(text: str) -> str:
    """With a capital at its beginning and a stop at its end."""
    text = " ".join(text.split()).strip()
    return text[:1].upper() + text[1:].rstrip("!") + ("" if text[-1:] in ".!…" and not text.endswith("!") else ".")
