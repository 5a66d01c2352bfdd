"""Whether statements of a text that lies in no place are about the user, and so may become memories.

A document without a path is anything that a program posted: a note about a person, or an abstract, an article, a title. Only
the first kind is remembered; the others are documents to be found and nothing else. Rules over single statements, then one
decision over the whole text: a text in which few statements are about a person is about something else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from typing import Final

from memdir.core.caseless import Caseless
from memdir.memory.aspects import CONDITION, MINE, NEW
from memdir.memory.assertions import AUTHOR, SAYS_WE, SAYS_YOU, SPECIALIST, TECHNICAL, is_explanatory, is_meant
from memdir.memory.claims import claim_of, is_readable
from memdir.memory.dates import DATE, DAY_PREFIX
from memdir.memory.endings import says_what_is_over
from memdir.memory.life_events import HAS_DONE, LIFE_EVENTS, NAME, TURN
from memdir.memory.occupations import A_PROFESSION
from memdir.memory.personal_other_languages import ABOUT_SPEAKER, OF_SOMEBODY, is_bare_german

PERSONAL_SHARE: Final = 0.25
"""Of the statements of a text that must be about a person before the others count as such, too ("She is vegetarian" beside
"Marta lives in Graz")."""
SHORT_MAX_WORDS: Final = 40
"""Of a text in which "we" and "our" mean the user's own group; in longer ones they are an author's."""

_HOW: Final = r"(?:(?:really|usually|always|never|often|also|still|currently|no longer|now|just|strongly|mostly|recently) )?"
_IS: Final = (
    rf"(?:{CONDITION}|allergic|married|engaged|divorced|pregnant|retired|born|afraid|"
    r"\d{1,3} years old|from [A-Z]|based in|learning|looking for|working (?:at|for|as|on)|training for|"
    r"on (?:\w+ leave|leave|holiday|vacation|sabbatical|call)|responsible for|fluent|"
    r"(?:starting|moving|leaving|joining|expecting|retiring)\b(?! (?:from|at|the (?:day|week|file|list))\b))"
)
_PERSON: Final = (
    rf"{_HOW}(?:prefers|preferred|likes|loves|hates|dislikes|enjoys|lives|lived in|works (?:at|for|as|from|remotely|part|"
    rf"night)|worked (?:at|for|as)|(?:is|was) {A_PROFESSION}|speaks|studied|graduated|was born|(?:is|was|will be) {_IS}|"
    rf"has (?:an? )?(?:allerg|(?:\w+ )?(?:kids|children|sons?|daughters?|"
    rf"brothers?|sisters?|dogs?|cats?|wife|husband|partner|girlfriend|boyfriend))|"
    rf"drinks|eats|cooks|wakes|"
    rf"had (?:a|the|her|their) (?:baby|boy|girl|son|daughter|twins)|commutes|reports to|"
    rf"turned \d|turns \d|celebrates|moved (?:to|from|in))\b"
)
"""What only a person does."""
_ACTS: Final = (
    rf"{_HOW}(?:avoids|wants|needs|uses|plans|hopes|owns|drives|rides|plays|bakes|reads|writes|runs|goes to|sleeps|collects|"
    rf"leads|manages|joined|decided|agreed|chose|switched|codes|signs|pays|asked|told|said|looks after|met|bought|(?:is|"
    r"was) (?:our|my) \w+|(?:is|was) (?:an?|the) (?:[\w-]+ ){0,2}(?:engineer|teacher|designer|developer|manager|nurse|doctor|"
    r"student|lead|director|architect|lawyer|writer|artist|consultant|owner|chef|baker|pilot|driver|neighbou?r|friend|"
    r"colleague|cousin|aunt|uncle|brother|sister|mother|father|wife|husband|partner|boss|founder|C[ETF]O))\b"
)
"""What a person does, and other things do as well."""
_ADVERB: Final = (
    r"(?:(?:really|usually|always|never|often|also|still|currently|no longer|now|just|strongly|mostly|recently|sometimes|"
    r"finally|almost|lately|typically|generally|already|originally|officially|only|mainly|actually|definitely|absolutely|"
    r"both) )*"
)
_NOT_OF_LIFE: Final = (
    r"think|guess|hope|feel|believe|know|remember|mean|wonder|see|suppose|assume|imagine|expect|find|agree|doubt|understand|"
    r"recommend|suggest|wish|say|tell|bet|swear|admit|notice|thank|promise|apologi[sz]e|certify|argue|claim|forget|reckon|"
    r"realise|realize|figure|ask|look|wrote|went|saw|took|got|made|came|felt|thought|said|told|knew|gave|put|ran|sat|stood|"
    r"heard|found|kept|began|fell|brought|did|do|don|was|were|had|can|could|will|would|shall|should|may|might|must|ate|drank|"
    r"spoke|woke|slept|cut|hit|let|set|tried|sent|paid|spent|won|lost|broke|caught|held|cannot|couldn|wouldn|shouldn|"
    r"didn|wasn|weren|hadn|haven|ain|if|to|forgot|bit|blew|built|chose|drew|drove|fed|flew|hid|hung|led|lay|lent|lit|"
    r"meant|rang|rode|rose|sang|sank|shot|shut|slid|stole|stuck|swam|swore|taught|threw|tore|wore|wound|overheard|understood|"
    r"hurt"
)
"""After "I": what was once, is thought, or may be."""
_PASSING: Final = (
    r"(?:(?:so|very|really|a bit|quite|pretty|too) )?(?:sorry|sure|glad|aware|happy (?:to|that|with)|going to|gonna|about to|"
    r"done|back(?! (?:on|to)\b)|here|late|tired|hungry|bored|exhausted|reminded|kidding|"
    r"trying(?! to (?:lose|quit|stop|learn|eat|drink|sleep|save|spend|cut|walk|run|read|get (?:fit|pregnant)|become)\b)|"
    r"wondering|thinking|hoping|"
    r"looking at|talking|referring|saying|convinced|certain|curious|guessing|assuming|writing this|posting|asking|"
    r"confused|stuck)\b"
)
_CLAUSE: Final = (
    r"(?:^(?:(?:On|In|At|From|As of|By|Before|After|This|Last|Next|Today|Tomorrow|Tonight|Every|Most|These|For|During|Since|"
    r"With|Because of|Right|Now|Nowadays|Lately|Usually|Sometimes|Currently|\w+days?|Mornings|Evenings|Weekends)\b"
    r"(?: [\w'’-]+){0,5} )?|[,;:—–(]\s*|\b(?:and|but|so|where|which) )"
)
"""Where a clause begins."""
_I: Final = (
    rf"{_CLAUSE}I(?:['’]ve| have)? (?:\([^)]*\) )?{_ADVERB}(?:{LIFE_EVENTS})"
    rf"|{_CLAUSE}I (?:don['’]t |do not )?{_ADVERB}(?!(?:{_NOT_OF_LIFE})\b)(?:need|feed|breed|[a-z]+(?<!ed))\b"
    rf"|{_CLAUSE}I (?:can|can['’]?t|cannot) {_ADVERB}(?:swim|drive|cook|dance|sing|ski|skate|ride|whistle|draw|sew|knit|read|"
    r"speak|type|hear|smell|digest|tolerate|sleep)\b(?! (?:you|it|this|that|your)\b)"
    rf"|{_CLAUSE}I(?:['’]?m| am) {_ADVERB}(?!(?:not )?{_PASSING})[\w]"
    rf"|(?:^|[^\w'’/(-])I(?:['’]ve| have) {_ADVERB}(?:been (?!thinking|wondering|meaning|told)|had|got|lived|long|opted|"
    rf"never|always|known|loved|hated|wanted)\b"
)
"""What the user says of themselves: what is so now or always, and turns of a life."""
_MY_PASSING: Final = (
    r"guess|opinion|point|fault|bad|view|question|problem|mistake|understanding|impression|thoughts?|feeling|suspicion|"
    r"answer|apolog\w+|mind|head|reading of|assumption|fear|suggestion|comment|reply|response|patch(?:es)?|code|program|"
    r"package|system"
)
_ABOUT_ME: Final = re.compile(
    rf"{_I}|^(?:call me|remind me|note to self:|remember:)(?: |$)"
    r"|^(?!(?:It|That|This|There|What|Which|Here|Who|He|She)\b)[A-ZÀ-Þ][\w'’.-]+(?: [A-ZÀ-Þ][\w'’.-]+)? is (?:my|our) "
    r"(?!(?:own|way)\b)\w"
    rf"|(?:^|, )[Mm]y (?!(?:{_MY_PASSING})\b)(?:[a-z][\w-]* ){{1,4}}?(?:is|are|has|have)\b"
    r"|(?:^|[^\w-])[Mm]y (?:new |old |eldest |younger |older |best |first |last |current |home |work |favou?rite |"
    r"preferred )?"
    r"(?:name|favou?rite|birthday|wife|husband|partner|son|daughter|mother|father|mum|mom|dad|brother|sister|kids?|children|"
    r"dog|cat|pet|boss|manager|team|colleagues?|company|employer|e-?mail|phone|number|address|job|role|desk|office|flat|"
    r"house|home|car|bike|diet|allerg\w+|time ?zone|editor|shell|laptop|machine|keyboard|girlfriend|boyfriend|friends?|hobby|"
    r"hobbies|goals?|doctor|dentist|city|parents?|grand\w+|landlord|neighbou?r|accountant|preferences?|language|colou?r|food|"
    r"drink|project|salary|rent|garden|piano)\b"
)
_SELF: Final = re.compile(r"(?:^|[\s(,;—–])I(?: [a-z(]|['’](?:m|ve|ll|d)\b| am )|^(?:And |But |So )?(?:My|We|Our)\b")
"""That the user says it, whatever it is about."""
_FIRST_PERSON: Final = re.compile(r"(?:^|[\s\"“(])(?:I (?=[a-z])|I['’](?:m|ve|d|ll) |[Mm]y (?=[a-z]))")
_GROUP: Final = re.compile(
    r"^(?:[Ww]e(?:['’](?:re|ve|ll))?|[Oo]ur|[Ww]ir|[Uu]nsere?[rmns]?|[Nn]ous|[Nn]otre|[Nn]osotros|[Nn]uestr[oa]s?) (?!show|"
    r"present|describe|propose|study|investigate|examine|discuss|report|consider|derive|find|found|demonstrate|analy[sz]e|"
    r"review|introduce)"
)
_USER: Final = re.compile(rf"^(?:[Tt]he |[Tt]his )?[Uu]ser(?:['’]s (?:\w+ ){{1,4}}(?:is|are|was)\b| (?:{_PERSON}|{_ACTS}))")
_NAMED: Final = re.compile(NAME + _PERSON)
_ACTING: Final = re.compile(NAME + _ACTS)
_WE: Final = re.compile(
    rf"{_CLAUSE}[Ww]e(?:['’]ve| have)? {_ADVERB}(?:{LIFE_EVENTS})"
    rf"|{_CLAUSE}[Ww]e (?:don['’]t |do not )?{_ADVERB}(?!(?:{_NOT_OF_LIFE})\b)[a-z]+(?<!ed)\b"
    rf"|{_CLAUSE}[Ww]e(?:['’]re| are) {_ADVERB}(?!{_PASSING})\w|{_CLAUSE}[Ww]e(?:['’]ve| have) {_ADVERB}(?:been|had|got)\b"
    r"|^Our (?:[\w'’-]+ ){1,5}?(?:is|are|has|have|[a-z]{3,}(?<![suy])s)\b"
    r"|^Wir (?:haben|sind|wohnen|leben|ziehen|heiraten|kaufen|bekommen)\b|^Unsere?[nmrs]? \w+ (?:ist|hat|heißt|wohnt)\b"
    r"|^(?:Hemos|Nos hemos) \w+|^\w{3,}(?:amos|emos|imos) (?!a ver\b)|\by yo (?:vivimos|lo hemos|nos|hemos|somos|estamos|"
    r"vamos)\b"
    r"|^Nous (?:avons|sommes|habitons|vivons|déménageons|attendons)\b|^(?:Notre|Nos) \w+ ",
    re.IGNORECASE,
)
_POSSESSIVE: Final = re.compile(
    r"^[A-ZÀ-ÞА-Я][\w.-]+(?: [A-ZÀ-ÞА-Я][\w.-]+)?(?:['’]s|s['’]) (?:new |old |eldest |younger |older |little |best )?"
    r"(?:favou?rite|birthday|wife|husband|partner|son|daughter|mother|father|mum|mom|dad|brother|sister|dog|cat|boss|manager|"
    r"team|e-?mail|phone|number|address|job|role|desk|office|flat|house|car|bike|diet|allerg\w+|time ?zone|nickname|name|"
    r"employer|girlfriend|boyfriend|friend|preferred|hobby|hobbies|goal|doctor|dentist)\b"
)
_PRONOUN: Final = re.compile(
    rf"^(?:She|He|Sie|Er|Elle|Ella|Él) (?:{_PERSON}|wohnt|arbeitet|mag|habite|aime|vive|trabaja)|"
    rf"^(?:She|He)['’]s (?:{_IS}|{A_PROFESSION})"
)
_BARE: Final = re.compile(
    r"^(?:(?:happily|recently|actively|regularly|mostly|also) )?"
    r"(?:prefers|likes|loves|hates|dislikes|enjoys|lives (?:in|at|with)|works (?:at|for|as|from)|speaks|born (?:in|on)|"
    r"married (?:to|with|since)|started (?:to|learning|working)|allergic to|drinks|vegetarian|vegan|based in|studied|"
    r"call me|birthday)\b",
    re.IGNORECASE,
)
_ATTRIBUTE: Final = Caseless(
    rf"^(?:(?:{MINE}) )?(?:(?:work|private|{NEW}) )?"
    r"(?:(?:full |first |last |nick|user ?)?name|(?:date of )?birth(?:day)?|born|age|job(?: title)?|role|employer|company|"
    r"team|city|home(?: town| address)?|location|address|time ?zone|(?:native |spoken )?languages?|pronouns|diet|allerg(?:y|"
    r"ies)|hobb(?:y|ies)|favou?rite .{1,30}|preferred .{1,30}|preferences?|prefers|likes|dislikes|partner|spouse|wife|"
    r"husband|child(?:ren)?|kids|pets?|dog|cat|phone|mobile|e-?mail|editor|shell|goals?|occupation|nationality|wohnort|"
    r"geburtstag|beruf|sprachen?|nom|prénom|ville|nombre|nome|ciudad|cidade|cumpleaños|communication(?: style)?|tone|uses|"
    r"adresse|anschrift|telefon(?:nummer)?|handy(?:nummer)?|dirección|domicilio|teléfono|móvil|téléphone|portable|"
    r"works at|lives in|schedule|profession|working hours|what to call (?:me|them|him|her)|"
    r"名字|姓名|时区|所在地|职业|身份|偏好|生日|语言|名前|"
    r"誕生日|職業|住所)\s*[:：]"
)
_NO_NAMES: Final = frozenset(
    """
    the this that these those there their they then than it its in on at as an a and or of for from with without by to
    into if when while where which who what how why some many most several all both each every any no not one two three
    such other others another here however thus also although because since after before during under over between among
    more less few new users user people students authors researchers scientists users' everybody everyone somebody
    someone nobody anybody nothing whoever figure table section chapter part name
    nutzer benutzer usuario usuaria utilisateur wenn falls sobald bei im cuando donde quand lorsque en
    """.split()  # noqa: SIM905
)
"""How sentences begin that no person's name begins."""
_NAMES_IN_S: Final = frozenset(
    """
    agnes agnès alexis alois amos anaïs anders andreas andris andrés angus aris barnabas bess boris carlos cees
    charles chris christos claus clovis costas curtis cyrus denis dennis denys dimitris dolores dorcas doris elias elvis
    frances francis frans françois georges georgios gijs gilles giorgos gladys gus hans hugues ignatius ines inés inês
    iris jacques james janis jens jess jesus jesús johannes jonas joris josias jules julius justus jānis kees klaas klaus
    konstantinos kostas kris lars laurens lewis linas linus lois louis lourdes lucas luis lukas lukás luís mads magnus marcos
    marcus marios maris marius markus mateus matheus mathias mathis matias mats matthias matías mees mercedes milos moises
    moisés moses myles nicholas nicolas nicolás nicos niels niklas nikolaos nikos nils otis owais panos petros philippos
    phyllis rasmus rens rhys ross rufus silas socrates spyros stavros stelios tess thaïs thijs thomas tobias tomas tomàs tomás
    travis ulises ulysses urs vasilis vilnis wes yanis yannis yves zacharias
    """.split()  # noqa: SIM905
)
"""Given names that end as plurals do."""

