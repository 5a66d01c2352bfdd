"""What kind of text a document is (a note, a journal, minutes, a letter, a conversation), whom it is about, and which of its
statements are worth remembering. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain, compress
from typing import Final

from memdir.core.caseless import Caseless
from memdir.memory.agent_sessions import candidates_in
from memdir.memory.appointments import appointment_day
from memdir.memory.assertions import SPECIALIST, begins_with_imperative, is_meant, is_sentence
from memdir.memory.assistants import as_list, claude_code_type, is_memory, is_of_assistant
from memdir.memory.claims import USER, claim_of, is_bare
from memdir.memory.clauses import JOINING, parts_of
from memdir.memory.dates import DAY_PREFIX, parsed
from memdir.memory.endings import may_end
from memdir.memory.file_names import (
    BIOGRAPHY_STEMS,
    OWN_STEMS,
    RECORDS_STEMS,
    TASTES,
    is_about_user,
    is_resume,
    kind_of_subject,
    record_of,
    stem_and_folder,
    stem_of,
    subject_of,
    title_of,
)
from memdir.memory.guard import is_for_model, is_overriding
from memdir.memory.informal import is_about_programs, is_informal, is_of_the_moment
from memdir.memory.journals import Journal, named_by, week_of
from memdir.memory.markup import as_markdown, source_at
from memdir.memory.own_name import as_user, told_by_name
from memdir.memory.people_tables import is_of_cards
from memdir.memory.personal import (
    NOTE_MAX_WORDS,
    is_claim,
    is_first_person,
    is_of_life,
    names_within,
    personal,
    states,
    worth_remembering,
)
from memdir.memory.personal_other_languages import is_bare_german
from memdir.memory.pronouns import resolved
from memdir.memory.references import HEAD_CHARS, TAG_BELOW
from memdir.memory.reports import direct
from memdir.memory.resumes import with_entries
from memdir.memory.statements import SENTENCES, Statement, statements
from memdir.memory.states import states_of
from memdir.memory.task_lists import TASK_LIST_NAME, as_task
from memdir.memory.turns import ME, SELF

_TO_KEEP: Final = Caseless(
    r"\b(?:pref(?:erence)?s|lessons?(?: learn(?:ed|t))?|learnings|conventions|house rules|gotchas|decisions|facts|remember)$|"
    r"^(?:tech|product|active|project) context$|^system patterns$|^project brief\b"
)
"""Names and titles of notes in which everything is there to be remembered."""
_OF_PERSON: Final = re.compile(
    rf"(?:^(?:tags?|type|kind|category)::?[ \t].*\b|{TAG_BELOW})(?:persons?|people|contacts?|friends?|colleagues?|family)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""What the head of a note says of whom it is about."""
