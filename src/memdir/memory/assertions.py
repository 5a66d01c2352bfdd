"""Whether a sentence asserts something: that it is so, now, and not as hearsay, in a story or as a question. English; other
languages by `claims_other_languages`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memdir.core.caseless import Caseless
from memdir.memory.claims_other_languages import LANGUAGES
from memdir.memory.relations import TRUSTED

_PREDICATE: Final = (
    r"(?!.*\?)(?:not |also |currently |very )?(?:allergic|married|engaged|vegan|vegetarian|based|from|"
    r"(?:[a-z-]+ly )?(?!\w*thing\b)[a-z]{2,}ing|"
    r"an? (?![\w-]+(?: [\w-]+)? (?:needed|required|worth|enough|possible|ok))[\w-]+)\b"
)
"""What follows "is" and "does" in a statement without a subject ("Is allergic to nuts"), and in no question."""
_NOT_MEANT: Final = re.compile(
    r"[?:]\s*$|^\([a-z]\) |^(?![\w ’']{1,40}: \S|(?:when|where)\b[^?]{3,80}, (?:I|we|my)\b)(?:if|maybe|perhaps|suppose|"
    rf"imagine|should(?! (?:always|never)\b)|would|could|can(?!['’]t\b)|do(?! not\b)|(?:does|did|is)(?! {_PREDICATE})|are|what|"
    r"who|why|how|when|where|whether)\b|"
    r"\b(?:(?<!that )(?<!which )(?<!who )(?<!user )would|might|maybe|perhaps|wonder|no idea|not sure|pretend|"
    r"dream(?:ed|t)? (?:of|that)|wish|if "
    r"only|one day|someday|(?<!get )(?<!ting )(?<!got )(?<!am )used to|(?:almost|nearly) (?:\w+ed|bought|left|quit|took|got|"
    r"went))\b|"
    r"\b(?-i:may) (?:be|have|mean|well)\b",
    re.IGNORECASE,
)
"""Asked, supposed, a clause of a licence, or no longer so."""
_RULE: Final = re.compile(
    r"(?:if|when(?:ever)?|where(?:ver)?|once|unless|in case)\b[^?,:]{2,80}, (?:then |please )?(?=\w)", re.IGNORECASE
)
"""The condition before what is to be done: "When in doubt, ask"."""
_OTHERS: Final = re.compile(
    r"\baccording to\b|\b(?:the|an?|this|that|some|one) (?:article|brochure|leaflet|newspaper|novel|film|movie|book|story|"
    r"study|paper|author|show|song|advert\w*|rumou?r|legend|character)\b[^.]*\b(?:says?|said|claims?|writes?|tells?|shows?|"
    r"was|is|about|who|that|a|found)\b|\bresearchers? (?:found|say|show)|\b(?:allegedly|supposedly|reportedly|they say|"
    r"people say|it is said|(?:likes|liked) to joke|jok(?:ed|es|ing) that|just kidding)\b|"
    r"(?:^|, )in (?:my|an?|the|this|that) (?:dreams?|nightmare|(?:video )?game|novel|film|movie|book|story|series|play|song|"
    r"role-?play|simulation|scenario|example|exercise),? (?:I|my|we|our|the user|an?|the|(?-i:[A-Z]\w+))\b|"
    r"\bmy (?:character|avatar|protagonist)\b|"
    r"\b(?:some(?:one|body)(?: (?:on|from|in) \w+| online)?|strangers?|commenters?|anonymous|the internet|it)(?: here)? "
    r"(?:says?|said|tells?|told|claims?|claimed|writes?|wrote|thinks?|thought|believes?|posted|tweeted)\b|"
    r"^(?:[\w' -]+ )?(?:sign|lyrics?|quotes?|quotation|translate|translation|examples?|example sentence|test|fake news|"
    r"rumou?rs?|gossip|spam|scene|chapter|plot|headline|caption|joke|meme|song|poem|fiction|role-?play|template|sample|placeholder|dummy)"
    r"(?: of the \w+)?: |"
    r"^(?:copied|pasted|read|found(?! out)|from|seen|heard|overheard|quoted?|excerpt)\b[^:]{0,60}: (?=I\b|my\b|we\b|our\b)|"
    r"(?:sagte|sagt|meinte|schrieb|dit|écrit|écrivait|dijo|dice|escribió) ?:? ?[\"“„«]|"
    r"(?:^|, )im (?:traum|film|roman|spiel|buch)\b|\b(?:roman|film|buch|geschichte|serie)\b.*\b(?:handelt|spielt|erzählt)\b|"
    r"(?:^|, )(?:dans (?:le|un) (?:rêve|film|roman|jeu|livre)|en (?:el|un) (?:sueño|película|novela|juego|libro))\b",
    re.IGNORECASE,
)
"""Said by, or of, somebody who is not around the user."""
_QUOTED: Final = re.compile(
    r"^\s*[\"“„«‘]|^(?!\s*(?:I|We|My|Our)\b)[^\"“„«]*[\"“„«][^\"“”„«»]*\b(?:I|[Mm]y|[Ww]e|[Oo]ur|[Ii]ch|[Mm]eine?|[Jj]e|[Jj]['’]|"
    r"[Mm]on|[Yy]o|[Mm]i)\b"
)
"""It is a quotation, or quotes somebody who speaks of themselves."""
_REPORTED: Final = re.compile(
    r"^(?:[A-Z]\w+ly,? )?(?P<who>(?:[Mm]y|[Oo]ur|[Tt]he|[Aa]n?|[Tt]his|[Tt]hat|[Ss]ome|[Oo]ne|[Aa]nother)(?: [\w'’-]+){1,7}?|"
    r"Facebook|LinkedIn|Google|Wikipedia|Siri|Alexa|ChatGPT|YouTube|Instagram|Twitter|Reddit|Amazon|TikTok) "
    r"(?:says?|said|tells?|told|claims?|claimed|writes?|wrote|reads?|thinks?|thought|believes?|believed|predicts?|predicted|"
    r"suggests?|suggested|insists?|insisted|states?|stated|asks?|asked|shouted)(?: me| us)?(?: (?:that|whether|if))?[,:]? "
    r"(?:I|[Mm]y|[Ww]e|[Oo]ur|the user)\b"
)
"""What somebody or something is told to say of the user."""
OPINION: Final = re.compile(
    r"(?:not )?an? (?:\w+ly |very |quite )?(?:good|great|bad|nice|fine|terrible|awful|interesting|excellent|funny|fair|valid) "
    r"(?:one|idea|thing|point|question)",
    re.IGNORECASE,
)
"""What is said of somebody's suggestion, and tells nothing of them."""
AUTHOR: Final = Caseless(
    r"\b(?:this|the present|our|my) (?:paper|study|article|essay|volume|report|work|thesis|monograph|survey|investigation|"
    r"research)\b"
    r"|\b(?:in )?this (?:chapter|section|book|document|manual|page|tutorial|package|release|version|issue)\b|\bthe authors?\b"
    r"|\bchapter \d|\babstract\b|\bet al\b|\breferences?\b|\bhypothes[ie]s\b|\bexperiments? (?:show|were)\b"
)
"""What an author says of their own text."""
SAYS_WE: Final = re.compile(r"\b(?:[Ww]e|[Oo]urs?)\b")
"""A group speaks, or an author for their readers, too."""
_MARKS: Final = (
    r"https?://|\bwww\.|(?<![\d.])(?!\d{1,3}(?:\.\d{3})+(?![.\d])|\d{1,2}\.\d{1,2}\.(?:\d\d){1,2}(?![.\d]))\d+\.\d+(?:\.\d|-\d|\d{2})|"
    r"\b0\.\d|(?i:version|release|new in|since) v?\d+\.\d|"
    r"\b[Cc]opyright\b|\([cC]\)|©|\b[Cc]loses?: ?#|#\d{2,}|\bCVE-|"
    r"(?:^|\s)--?\w|"
    r"\w\(\d?\)|\w_\w|::|/(?:usr|etc|var|lib|bin|dev|proc)\b|\.(?:so|h|c|cc|cpp|py|js|gz|html?|conf|txt|md)\b|[{}<|\\]|(?<!-)>|"
    r"\b[0-9a-f]{7,}\b"
)
TECHNICAL: Final = re.compile(_MARKS)
SPECIALIST: Final = re.compile(
    _MARKS + r"|\b[A-Z][A-Z_]{4,}\b|\b(?:licen[cs]e|warranty|upstream|maintainer|debian|gnu|compiler|library|API|module|"
    r"package|option|default|argument|parameter|function|command|daemon|kernel|patch|bugfix|release)\b"
)
"""What stands in manuals, changelogs and licences, and seldom in what people note about their lives; the words are of a
person's own work, too, and count in longer texts only."""


