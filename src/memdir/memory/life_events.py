"""Turns of a life as patterns of English: births, jobs, moves, illnesses, what an office or a doctor decided. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.memory.change_words import NOW_IS
from memdir.memory.dates import WEEKDAY
from memdir.memory.occupations import SCHOOL

NAME: Final = r"^(?P<name>[A-ZÀ-ÞА-Я][\w'’.-]+(?: [A-ZÀ-ÞА-Я][\w'’.-]+){0,3}) (?:\([^)]{1,40}\) )?"
"""With which a statement about somebody begins."""
LIFE_EVENTS: Final = (
    r"(?:was|were) (?:just |recently )?(?:born|raised|diagnosed|promoted|laid off|hired|elected|appointed|accepted|added)|"
    r"had (?:asthma|cancer|a (?:baby|son|daughter|stroke))|(?:got|get) (?:married|engaged|divorced|promoted|"
    r"a (?:new )?(?:job|dog|cat|puppy))|moved|relocated|joined|left|quit|switched|bought|met|studied|graduated|worked (?:at|"
    r"for|as|in)|lived|grew up|turned \d+|adopted|retired|decided|started|stopped|gave up|learn(?:ed|t)|became|founded|"
    r"signed up|enrolled|sold|accepted|hired|taken (?:an?|up) |took up|picked up|made (?:a|the) (?:\w+ )?(?:switch|change|"
    r"move|decision)|lost my|broke my|given up|cancell?ed|gave notice|traded (?:in|my|our|the)|paid off|resigned|"
    r"(?:failed|passed) (?:my|the|an?) (?:[\w-]+ ){0,2}(?:exams?|tests?|course|class|interview|probation|finals)\b(?! suite)|"
    r"got (?:the |my |an? )?(?:[\w-]+ )?(?:job|offer|place|flat|keys|scholarship|grant|visa|interview|loan|transfer)\b|"
    r"got into (?-i:[A-Z])|turned down (?:the|an?|my|their)|signed (?:the|an?|my|our) (?:[\w-]+ )?(?:lease|contract|papers|"
    r"deed|will)|tore (?:my|an?)|(?:broke|sprained|twisted|fractured) my|inherited|withdrew from|closed (?:my|our)|"
    r"put [\w ]{2,20} to sleep|had (?:my|an?|the) (?:[\w-]+ )?(?:surgery|operation|miscarriage|accident)|"
    r"diagnosed with|\w+ed .{0,60}\b(?:since|for (?:[\w-]+ )?(?:years|months|decades))\b"
)
_DECIDED: Final = r"accepted|approved|rejected|granted|denied|declined|refused|extended|renewed|cancell?ed|confirmed|signed"
_ASKED: Final = r"application|visa|offer|mortgage|loan|permit|claim|appeal|transfer|scholarship|contract|lease|passport|leave"
_HEALER: Final = r"doctor|dentist|gp|surgeon|vet|therapist|orthodontist|cardiologist|oncologist|psychiatrist|midwife"
_DOCTOR: Final = rf"(?:(?:my|the|our) (?:{_HEALER})|Dr\.? (?-i:[A-Z])[\w'’-]+)"
_CLOSE: Final = (
    r"(?:the|my|our) (?:kids?|child(?:ren)?|twins|girls?|boys?|sons?|daughters?|wife|husband|partner|mum|mom|dad|mother|father|"
    r"parents|brothers?|sisters?)"
)
HAS_DONE: Final = re.compile(
    NAME + r"(?:has (?:finally |just |now |also )?(?:been|left|joined|given|taken|bought|sold|become|got|gone|begun|\w+ed|"
    r"(?:an?|two|three|no) [^.;]{2,40}? now\b)|"
    r"(?:quit|left|joined|married|retired|resigned|sold|bought|adopted|was (?:born|promoted|diagnosed|laid off|hired)|"
    rf"(?:starts|started|began|finished) (?:{SCHOOL})|gave birth|proposed to|got into [A-Z]|moved in with|split up|"
    r"(?:passed|failed) (?:her|his|their|the)|had (?:her|his|their|an?|the) (?:[\w-]+ )?(?:surgery|operation|baby|hip|knee|"
    r"accident|stroke|twins)|is (?:home from|out of) (?:the )?(?:hospital|rehab|clinic)|"
    r"got (?:a|the|married|engaged|promoted|divorced)|broke (?:her|his|their)|(?:changed|switched) (?:to|jobs|schools)))\b"
)
TURN: Final = re.compile(
    rf"(?:{LIFE_EVENTS}|finished|ran (?:the|my)|passed (?:the|my)(?! (?:time|day|hours?|afternoon|evening))|"
    rf"(?:training|saving(?: up)?|studying) for (?:an?|the|my)|"
    rf"learning (?:to|(?-i:[A-Z])\w+))\b|(?:decisions?|agreed|(?:new |house )?rules?): \w|"
    rf"no more (?!than\b)\w|[a-z]+ing (?:\w+ )?(?:on {WEEKDAY}s|"
    rf"every (?!day\b)\w+)\b|(?:[A-Z]\w+ |[Mm]y \w+ )(?:died|passed away|retired|has died|"
    rf"has retired)\b|(?:the |our )?[\w-]+(?: [\w-]+)? (?:is |was |has been )?(?:moved|pushed|postponed|renamed|changed)"
    r"(?: back| forward)? (?:to|from|until)\b"
    rf"|(?!(?:it|this|that|he|she|everything|\w+body|\w+one) )(?:the |our |my )?[\w-]+(?: [\w-]+){{0,2}} (?:{NOW_IS})"
    rf"|(?:{_CLOSE}|(?!(?:it|this|that|there|everything|everyone|everybody) )(?-i:[A-Z])[\w-]+) (?:(?:plays?|speaks?|"
    r"goes to|go to|attends?|stud(?:y|ies)|teach(?:es)?|trains?|drives?|rides?|lives?|works? (?:at|for|as|in|from)) "
    r"[^.;]{2,40} now\b|(?:is|are) in (?:\w+ ){0,2}(?:grade|kindergarten|preschool|college|university)\b)"
    r"|(?:my |our )?new (?:[a-z]+ )?(?:laptop|computer|phone|tablet|camera|car|bike|bank|gym|doctor|dentist|gp|therapist|boss|"
    r"manager|landlord|insurance|provider|contract|plan|salary|rent|hours|schedule|routine|team|project|client|desk|office|"
    r"flat|house|number)(?: is)?: \w"
    r"|(?-i:[A-Z])\w+ and (?-i:[A-Z])\w+ (?:are (?:getting )?(?:married|engaged|divorced|separated|expecting)|got (?:married|"
    r"engaged|divorced)|(?:have )?(?:split up|broken? up|separated)|had (?:an?|their|twins))\b"
    rf"|(?:[\w'’.-]+ ){{1,4}}?(?:turned (?:me|us) down|(?:ha(?:s|ve) )?(?:{_DECIDED}) (?:my|our) (?:[\w-]+ )?"
    rf"(?:{_ASKED}))\b"
    rf"|(?:my|our|the|her|his) (?:[\w-]+ )?(?:{_ASKED})(?: [\w'’-]+){{0,4}}? (?:(?:was|were|is|has been|got) (?:{_DECIDED})|"
    r"(?:came|went|is) through)\b"
    r"|(?:my|the) (?:[\w-]+ )?(?:biopsy|scan|mri|x-?ray|(?:blood )?tests?|results?) (?:came back|(?:was|were) (?:clean|clear|"
    r"negative|positive|benign))\b"
    rf"|(?:{_DOCTOR}|s?he|they) (?:(?:has|have|had) )?(?:put|started|kept) me on \w"
    rf"|{_DOCTOR} (?:(?:(?:has|have) )?(?:took|taken) me off|pulled|removed|prescribed|took|put|diagnosed|says|said|"
    r"(?:told|advised|wants) me (?:not )?to)\b",
    re.IGNORECASE,
)