_WEAK_CLAIM: Final = re.compile(
    r"(?:(?P<name>[A-ZÀ-ÞА-Я][\w'’.-]*[a-zà-ÿа-я\d](?:['’]s (?:[a-z-]+ ){1,3}?)?(?: [A-ZÀ-ÞА-Я][\w'’.-]+)*)"
    r"(?: and [A-ZÀ-Þ][\w'’-]+)?"
    r"(?: \([^)]*\))? (?:(?:now|also|still|always|never|usually|only|both) )?"
    r"(?:(?:is|are|has|have|will|won['’]t|does|doesn['’]t|wants|live|work|(?!als\b|\w+tags\b)[a-z]{2,}(?<![sui])s)\b|had a )"
    r"|You(?:['’]re| are) my |I(?:['’]ll| will) |(?:Decision|Decided|Agreed)\b[^:]{0,24}: )"
)
"""What somebody or something is, has, will do or does as a rule: it counts only in a text that holds claims as well."""
_NAME_WITHIN: Final = re.compile(r"(?:(?<=[a-zà-ÿ\d,;&'’\"(/-] )|(?<=[(\"“]))[A-ZÀ-ÞА-Я][\w-]*[a-zà-ÿа-я\d]")
"""A word with a capital within a sentence."""
_LEAD: Final = re.compile(rf"(?:{DAY_PREFIX.pattern})?(?:(?:And|But|So|Also|Oh|PS),?:? )?")
"""A day and a conjunction, before a statement begins."""