_TO_AGENT: Final = re.compile(
    r"(?:The )?[Uu]ser (?:asked|told|wants|wanted|expects|reminded|corrected|thanked) (?:me|us|that (?:I|we))\b"
)
_OF_USER: Final = re.compile(r"(?:The )?[Uu]ser(?:['’]s)? (?=[a-z])")
_OF_WRITER: Final = re.compile(r"(?:I|My)\b")
_BETWEEN: Final = re.compile(rf"(?:{JOINING})?\s*|\n[ \t]*[-*+] ")
_YOU_MUST: Final = re.compile(r"(?:^|(?<=[:,] ))YOU MUST\b")
"""So people stress rules in what they write for their agents."""
_KEYS_OF_ENTRY: Final = frozenset({"date", "datum", "fecha", "time", "weather", "location", "place", "mood", "tags", "starred"})
"""What programs for diaries put above an entry."""
_NOTED_ON: Final = re.compile(r"[\[(](?P<day>\d{4}-\d\d-\d\d)[\])][:.]?\s+(?=\S)")
"""`- [2026-09-14] User wants money as integers`."""
_LINE_MAX_WORDS: Final = 40
"""Where one says more, the text is no list of lines."""
_TELLS_NUMBER: Final = re.compile(
    r"(?!.*(?:[=<>{}\\]|::|\w_\w|[^\W\d]\.[^\W\d]|[\da-f]{2}:[\da-f]{2}:))(?=.*\d)(?:.*?(?<![\w-])[^\W\d_]{3,}(?:-[^\W\d_]+)?(?![\w-])){2}"
)
"""What a line of a household's notes says: "Drop-off 8:20, pick-up 15:10"."""
_EQUALS: Final = re.compile(r"[^\W\d_]+(?:['’ ][^\W\d_]+){0,3} = [\w+][\w ,.'’()/+-]*$")
"""Or "dentist = Dr Amin"."""
_BELOW_TITLE_MIN: Final = 2
_TITLE_MAX_WORDS: Final = 8
_ABOVE_LINES: Final = re.compile(r"[ \t]*\r?\n(?:[ \t]*\r?\n)+[^\n]*\S[^\n]*\n[^\n]*\S")
_TALK_WITH: Final = re.compile(
    r"(?:(?:Weekly|Monthly) )?(?:1 ?(?:on|:)? ?1s?|[Oo]ne on one|Call|Chat|Lunch|Coffee|Meeting|Dinner|Catch up)(?: with)?:? "
    r"(?P<name>[A-ZÀ-Þ][\w'’]+(?: [A-ZÀ-Þ][\w'’]+)?)(?:[ ,–—(-]+(?:\w+ )?\d[^\n]*)?$"
)
_IDEAS_NAME: Final = re.compile(rf"ideas|ideen|goals|resolutions|habits|bucket-?list|wish-?list|{TASTES}")
"""Names of files whose lines are shown with what they are: "Ideas: a cold frame"."""
_OF_NOTE_PROGRAMS: Final = re.compile(r"/(?!readme\.)[^/]+\.(?:md|markdown|org)$", re.IGNORECASE)
"""Of files as note programs keep them; a README is a program's as often."""
_ATTENDEES_KEYS: Final = frozenset(
    "attendees attending present participants teilnehmer anwesend asistentes participantes présents".split()  # noqa: SIM905
)
"""Keys of the line in minutes that says who was there."""
_MOMENT: Final = re.compile(r"\d{12}(?:\d{2})?(?!\d)")
"""Before a note's title, when it was begun (Zettelkasten): it is of no day for that."""
_GREETING: Final = re.compile(
    r"(?:Hi|Hello|Hey|Dear|Hallo|Liebe[rs]?|Hola|Querid[oa]s?|Cher|Chère|Bonjour|Salut)\b[^.!?]{0,40}[,!]?$"
)
"""How a letter begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A text and what its name, its days and its lines tell of it."""

    text: str
    path: str
    pieces: tuple[Statement, ...]
    """All that it states."""
    journal: Journal
    is_journal: bool
    subject: str
    """Whom it is about where its lines do not tell: `user`, the project of an agent's memory, else what the file is called."""
    is_of_talk: bool
    """Whether it is notes of a talk with one person, its subject."""
    is_record: bool
    """Whether it lies in a folder in which each file is about somebody, or a project."""
    is_to_keep: bool
    """Whether all that it says is there to be remembered, where it is short."""
    is_own: bool
    """Whether it is about the user, so that all its items are, however long it is, and whoever is named concerns them."""
    is_about_user: bool
    """As `is_about_user` says of its path."""
    names: frozenset[str]
    """What is a name in it, and not only the first word of a sentence."""
    members: frozenset[str]
    """Keys of lines that are people."""
    called: frozenset[str]
    """Names of the user."""

    @property
    def has_records(self) -> bool:
        """Whether each of its headings is somebody, or a project."""
        return stem_of(self.path) in RECORDS_STEMS or is_of_cards(self.path)

    @property
    def is_conversation(self) -> bool:
        """Whether several speak in it."""
        return any(piece.speaker is not None for piece in self.pieces)

    def is_of_day(self, piece: Statement) -> bool:
        """Whether a statement of a journal stands under a day, or behind one."""
        day = self._day_of(piece) or DAY_PREFIX.match(piece.text)
        return self.is_journal and day is not None

    def _day_of(self, piece: Statement) -> date | None:
        """Of a journal: the day of the entry that a statement stands in."""
        return self.journal.day_at(piece.start) or named_by(self.path)

    def worth_remembering(self) -> tuple[list[Statement], list[Statement]]:
        """What lasts, and what else a journal tells of, by which something may be over; with names in place of pronouns. Of a
        conversation what the user states, and what others say of themselves."""
        if self.is_conversation:
            messages = _with_names(self.text, self.pieces, None, self.called)
            about_programs = is_about_programs([piece.text for piece in messages if piece.speaker == ME])
            return [one for one in messages if self._is_remembered(one, about_programs=about_programs)], []
        pieces = self._not_for_models()
        # Of a task the first word is an order ("Call Karl"), which by itself is no statement of what is so.
        said = [f"To do: {piece.text}" if piece.form == "task" else piece.text for piece in pieces]
        is_short = sum(len(one.split()) for one in said) <= NOTE_MAX_WORDS
        listed = [True] * len(pieces) if self.is_to_keep and is_short else self._listed(pieces, said)
        if self.path:
            are_pairs = 2 * sum(piece.form == "pair" for piece in pieces) >= len(pieces)
            are_pairs = are_pairs and _OF_NOTE_PROGRAMS.search(self.path) is not None
            chosen = worth_remembering(
                said, names=self.names, listed=listed, is_own=self.is_own, is_journal=self.is_journal, are_pairs=are_pairs
            )
        else:
            chosen = [
                one and (item or states(text) or is_of_life(text))
                for one, item, text in zip(personal(said, listed=all(listed)), listed, said, strict=True)
            ]
        about = None  # a project is nobody's "she"
        if not self.is_record:
            about = self.subject if self.is_of_talk else None
        elif kind_of_subject(self.path, self.subject) != "project":
            about = f"{self.subject[:1].upper()}{self.subject[1:]}"
        tells_of_user = any(piece.form == "pair" for piece in pieces) or any(map(is_bare, said))
        if self.is_own and self.subject == USER and tells_of_user and not any(map(is_first_person, said)):
            about = "The user"  # as agents write: "Prefers tea. He is allergic to nuts."
        named = _with_names(self.text, pieces, about, self.called)
        is_agents = any(piece.is_report or _TO_AGENT.match(piece.text) is not None for piece in named)
        kept = [
            (one and not (is_agents and _is_of_writer(piece.text)))
            or (
                (piece.key in self.members or piece.concerns_user or (is_agents and _OF_USER.match(piece.text) is not None))
                and is_meant(piece.text)
            )
            for one, piece in zip(chosen, named, strict=True)
        ]
        tells = self.is_journal and (is_short or any(kept))
        kept = [one or (tells and self._is_announced(piece)) for one, piece in zip(kept, named, strict=True)]
        passing = [
            tells and not one and may_end(text) and not (is_agents and _is_of_writer(text))
            for one, text in zip(kept, said, strict=True)
        ]
        return list(compress(named, kept)), list(compress(named, passing))

    def _is_announced(self, piece: Statement) -> bool:
        """Whether an entry of the user's journal tells what will be on a day: "The exam is on Friday"."""
        if self.subject != USER or piece.form in {"front", "task"}:
            return False
        day = self._day_of(piece)
        comes = None if day is None else appointment_day(piece.text, day)
        return comes is not None and comes != day and is_meant(piece.text)

    def _is_remembered(self, piece: Statement, *, about_programs: bool) -> bool:
        """Of a conversation; where the user has a model work on programs most is of the moment, however it is said."""
        if about_programs and next(candidates_in(self.text[piece.start : piece.end]), None) is not None:
            return True
        if is_of_the_moment(piece.text):
            return False
        is_known = is_claim(piece.text) or is_of_life(piece.text)
        if about_programs:
            return is_known and (claim_of(piece.text) is not None or bool(states_of(piece.text)))
        is_own = piece.speaker == ME and (piece.form not in SENTENCES or states(piece.text))
        return is_known or (is_own and is_meant(piece.text))

    def _not_for_models(self) -> list[Statement]:
        """Without what tells a model what to do or to keep, and what stands behind an order to believe nothing else, to the end
        of its paragraph."""
        found: list[Statement] = []
        tainted_to = 0
        for piece in self.pieces:
            if is_overriding(piece.text):
                end = self.text.find("\n\n", piece.end)
                tainted_to = len(self.text) if end < 0 else end
            if piece.start >= tainted_to and not is_for_model(piece.text):
                found.append(piece)
        return found

    def _listed(self, pieces: Sequence[Statement], said: Sequence[str]) -> list[bool]:
        """For each whether it is an item of a list, by its form or as a line that says something of its own."""
        is_letter = any(map(_GREETING.match, said[:2]))
        are_lines = self.is_own or not (is_letter or any(len(one.split()) > _LINE_MAX_WORDS for one in said))
        lines = sum(piece.form == "line" for piece in pieces)
        is_titled = len(pieces) == 1 or (not self.is_own and 2 * lines <= len(pieces))
        are_notes = lines > 1 and 2 * sum(piece.form in {"line", "pair"} for piece in pieces) > len(pieces)
        return [
            piece.form in {"item", "task"}
            or (piece.form in {"front", "pair"} and (self.is_of_talk or not self.is_of_day(piece)))
            or (
                piece.form == "line"
                and are_lines
                and (self.is_own or not self.is_of_day(piece))
                and (
                    self.is_own
                    or is_sentence(one)
                    or (are_notes and (_TELLS_NUMBER.match(one) or _EQUALS.fullmatch(one)) is not None)
                )
                and not (at == 0 and is_titled and _stands_alone(self.text, piece))
            )
            for at, (piece, one) in enumerate(zip(pieces, said, strict=True))
        ]


