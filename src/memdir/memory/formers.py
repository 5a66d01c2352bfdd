"""Former values that a statement names ("moved from Porto", "left Nexia for Tessera", "no longer with N26"), and how a value is
called later. Pure.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from memdir.memory.claims_other_languages import LANGUAGES
from memdir.memory.personal_other_languages import with_ich
from memdir.memory.tools import is_tool

_KNOWN: Final = 32_768
_MOVED: Final = r"\b(?:mov|switch|chang|migrat|port|transferr|convert|relocat|upgrad|separat)(?:e|ed|es|ing)\b"
_FORMER: Final = r"(?P<former>[^.,;!?()]{2,40}?)"
_COMES_BACK: Final = (
    r" [^.,;!?()]{2,40} (?:with|by|when|and (?:went|walked|drove|came|took|headed|ran|flew|rode|met|had)\b|"
    r"after (?!(?:\w+ )?(?:years|months)))\b"
)
"""After "left": with the kids, after lunch."""
_FOR_A_TRIP: Final = r" (?:the|an?|my) (?:weekend|day|week|night|holidays?|trip)"
_END: Final = rf"(?= (?:and|to|with|by|for(?!{_FOR_A_TRIP})|now|as|since|because|in favou?r|after|when|but)\b|\s*[.,;!?(]|\s*$)"
_GONE: Final = re.compile(
    rf"(?:{_MOVED}(?: away| over)? from|\b(?:away|resigned|retired|t(?:ook|ak(?:es|en|ing)) over) from|\bleft(?!{_COMES_BACK})|"
    r"\b(?:quit(?: at)?|gave up|stopped (?:using|drinking|eating|working (?:at|for))|instead of|rather than|no longer (?:with|"
    r"at|in|for|using|use|on)?|not [\w ]{0,12}any ?more|replac(?:ed|ing)|dropped|sold|goodbye,?|after years (?:with|in|at|of)|"
    r"used to (?:live in|work (?:at|for)|use|drink)|said goodbye to)|"
    rf"(?:^|[:,;–—] )from(?= [\w ]{{2,30}} to )) {_FORMER}{_END}",
    re.IGNORECASE,
)
"""What is said to hold no more."""
_TOOL_GONE: Final = re.compile(rf"(?:\b(?:went|gone)|{_MOVED} [^.,;:!?]{{2,40}}?) from {_FORMER} to\b", re.IGNORECASE)
"""The same of a tool; people and things come from places, too."""
_ARTICLE: Final = re.compile(r"^(?:the|an?|my|our|his|her|der|die|das|el|la|le) ")
_WHERE: Final = re.compile(r" (?:in|at|of|on|near|from) .*")


def short_names(value: str) -> frozenset[str]:
    """What a value may be called later: as it is, without its article, by its first and by its last word ("the rail museum in
    York" is "the museum")."""
    plain = _ARTICLE.sub("", value)
    words = _WHERE.sub("", plain).split()
    return frozenset({value, plain, *({words[0], words[-1]} if len(words) > 1 else ())})


@lru_cache(maxsize=_KNOWN)
def formers_of(statement: str) -> frozenset[str]:
    """Values that a statement says are gone, in lower case."""
    said = [found["former"] for found in _GONE.finditer(statement)]
    said += [found["former"] for found in _TOOL_GONE.finditer(statement) if is_tool(found["former"])]
    statement = with_ich(statement)
    for language in LANGUAGES:
        if language.marks.search(statement) is not None:
            said += [one for found in language.former.finditer(statement) for one in found.groups() if one is not None]
    return frozenset(_ARTICLE.sub("", one.strip().casefold()) for one in said)