def _is_weak_claim(statement: str, names: frozenset[str]) -> bool:
    """`names`: what is a name, and not only the first word of a sentence."""
    found = _WEAK_CLAIM.match(_without_lead(statement)) if is_readable(statement) else None
    if found is None or found["name"] is None:
        return found is not None
    first = re.split(r"['’ ]", found["name"])[0]
    return first.casefold() not in _NO_NAMES and (first in names or first != found["name"])


_PRONOUNS: Final = frozenset({"he", "she", "it", "they", "we", "you", "er", "sie", "es", "ella", "él", "il", "elle"})
_OF_PERSONS: Final = (_NAMED, HAS_DONE, OF_SOMEBODY)


def is_about_person(statement: str) -> bool:
    """Whether one statement, by its own words, is said by the user about themselves, or is about a person."""
    return (
        _ABOUT_ME.search(statement) is not None
        or ABOUT_SPEAKER.search(statement) is not None
        or _USER.match(statement) is not None
        or _names(_NAMED, statement)
        or _POSSESSIVE.match(statement) is not None
        or _PRONOUN.match(statement) is not None
        or _BARE.match(statement) is not None
        or _ATTRIBUTE.search(statement) is not None
    )


def is_first_person(statement: str) -> bool:
    """Whether the user says it of themselves."""
    return _SELF.search(statement) is not None or ABOUT_SPEAKER.search(statement) is not None