def is_meant(statement: str) -> bool:
    """Whether it says that something is so, now, or is to be done, and not what others say."""
    rule = _RULE.match(statement)
    is_rule = rule is not None and begins_with_imperative(statement[rule.end() :])
    if (not is_rule and _NOT_MEANT.search(statement)) or _OTHERS.search(statement) or _QUOTED.match(statement):
        return False
    reported = _REPORTED.match(statement)
    if reported is not None and TRUSTED.isdisjoint(reported["who"].casefold().split()):
        return False
    return not any(one.marks.search(statement) and one.not_meant.search(statement) for one in LANGUAGES)


_EXPLAINS: Final = re.compile(
    r"^(?:(?:An?|Any|Every|Each) [\w-]+(?: [\w-]+)? (?:\([^)]*\) )?"
    r"(?:that|which|whose|can|consists|means|refers|is (?:an?|the|any|[\w-]+ (?:when|if|iff))\b)|Direct |All others?\b|"
    r"This (?:type|kind|sort|means|is (?:an?|the|called))\b|The (?:idea|concept|term|notion) |"
    r"(?:E\.g\.|For example|In other words|Note that|Recall)\b|An aspect\b|(?:Let|Given) \$)|"
    r"\b(?:is|are) (?:defined|known) (?:as|by)\b|\bconsists? of\b|\brefers? to\b|\$[^$\n]*[\\^_{}][^$\n]*\$"
)
SAYS_YOU: Final = re.compile(r"\b[Yy]ou(?:r|['’]re|['’]ll)?\b")
_EXPLAINS_SHARE: Final = 1 / 3
"""Of a text's statements."""
_EXPLAINS_PER_OWN: Final = 3
"""So many of them at least for each statement that the writer makes of themselves."""