def note_of(text: str, path: str, called: frozenset[str] = frozenset(), written: date | None = None) -> Note:
    """Of a document; `path` is empty for one that lies in no place. `called`: names of the user, in lower case. `written`: when
    it was."""
    subject = subject_of(path)
    is_remembered = claude_code_type(text) is not None
    subject = USER if is_remembered or subject.casefold() in called else subject
    stem, folder = stem_and_folder(path)
    from_assistant = is_of_assistant(stem)
    if from_assistant:
        text = as_list(text)
    is_cv = is_resume(path)
    suffix = path.rpartition(".")[2].lower()
    is_csv = suffix in {"csv", "tsv"}
    plain = text if is_csv else as_markdown(text, is_org=suffix == "org")
    journal = Journal("" if is_cv else plain, written, week_of(path))
    stated: Iterable[Statement] = statements(plain, is_csv=is_csv, called=called)
    if from_assistant or is_cv:
        stated = map(_remembered, stated) if from_assistant else with_entries(text, stated)
    if stem in BIOGRAPHY_STEMS:
        stated = list(stated)
        name = told_by_name([one.text for one in stated])
        if name is not None:
            called |= {name.casefold(), name.split()[0].casefold()}
            stated = [replace(stated[0], text=f"Name: {name}", form="pair", end=stated[0].start + len(name)), *stated]
    is_of_tasks = TASK_LIST_NAME.fullmatch(stem_of(path)) is not None
    stated = chain.from_iterable(as_task(one) if is_of_tasks or _is_below_tasks(one) else [one] for one in stated)
    if _IDEAS_NAME.fullmatch(stem_of(path)) is not None:  # in which nothing else says what the lines are
        title = (title_of(path).replace("-", " ").capitalize(),)
        stated = (
            replace(one, headings=one.headings or title, form="item" if one.form == "pair" else one.form) for one in stated
        )
    stated = list(stated)
    informal = subject == USER and is_informal(one.text for one in stated if one.form in {"item", *SENTENCES})
    pieces = tuple(part for piece in stated for part in parts_of(text, _direct(text, piece, called), is_informal=informal))
    pieces = _titled(text, pieces, stem)
    titles = (stem.replace("-", " "), *(piece.headings[0] for piece in pieces[:1] if piece.headings))
    is_of_day = record_of(path) != path and named_by(path) is not None
    is_to_keep = (
        is_remembered
        or (is_of_tasks and not path.endswith("/TODO"))
        or (folder in RECORDS_STEMS and not is_of_day)
        or any(map(_TO_KEEP.search, titles))
    )
    is_own = is_to_keep or from_assistant or is_cv or stem in OWN_STEMS
    if is_own:
        pieces = tuple(_as_kept(one) for one in pieces)
    said = [piece.text for piece in pieces]
    names = names_within(said) | {word.title() for word in subject.split()}
    has_names = is_own and not (from_assistant or is_of_tasks or is_cv)
    first_words = {
        one.split(maxsplit=1)[0]
        for one in said
        if one and has_names and not (begins_with_imperative(one) or is_bare_german(one))
    }
    is_record = folder in RECORDS_STEMS or (subject != USER and _OF_PERSON.search(text[:HEAD_CHARS]) is not None)
    partner = _talked_with(path, pieces)
    if is_remembered:  # the rest is how the file is found, and of other texts the reason
        pieces = tuple(one for one in pieces if one.form != "front" and one.key.casefold() != "why")
    pieces = tuple(one for one in pieces if one.key.casefold() not in _KEYS_OF_ENTRY or journal.day_at(one.start) is None)
    if not is_record:  # of a page it says whether it is published
        pieces = tuple(one for one in pieces if one.form != "front" or one.key.casefold() != "status")
    return Note(
        text=text,
        path=path,
        pieces=pieces,
        journal=journal,
        is_journal=not from_assistant and _is_journal(pieces, journal, path),
        subject=subject if is_record or partner is None else partner,
        is_of_talk=partner is not None,
        is_record=is_record,
        is_to_keep=is_to_keep,
        is_own=is_own,
        is_about_user=is_about_user(path),
        names=names | first_words,
        members=_members(pieces),
        called=called,
    )