def person_of(statement: str, names: frozenset[str]) -> str | None:
    """The name, in lower case, of whom a statement tells what a person is or does; `names` as `names_within` gives them."""
    statement = _without_lead(statement)
    found = next((one for rule in _OF_PERSONS if (one := rule.match(statement)) is not None and one["name"]), None)
    if found is None and _is_weak_claim(statement, names):
        found = _WEAK_CLAIM.match(statement)
    return _name_in(found)


def certain_person(statement: str) -> str | None:
    """The name, in lower case, of whom a statement tells what nobody but a person is or does."""
    return _name_in(_NAMED.match(statement))


def _name_in(found: re.Match[str] | None) -> str | None:
    name = "" if found is None else (found["name"] or "").casefold()
    return name if name and name not in _PRONOUNS and _is_name(name) else None


def names_within(statements: Sequence[str]) -> frozenset[str]:
    """Words with a capital within a sentence, and who does what only a person does: what begins one as well is a name there,
    and not only its first word."""
    people = (found["name"].split()[0] for one in statements if (found := _NAMED.match(one)) and _is_name(found["name"]))
    return frozenset(_NAME_WITHIN.findall("\n".join(statements))) | frozenset(people)


def is_attribute(key: str) -> bool:
    """Whether a line `key: …` tells something of a person: a name, a time zone, a birthday."""
    return _ATTRIBUTE.search(f"{key}:") is not None


