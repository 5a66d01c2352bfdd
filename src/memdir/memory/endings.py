"""What a statement says is over ("Sold the Skoda", "the damp is fixed", "no more piano lessons"), and which facts that ends:
those that tell of the same thing in the same words. Pure; English.

What a statement replaces by naming the former value of an attribute is for `memory.claims`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice, takewhile
from typing import Final

from memdir.memory.aspects import has_several, is_home, key_and_value
from memdir.memory.assertions import is_meant
from memdir.memory.change_words import INSTEAD, LEAVES_WORK, Kind, is_for_now, listed, patterns, root, told_by
from memdir.memory.change_words_other_languages import OTHER_LANGUAGES, ChangeWords
from memdir.memory.claims import is_readable, speaker_and_words
from memdir.memory.dates import WEEKDAY
from memdir.memory.relations import FAMILY, in_full
from memdir.memory.states import FILLERS, State, is_excluded, states_of
from memdir.memory.tasks import done_in, is_done, object_of, task_of
from memdir.memory.tools import Switch, is_replaced, switches, tools_of
from memdir.store.text.words import stem, words

_KNOWN: Final = 32_768
WORDS_MAX: Final = 24
"""Of a fact, the first ones."""
_WORDS_FOR_ONE: Final = 4
"""A fact that says more words for each one of what is over only mentions it."""
_CHANGED: Final = re.compile(
    r"\b(?:now|no longer|any ?more|these days|nowadays|from (?:now|next \w+) on|"
    rf"from {WEEKDAY}(?! ?(?:to|until|till|through|[–-])\b)|again|(?:my|our|the) new|down to|up to|only|"
    r"as of|(?:moved|switched|changed) to|going forward|"
    r"since (?:last|this|yesterday|[A-Z]\w+day)|for (?:weeks|months)|from this \w+(?: on)?|starting (?:next|this|in|from|"
    r"on))\b",
    re.IGNORECASE,
)
"""Words of a statement that says how something is after it changed."""
_HAS_VALUE: Final = re.compile(r"\b(?:is|are|takes?|costs?|has|have|pays?|gets?|starts?|ends?|due|expires?|opens?|closes?)\b")
_WORDS_FOR_ONE_TOLD: Final = 6
"""The same, of a fact whose words tell more than that."""
_MISSES_ONE: Final = 4
"""Words of what is over of which a fact may lack one."""
_ACCOUNTS: Final = listed("account subscription membership shop app spot slot seat offer")
"""What need not be said of it."""
_VERB: Final = re.compile(
    r" (?:is|are|was|takes?|costs?|lasts?|starts?|ends?|begins?|opens?|closes?|leaves?|departs?|arrives?|weighs?|expires?|"
    r"lives?)\b"
)
_SAYS_WHERE: Final = re.compile(
    r" (?:is|are|was|lives?) (?:now |still )?(?:in|on(?! \w+days?\b)|at(?! \d)|near|behind|next to|under|above|below|opposite|"
    r"by|across|around|with|between|inside|outside|upstairs|downstairs|home|here|there|[A-Z])"
)
"""From the verb on."""
_OF_SUBJECT: Final = frozenset({"place", "owned", "value"})
"""Kinds of facts whose subject is what is spoken of."""
_SOMEBODY: Final = re.compile(r"(?:My |Our )(?P<who>[a-z-]+) [a-z]")
_HABITS: Final = frozenset({"not doing", "liking", "disliking"})
_BY_NAME: Final = re.compile(
    r"(?P<who>[A-ZÀ-Þ]\w+) (?:has|is|now|started|stopped|began|resumed|took|got|gave|went|quit|"
    r"likes|loves|hates|drinks|eats|plays)\b"
)
_THEIRS: Final = re.compile(r"\b(?:her|his|their) $")
_NOTED: Final = frozenset({"anything", "trouble", "not doing", "time", "size", "role", "name"})
_NOTED_MAX_CHARS: Final = 200
_MOVED: Final = re.compile(r"\b(?:moved|changed|switched)\b")
"""What may be said of a place or a tool as well as of a time: `memory.claims` and `memory.personal` know them."""
_SAME: Final = 0.5
"""Jaccard, of the words of two statements but for quantities, from which they are about the same."""
_SAME_BEGINNING: Final = 3
"""Words with which two statements begin that say the same of two things."""
_WORD: Final = re.compile(r"[\w'’]+")
_CALLED: Final = re.compile(r"\b(?:called|named)\b")
_SAME_MIN: Final = 2
"""Words in common; where there are fewer, all must be."""
_WHAT_IS_THEIRS: Final = re.compile(r"[A-ZÀ-Þ]\w+ (?:her|his|their) (.+)")
"""What somebody got, who is named and is not over: "gave Priya her 40 euros back"."""
_SWITCHED: Final = re.compile(r"\b(?:turned|switched|shut) (?:.* )?(?:off|down)\b", re.IGNORECASE)
_FOR_A_WHILE: Final = re.compile(
    r"\bfor (?:the|an?|one|two) (?:night|day|evening|weekend|hour|week|while|minute)s?\b|\b(?:before|tonight|during|at night)\b"
)
_ANOTHER: Final = re.compile(r"\w+ (number|appointment|insurance|password|address|birthday)s?\b", re.IGNORECASE)
"""What belongs to a thing and is not over with it."""
_THIS_TIME: Final = re.compile(
    r"\b(?:today|tonight|tomorrow|this (?:week|morning|afternoon|evening|month|time|year))\b", re.IGNORECASE
)
_ONE_TIME: Final = re.compile(_THIS_TIME.pattern + r"|\b(?:tried|had|made|ate|went|took|got|bought|\w+ed)\b", re.IGNORECASE)
_RECURRING: Final = re.compile(
    r"\b(?:every|each|daily|weekly|monthly|yearly|\w+days|usually|mostly|often|stand-?ups?)\b|"
    r"^(?:I|we|\w+ and I) (?:take|play|go|do|run|ride|attend|train|practi[cs]e)\b",
    re.IGNORECASE,
)
_ONCE: Final = listed("""
    meeting call dinner lunch breakfast appointment flight trip session party visit order date class standup