def _remembered(piece: Statement) -> Statement:
    """Of a list of memories: without the day that stands before it, and for itself, however the text is set."""
    said = DAY_PREFIX.sub("", piece.text, count=1)
    return replace(piece, text=said, form="line" if piece.form == "sentence" and is_memory(said) else piece.form)


def _as_kept(piece: Statement) -> Statement:
    """Of what is there to be remembered: without stress, and without the day on which it was noted."""
    noted = _NOTED_ON.match(piece.text)
    day = None if noted is None else parsed(noted["day"])
    said = piece.text if day is None or noted is None else piece.text[noted.end() :]
    return replace(piece, text=_YOU_MUST.sub("must", said), day=day or piece.day)


def _is_below_tasks(piece: Statement) -> bool:
    return piece.form == "item" and bool(piece.headings) and TASK_LIST_NAME.fullmatch(stem_of(piece.headings[-1])) is not None


def _talked_with(path: str, pieces: Sequence[Statement]) -> str | None:
    """The person whom the user talked with, by the name of the file or its title: "1:1 with Marta"."""
    titles = (title_of(path).replace("-", " "), *(piece.headings[0] for piece in pieces[:1] if piece.headings))
    return next((found["name"] for title in titles if (found := _TALK_WITH.match(title)) is not None), None)