def _names(pattern: re.Pattern[str], statement: str) -> bool:
    """Whether a statement begins with what may be a person's name."""
    found = pattern.match(statement)
    return found is not None and _is_name(found["name"])


def _is_name(name: str) -> bool:
    first = name.split(maxsplit=1)[0].casefold()
    return first not in _NO_NAMES and (not name.endswith("s") or first in _NAMES_IN_S)


def _may_be_about_person(statement: str) -> bool:
    """In a text that is too short to be anything else."""
    return _GROUP.match(statement) is not None or _FIRST_PERSON.search(statement) is not None or _names(_ACTING, statement)


_STATES: Final = Caseless(
    r"\b(?:always|never|prefers?|preferred|likes?|loves?|hates?|dislikes?|uses?|wants?|needs?|requires?|avoids?"
    r"|works? (?:at|for|as|in|on|with)|lives? (?:in|at|with)|is|are|am|was|were|born|has|have|owns?|speaks?|studied|graduated"
    r"|married|allergic|means|stands for|called|named|runs?|writes?|manages?|leads?|reports? to|looks? after|responsible for"
    r"|goes to|comes on|costs"
    r"|decided|agreed|chose|chosen|settled on|committed to|must|stays?|favou?rite|birthday|timezone|expires?"
    r"|immer|nie|bevorzugt|mag|wohnt|arbeitet|heißt|ist|hat|entschieden|toujours|jamais|préfère|habite|travaille|est|décidé"
    r"|siempre|nunca|prefiere|vive|trabaja|es|tiene|decidió)\b|です|ます|する|是|喜欢|住在|总是|从不",
)
"""Words of a sentence that says that something is so."""
TECHNICAL_MAX: Final = 0.34
"""Of the statements of a longer text."""
NOTE_MAX_WORDS: Final = 150
NOTE_TECHNICAL_MAX: Final = 0.2
LISTED_MIN: Final = 0.8
"""Share of the statements of a list that are items: it is read like a short note, however long it is."""
_GOES_ON: Final = re.compile(r"^(?:She|He|They|Her|His|Their) \w")
"""A sentence about whom the one before it was about."""
_SINGLE_MAX: Final = 3
_SENTENCE_WORDS: Final = (2, 25)
_LONG_STATEMENTS: Final = 100
_ABOUT_MIN: Final = 0.05
"""Of a longer text: a diary speaks of other things most of the time."""