""")
"""What is cancelled for one day, and is held the next time."""
_OF_FILE: Final = re.compile(r"^[^:–]{1,40} – ")
"""Whom a line is about, where its words do not tell."""
_OF_RELATIVE: Final = re.compile(
    r"(?P<who>(?:My|Our) (?!team|company|firm|family|group|office)[a-z-]+ )(?:works|drives|owns|uses|rides|plays|goes|lives|"
    r"studies|likes|loves)\b"
)
_OF_KIN: Final = re.compile(
    rf"(?:.{{2,40}} is (?:my|our) {FAMILY}\W*|(?:[Mm]y|[Oo]ur) {FAMILY} (?:is|['’]s) (?:called |named )?"
    r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?\W*)$"
)
"""Who is of the family, or a friend: so wherever they move to."""
_DIED: Final = re.compile(r"\b(?:died|dead|passed away)\b")
_QUANTITIES: Final = listed("""
    second third fourth fifth sixth one three four five six seven eight nine ten eleven twelve twenty thirty forty fifty
    sixty seventy eighty ninety hundred thousand half
    minutes hours days weeks months years euros dollars pounds kr only about down now longer anymore again new instead moved
    changed switched well badly better worse poorly takes costs has pays gets starts due is back still daily weekly monthly
    early late
""")
_TIMES: Final = listed("""
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun monday tuesday wednesday thursday
    friday saturday sunday day week month year today yesterday tomorrow morning evening night ago last next end finally now
    just already really