_IMPERATIVES: Final = frozenset(
    """
    add always annotate answer ask assign automate avoid back batch book build bump buy cache call catch change check choose
    clean close collect comment commit compare configure convert copy create cut declare define delete deploy describe
    design disable do document don't download drop edit enable encrypt ensure escape expect explain export extract fail feed
    fetch finish fix follow format generate get give group handle hash hide hold ignore implement import include indent
    inject install invite isolate keep label lead leave limit link lint list load localize log look maintain make measure
    merge migrate minimize mock monitor move name never note only open optimize order organize outline pack paginate parse
    pass pay pick pin plan plant prefer prefix prepare print profile propose protect provide publish pull push put quote
    raise read rebase record reduce refactor refer reject release remember remove rename replace replicate report request
    require reset resolve restart return reuse review rotate round run sanitize save scan schedule scope see send separate
    serve set share ship show sign simplify skip sort specify split squash start state stick stop store structure submit
    support switch tag take target teach tell test throw tie time trace track translate treat trim try turn type update
    upload use validate verify version wait wash watch water wrap write
    """.split()  # noqa: SIM905
)
"""Verbs with which rules and tasks begin: "Squash commits before merging"."""
_VERB_AND_OBJECT: Final = re.compile(
    r"\w+ [a-z]{2,}s(?:,|$| (?:with|in|to|before|after|from|for|on|at|over|by|into|and|or|as|when|until)\b)"
)
"""A verb and a plural: "Vet versions in the lock file", where "Ana vets versions" has a name and a verb."""


def begins_with_imperative(statement: str) -> bool:
    """Whether its first word is a verb in the imperative and nobody's name: a guess, for texts in which nothing else tells."""
    return statement.split(maxsplit=1)[0].casefold() in _IMPERATIVES or _VERB_AND_OBJECT.match(statement) is not None


def is_explanatory(statements: Sequence[str], listed: Sequence[bool], *, first_person: int) -> bool:
    """Whether a text explains a subject and is about nobody: so many of its statements say what a thing is ("An agent which
    …", "All others are called …"), or say "you" where they are not `listed`, and few are the writer's (`first_person`)."""
    explain = sum(
        _EXPLAINS.search(statement) is not None or (not item and SAYS_YOU.search(statement) is not None)
        for statement, item in zip(statements, listed, strict=True)
    )
    return explain >= max(1.0, _EXPLAINS_SHARE * len(statements), _EXPLAINS_PER_OWN * first_person)


_SENTENCE_MIN_WORDS: Final = 4
_IS_SO: Final = re.compile(r" (?:is|are|was|were|has|have) ")


def is_sentence(line: str) -> bool:
    """Whether a line says something, and is no name, title, address or number."""
    words = [plain for word in line.split() if (plain := word.lstrip("(\"'“")) and plain[0].isalpha()]
    small = sum(word[:1].islower() for word in words)
    return 2 * small >= max(len(words), _SENTENCE_MIN_WORDS) or _IS_SO.search(line) is not None