def is_claim(statement: str) -> bool:
    """Whether a statement, by its own words, claims something of the user, of a person or of a project."""
    if not is_readable(statement):
        return False
    statement = _without_lead(statement)
    return claim_of(statement) is not None or (is_meant(statement) and is_about_person(statement))


def _without_lead(statement: str) -> str:
    """From where it says something."""
    begins = _LEAD.match(statement)
    return statement if begins is None or not begins.end() else statement[begins.end() :]


def is_of_life(statement: str) -> bool:
    """What the user's household is or did for good, and turns of a life without a subject ("Sold the car")."""
    if not is_readable(statement):
        return False
    statement = _without_lead(statement)
    of_life = _WE.search(statement) is not None or TURN.match(statement) is not None or _names(HAS_DONE, statement)
    of_life = of_life or OF_SOMEBODY.match(statement) is not None or is_bare_german(statement) or says_what_is_over(statement)
    return of_life and is_meant(statement)


def worth_remembering(
    statements: Sequence[str],
    *,
    names: frozenset[str],
    listed: Sequence[bool],
    is_own: bool = False,
    is_journal: bool = False,
    are_pairs: bool = False,
) -> list[bool]:
    """For each statement of one text under the memory paths whether it is remembered. `listed`: an item, a `key: value` line.
    `is_own`: the file's name says that it is about the user (`memory.md`, `about-me.md`), so all its items are.
    `is_journal`: it tells of days; what only happened is passed over there, however short it is. `are_pairs`: it is a note
    of what somebody's network, servers or tools are like, and may be as technical as they are.

    Sentences are when they claim something of somebody. Items are in a short note, too: who writes "- Deploys run on
    Fridays" into a list in their memory means it to be remembered. A text about a subject (an article, a manual, a
    changelog) has none.
    """
    whole = " ".join(statements)
    count = len(statements)
    technical = _share(SPECIALIST, statements)
    if count > _LONG_STATEMENTS and technical > TECHNICAL_MAX:  # claims are dear, and a changelog has thousands of lines
        return [False] * count
    claims: list[bool] = []
    of_life: list[bool] = []
    for statement in statements:
        goes_on = bool(claims) and claims[-1] and _GOES_ON.match(statement) is not None and is_meant(statement)
        claim = goes_on or is_claim(statement)
        life = not claim and is_of_life(statement)
        claims.append(claim or (is_journal and life))
        of_life.append(life and not is_journal)
    said = sum(claims)
    if count > 1 and not is_own and is_explanatory(statements, listed, first_person=sum(map(is_first_person, statements))):
        return [False] * count
    if AUTHOR.search(whole) is not None and said < PERSONAL_SHARE * count and not is_own:
        return [False] * count
    is_short = len(whole.split()) <= NOTE_MAX_WORDS
    short = is_short and (sum(listed) * 3 >= count or count <= _SINGLE_MAX)
    is_note = (is_short or sum(listed) >= LISTED_MIN * count) and technical <= NOTE_TECHNICAL_MAX
    speaks = said + (sum(of_life) if is_note else 0)
    if is_own or speaks >= max(1.0 if is_note else 2.0, PERSONAL_SHARE * count):
        # "We" are the user's own, where the user speaks, and who is named there concerns the user.
        claims = [
            claim
            or (
                is_meant(text) and (life or (is_note and item) or _GROUP.match(text) is not None or _is_weak_claim(text, names))
            )
            for claim, life, item, text in zip(claims, of_life, listed, statements, strict=True)
        ]
        said = sum(claims)
    is_plain = (_share(TECHNICAL, statements) if count <= _SINGLE_MAX else technical) <= NOTE_TECHNICAL_MAX
    if is_own or (short and (is_plain or are_pairs)):
        return [
            claim
            or (
                is_meant(statement)
                and (item or (count <= _SINGLE_MAX and not said and not is_journal and _is_whole_sentence(statement)))
            )
            for claim, item, statement in zip(claims, listed, statements, strict=True)
        ]
    if said < max(1.0, _ABOUT_MIN * count) or (technical > TECHNICAL_MAX and said < PERSONAL_SHARE * count):
        return [False] * count
    is_authors = not (is_short or is_journal or any(map(_is_of_person, compress(statements, claims))))
    return [False] * count if is_authors else claims