def _members(pieces: Sequence[Statement]) -> frozenset[str]:
    """Keys of lines that are people, in what a group writes down of what each said or did: one of them is "me", or a line says
    who was there."""
    keys = {piece.key for piece in pieces if piece.key}
    if any(key.casefold() in SELF for key in keys):
        return frozenset(key for key in keys if key.casefold() in SELF or (key.istitle() and " " not in key))
    present = " ".join(piece.text for piece in pieces if piece.key.casefold() in _ATTENDEES_KEYS)
    return frozenset(keys & set(re.findall(r"[^\W\d_][\w'’.-]+", present.partition(":")[2])))


def _is_journal(pieces: Sequence[Statement], journal: Journal, path: str) -> bool:
    """Whether it is named after a day, or a third of what it says stands under one or behind one."""
    dated = sum(journal.day_at(piece.start) is not None for piece in pieces)
    led = sum(DAY_PREFIX.match(piece.text) is not None for piece in pieces)
    is_named = named_by(path) is not None and _MOMENT.match(path.rpartition("/")[2]) is None
    return is_named or 0 < dated >= len(pieces) / 3 or 1 < led >= len(pieces) / 3


def _is_of_writer(statement: str) -> bool:
    """Whether an agent claims it of itself ("I like the new layout"), other than what it decided for the user."""
    claim = claim_of(statement) if _OF_WRITER.match(statement) is not None else None
    return claim is not None and claim.attribute != "decision"