""")
_IGNORED: Final = FILLERS | frozenset(
    {"called", "named", "got", "mr", "mrs", "ms", "dr", "prof", "user", "every", "each", "yrs", "kr"}
)
"""Words that tell nothing, or whose stems are nouns that tell something else."""
_VAGUE: Final = listed("""
    thing stuff work job go going do doing use using take taking get make live eat drink one two three first much many lot
    more less new old good way part home place read watch listen talk look
""")
"""What tells nothing of what is over when it stands alone."""
_OWNS: Final = re.compile(
    r"\b(?:own(?:s|ed|er)?|maintain(?:s|ed|er)?|lead(?:s|er)?|led|manage[sdr]?|head(?:s|ed)?|run(?:s|ning)?|handles?|"
    r"looks? after|responsible|in charge|contact)\b",
    re.IGNORECASE,
)
"""Whose a thing is that somebody answers for."""
_NOT: Final = re.compile(r"\b(?:not|no longer)\b|n['’]t\b")
_ITEM_ENDS: Final = re.compile(r"[,;/&]| (?:and|und|y|et) ")
_LEFT_EACH_DAY: Final = listed("""
    haus büro tür fenster arbeit casa oficina puerta ventana trabajo maison bureau porte fenêtre travail
""")
"""What is left or closed every day, and not over with that."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Stems of what is over, and which `kind` of facts it ends (`change_words`). `needs_all`: only where nothing else is said.
    `state`: of the kind `state`, the one that excludes others. `switch`: of the kind `tool`. `said`: the clause; `whole`: the
    statement, of the kind `made`. `verb`: of the kind `value`, which both must have."""

    stems: frozenset[str]
    kind: Kind
    is_for_once: bool = False
    needs_all: bool = False
    state: State | None = None
    switch: Switch | None = None
    said: str = ""
    whole: str = ""
    verb: str = ""
    done: frozenset[str] = frozenset()
    """Of the kind `done`, the roots that the verb of what was to be done may have."""
    language: ChangeWords | None = None
    """Of another language than English, with what facts must tell of: `tells`."""
    tells: re.Pattern[str] | None = None

    @property
    def topics(self) -> frozenset[str]:
        """Of `word_topics`, by which such facts are looked up."""
        if self.needs_all:
            return frozenset({_all_of(self.stems)})
        if self.kind in {"the same", "done"}:
            return self.stems
        telling = sorted(self.stems - _ACCOUNTS or self.stems, key=lambda one: (-len(one), one))
        return frozenset(telling[: 1 if len(self.stems) < _MISSES_ONE else 2])


@lru_cache(maxsize=_KNOWN)
def endings_of(statement: str) -> tuple[Ending, ...]:
    """What a statement says is over; empty for one that asks or supposes."""
    _, statement = speaker_and_words(statement)
    if not is_readable(statement) or not is_meant(statement):
        return ()
    found = list(_told(statement, patterns()))
    found += [Ending(frozenset({_of(state)}), "state", state=state, said=statement) for state in states_of(statement)]
    found += [Ending(frozenset({_of_kind(one.kind)}), "tool", switch=one, said=statement) for one in switches(statement)]
    found += [
        Ending(stems, "done", done=verbs, said=statement)
        for verbs, what in done_in(statement)
        if (stems := stems_of(what) - _VAGUE)
    ]
    changed = _CHANGED.search(statement)
    for said in dict.fromkeys((statement, statement if changed is None else _clause_at(statement, changed.start()))):
        about = _about(said)
        if (about - _VAGUE and changed) or (len(about) >= _SAME_MIN and _HAS_VALUE.search(said)):
            found.append(Ending(about, "the same", needs_all=changed is None, said=said))
    return (*found, *_told_in_other_languages(statement))


def _told_in_other_languages(statement: str) -> Iterator[Ending]:
    """The same in other languages."""
    for language in OTHER_LANGUAGES:
        if language.marks.search(statement) is None or language.not_meant.search(statement):
            continue
        for pattern, tells in language.rules():
            for match in pattern.finditer(statement):
                stems = stems_of(_said_of(match)) - language.ignored
                if stems - _LEFT_EACH_DAY:
                    yield Ending(stems, "anything", language=language, tells=tells)
        about = _about(statement) - language.ignored
        if about and language.changed.search(statement):
            yield Ending(about, "the same", said=statement, language=language)


def _is_ended_in(fact: str, ending: Ending, language: ChangeWords) -> bool:
    stems = stems_of(_OF_FILE.sub("", fact)) - language.ignored
    if ending.kind == "the same":
        both = stems & ending.stems
        return bool(both) and len(both) >= _SAME * len((stems - _QUANTITIES) | ending.stems)
    if not _are_within(ending.stems, stems) or len(stems) > _WORDS_FOR_ONE * len(ending.stems):
        return False
    if ending.tells is not None:
        return ending.tells.search(fact) is not None
    return language.negated.search(fact) is None and not _is_one_of_several(fact, ending)


def _clause_at(statement: str, at: int) -> str:
    start = max(statement.rfind(mark, 0, at) for mark in ",;:") + 1
    ends = [end for mark in ",;:" if (end := statement.find(mark, at)) >= 0]
    return statement[start : min(ends, default=len(statement))].strip()


def _told(statement: str, patterns: Sequence[tuple[Kind, re.Pattern[str]]]) -> Iterator[Ending]:
    for kind, pattern in patterns:
        if pattern is INSTEAD and _ONE_TIME.search(statement):
            continue
        for match in pattern.finditer(statement):
            stems = stems_of(_said_of(match)) - _VAGUE - _QUANTITIES
            is_cancelled = "ancel" in match[0]
            if _SWITCHED.search(match[0]) and _FOR_A_WHILE.search(statement):
                continue
            if is_for_now(statement, match) or (match[0].endswith("retired") and states_of(statement)):  # from work
                continue
            is_of_work = kind == "anything" and LEAVES_WORK.search(match[0]) is not None
            if kind == "anything" and (theirs := _WHAT_IS_THEIRS.search(match[0])) and not stems_of(theirs[1]) - _QUANTITIES:
                continue
            if stems and not (is_cancelled and _THIS_TIME.search(statement)):
                stems |= _owner_of(statement, match, kind)
                verb = stem(match[0].rpartition(" ")[2]) if kind == "value" else ""
                is_off = match[0].endswith(("ancelled", "anceled", "called off"))  # of itself: today
                yield Ending(
                    stems, "post" if is_of_work else kind, is_for_once=is_off or (is_cancelled and bool(stems & _ONCE)),
                    said=match[0], verb=verb, whole=statement if kind in {"made", "place"} else "",
                )  # fmt: skip


def _said_of(match: re.Match[str]) -> str:
    """The group that matched."""
    return next((one for one in match.groups() if one), "")


def _owner_of(statement: str, match: re.Match[str], kind: Kind) -> frozenset[str]:
    """Whose it is, where that is not the user: "My sister sold her car"; of habits who is named first."""
    named = _BY_NAME.match(statement) if kind in _HABITS else None
    if named is not None:
        return stems_of(named["who"])
    start = next(match.start(at + 1) for at, one in enumerate(match.groups()) if one)
    owner = _SOMEBODY.match(statement)
    is_theirs = owner is not None and _THEIRS.search(statement, 0, start) is not None
    return stems_of(owner["who"]) if owner is not None and is_theirs else frozenset()


def may_end(statement: str) -> bool:
    """Whether something may be over by what a statement says happened."""
    return len(statement) <= _NOTED_MAX_CHARS and any(ending.kind != "the same" for ending in endings_of(statement))


def says_what_is_over(statement: str) -> bool:
    """Whether it is worth remembering for that alone; what is finished, bought or paid passes."""
    if len(statement) > _NOTED_MAX_CHARS or not is_readable(statement) or not is_meant(statement):
        return False
    return any(ending.kind != "time" or _MOVED.search(statement) is None for ending in _told(statement, _noted()))


@cache
def _noted() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    return tuple(one for one in patterns() if one[0] in _NOTED)


@lru_cache(maxsize=_KNOWN)
def stems_of(text: str) -> frozenset[str]:
    """Of its words that tell something: no stop words, numbers, days or months; at most WORDS_MAX."""
    telling = (in_full(word) for word in words(text) if word not in _IGNORED and len(word) > 1 and not word[0].isdigit())
    return frozenset(islice((one for one in map(root, telling) if one not in _TIMES), WORDS_MAX))


def word_topics(fact: str) -> frozenset[str]:
    """Its words, all that it is about as one, and the families of the states that it tells of."""
    _, fact = speaker_and_words(fact)
    families = {_of(state) for state in states_of(fact)} | {_of_kind(tool.kind) for tool in tools_of(fact)}
    return stems_of(fact) | {_all_of(_about(fact))} | families


def _of(state: State) -> str:
    return f": {state.family}"


def _of_kind(tool: str) -> str:
    return f": one {tool}"


def _all_of(stems: frozenset[str]) -> str:
    return " ".join(("=", *sorted(stems)))


def is_ended(fact: str, ending: Ending) -> bool:
    """Whether a fact tells of what is over, and of hardly anything else."""
    _, fact = speaker_and_words(fact)
    if ending.language is not None:
        return _is_ended_in(fact, ending, ending.language)
    if ending.switch is not None:
        return is_replaced(fact, ending.switch)
    if ending.state is not None:
        return is_excluded(fact, ending.state, ending.said)
    if ending.kind == "done":
        return _is_done(fact, ending)
    return _is_about_the_same(fact, ending) if ending.kind == "the same" else _is_over(fact, ending)


def _is_done(fact: str, ending: Ending) -> bool:
    """Whether a fact is a task that is done: what was done is of it, or the reverse; one word only where it is the first."""
    task = task_of(fact)
    if task is None or not is_done(task, ending.done) or _RECURRING.search(fact):
        return False
    wanted, first = stems_of(task.what) - _VAGUE, stems_of(" ".join(task.what.split()[:2])) - _VAGUE
    if len(ending.stems) == 1 < len(wanted):
        return ending.stems == stems_of(object_of(task.what)) or ending.stems == first
    what = stems_of(object_of(task.what))
    is_for_another = bool(wanted - what) and bool(ending.stems - what) and (wanted - what).isdisjoint(ending.stems)
    return bool(wanted) and not is_for_another and (ending.stems <= wanted or what <= ending.stems)


def _is_over(fact: str, ending: Ending) -> bool:
    stems, subject = stems_of(_OF_FILE.sub("", fact)), _subject_of(fact)
    most = (_WORDS_FOR_ONE if ending.kind == "anything" else _WORDS_FOR_ONE_TOLD) * len(ending.stems)
    if (
        not _are_within(ending.stems, stems)
        or len(stems - _QUANTITIES) > most * (1 + (subject == ending.stems))
        or (ending.kind == "anything" and (kin := _OF_RELATIVE.match(fact)) and not ending.said.strip().startswith(kin["who"]))
        or (_OF_KIN.match(fact) and _DIED.search(ending.said) is None)
    ):
        return False
    if ending.kind in _OF_SUBJECT:
        return subject == ending.stems and _has_its_value(fact, ending)
    if _is_one_of_several(fact, ending):
        return False
    if _is_beside(fact, subject, ending):
        return False
    if ending.is_for_once and (_RECURRING.search(fact) or not _share_a_word(fact, ending.said)):
        return False
    if ending.kind != "anything":
        return told_by(ending.kind).search(fact) is not None
    negated = told_by("not doing").search(fact)
    if (another := _ANOTHER.search(fact)) and root(another[0].split()[0]) in stems and root(another[1]) not in ending.stems:
        return False
    return negated is None or bool(stems_of(negated[0]) & ending.stems)


def _has_its_value(fact: str, ending: Ending) -> bool:
    """Whether a fact tells where something is, or whatever else is no longer so. Who has another desk lives where they did."""
    verb = _VERB.search(fact)
    if verb is None or (ending.kind == "value" and stem(verb[0].strip()) != ending.verb):
        return False
    is_moved_within = verb[0].startswith(" live") and not is_home(ending.whole.rpartition(" to ")[2].rstrip(".! "))
    return ending.kind != "place" or (_SAYS_WHERE.match(fact, verb.start()) is not None and not is_moved_within)


def _is_beside(fact: str, subject: frozenset[str], ending: Ending) -> bool:
    """Whether a fact tells something else of it: "Ledger runs on Postgres now" says nothing of the language that it is written
    in, "Ana owns Ledger now" nothing of either."""
    if ending.kind == "role":
        return _OWNS.match(ending.said) is not None and _OWNS.search(fact) is None
    if ending.kind != "made":
        return False
    kinds, others = ({one.kind for one in tools_of(text)} for text in (fact, ending.whole))
    return (bool(subject) and subject != ending.stems) or (bool(kinds and others) and kinds.isdisjoint(others))


def _share_a_word(fact: str, said: str) -> bool:
    """As it stands, or in the plural: what is cancelled for once is a thing, and not what is done ("train", "training")."""
    singular, other = ({word.removesuffix("s") for word in words(text)} - FILLERS for text in (fact, said))
    return bool(singular & other)


def _is_about_the_same(fact: str, ending: Ending) -> bool:
    about, named = _about(fact), _BY_NAME.match(ending.said)
    if named is not None and not stems_of(named["who"]) <= about:
        return False
    if ending.needs_all:
        return about == ending.stems
    if _NOT.search(ending.said) and any(_is_one_of_several(fact, ending, word) for word in ending.stems):
        return False
    return about - _VAGUE == ending.stems - _VAGUE or (
        len(about & ending.stems) >= max(_SAME_MIN, _SAME * len(about | ending.stems)) or _begin_alike(fact, ending.said)
    )


def _begin_alike(fact: str, said: str) -> bool:
    """Whether two short statements differ in how they end only: "I mostly cook …"."""
    if _CALLED.search(fact) and not _CALLED.search(said):
        return False
    one, other = _WORD.findall(fact.casefold()), _WORD.findall(said.casefold())
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    is_short = max(len(one), len(other)) - same <= _SAME_BEGINNING + 1
    return same >= _SAME_BEGINNING and is_short and bool(stems_of(" ".join(one[:same])) - _VAGUE)


def _are_within(stems: frozenset[str], fact: frozenset[str]) -> bool:
    """Whether a fact has the words, but for one of four and for what the rest of them tells as well."""
    missing = stems - fact - (_ACCOUNTS if stems - _ACCOUNTS else frozenset())
    return len(missing) <= (len(stems) >= _MISSES_ONE)


def _subject_of(fact: str) -> frozenset[str]:
    """Stems of what stands before its verb."""
    verb = _VERB.search(fact)
    return frozenset() if verb is None else stems_of(_OF_FILE.sub("", fact)[: verb.start()])


def _about(text: str) -> frozenset[str]:
    """Stems of what a statement is about, without how much, how long or when."""
    return stems_of(text) - _QUANTITIES


def _is_one_of_several(fact: str, ending: Ending, named: str = "") -> bool:
    """Whether the fact tells of others beside it: "two cats, Miso and Kuma", "Allergies: nuts, penicillin"; beside what is
    `named`, a stem, else the longest."""
    pair = key_and_value(fact)
    if pair is not None and has_several(pair[0]):
        items = [stems_of(item) for item in _ITEM_ENDS.split(pair[1])]
        return any(item and item.isdisjoint(ending.stems) for item in items)
    last = named or max(ending.stems, key=len)
    return (
        re.search(rf"\band (?:the |my |our )?{last}|{last}\w* and [A-ZÀ-Þa-zà-þ]|, {last}\w*,", fact, re.IGNORECASE) is not None
    )