def _is_of_person(statement: str) -> bool:
    """Whether it claims an attribute of somebody, and neither speaks to a reader nor of a program or a group's work."""
    is_theirs = all(one.search(statement) is None for one in (SAYS_WE, SAYS_YOU, SPECIALIST))
    return is_theirs and claim_of(statement) is not None


def _is_whole_sentence(statement: str) -> bool:
    """Whether it states something, or ends as a sentence of ordinary length: no title."""
    return _STATES.search(statement) is not None or (
        statement.endswith((".", "!"))
        and not statement.endswith(" .")
        and _SENTENCE_WORDS[0] <= len(statement.split()) <= _SENTENCE_WORDS[1]
    )


def _share(pattern: re.Pattern[str], statements: Sequence[str]) -> float:
    return sum(pattern.search(statement) is not None for statement in statements) / max(1, len(statements))


def personal(statements: Sequence[str], *, listed: bool) -> list[bool]:
    """For each statement of one text whether it may be remembered. All of them in a text about a person; none in one by an
    author about a subject. `listed`: the text is a list of notes, in which "we" are the user's own group, too."""
    whole = " ".join(statements)
    is_short = len(whole.split()) <= SHORT_MAX_WORDS
    technical = 0.0 if is_short else _share(SPECIALIST, statements)
    if not statements or AUTHOR.search(whole) is not None or technical > NOTE_TECHNICAL_MAX:
        return [False] * len(statements)
    about = sum(is_about_person(one) and is_meant(one) for one in statements)
    if listed or is_short:
        about += sum(map(_may_be_about_person, statements))
    elif not any(_is_of_person(one) or ABOUT_SPEAKER.search(one) for one in statements):
        return [False] * len(statements)  # ABOUT_SPEAKER: fewer attributes are known in other languages than English
    return [about >= max(1.0, PERSONAL_SHARE * len(statements))] * len(statements)


def states(said: str) -> bool:
    """Whether a sentence says that something is so, is about a person, or names a day."""
    return (
        _STATES.search(said) is not None or is_about_person(said) or claim_of(said) is not None or DATE.search(said) is not None
    )