def _titled(text: str, pieces: tuple[Statement, ...], stem: str) -> tuple[Statement, ...]:
    """With its first line as the heading of the others, where that is a title that nothing marks as one: short, no sentence,
    alone above a paragraph of several lines, above a list or pairs, or what the file is called ("Meds (updated 20 Nov)" in
    `meds.md`)."""
    if len(pieces) < _BELOW_TITLE_MIN + 1 or pieces[0].headings or pieces[0].speaker is not None:
        return pieces
    said, rest = pieces[0].text, text[pieces[0].end :]
    is_name = set(stem.split("-")) <= {*re.findall(r"\w+", said.casefold())} and not is_sentence(said)
    is_above = is_name or _ABOVE_LINES.match(rest) or all(one.form in {"item", "pair", "task"} for one in pieces[1:3])
    if pieces[0].form != "line" or text[: pieces[0].start].strip() or not is_above:
        return pieces
    if len(said.split()) > _TITLE_MAX_WORDS or said.endswith((".", "!", "?", ":", ",")) or SPECIALIST.search(said):
        return pieces
    if is_claim(said) or is_of_life(said) or begins_with_imperative(said):
        return pieces
    return tuple(replace(one, headings=(said, *one.headings)) for one in pieces[1:])


def _stands_alone(text: str, piece: Statement) -> bool:
    """Whether an empty line follows, or nothing."""
    rest = text[piece.end :]
    return not rest.strip() or rest.lstrip(" \t\r").startswith(("\n\n", "\n\r\n"))


def _with_names(text: str, pieces: Sequence[Statement], about: str | None, called: frozenset[str]) -> list[Statement]:
    """With the name in place of "she" and "he" where a paragraph tells who that is, or the text is `about` somebody."""
    goes_on = [
        before is not None and piece.form == before.form and _BETWEEN.fullmatch(text, before.end, piece.start) is not None
        and "\n\n" not in text[before.end : piece.start]
        for before, piece in zip([None, *pieces], pieces, strict=False)
    ]  # fmt: skip
    about = "The user" if about is None and any(piece.concerns_user for piece in pieces) else about
    said = resolved([piece.text for piece in pieces], goes_on=goes_on, about=about)
    return [_direct(text, replace(piece, text=one), called) for piece, one in zip(pieces, said, strict=True)]


def _direct(text: str, piece: Statement, called: frozenset[str]) -> Statement:
    """What somebody is noted to have said of themselves, by itself; what is said of the user by name, of the user."""
    if piece.speaker is not None:
        return piece
    reported = direct(piece.text, called)
    if reported is None:
        said = as_user(piece.text, called)
        return piece if said == piece.text else replace(piece, text=said, concerns_user=True)
    start, said, is_of_user = reported
    start = source_at(text[piece.start : piece.end], piece.text, start)
    return replace(piece, start=piece.start + start, text=said, concerns_user=is_of_user, is_report=is_of_user)
