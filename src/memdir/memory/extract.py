"""Facts from the statements of a text, by rules. Everything found is said by the document in so many words; nothing is
inferred. Each candidate carries its exact span.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from itertools import accumulate
from typing import Final

from memdir.core.caseless import Caseless
from memdir.core.frontmatter import parse
from memdir.memory.appointments import appointment_day
from memdir.memory.aspects import MINE, NEW
from memdir.memory.claims import USER, claim_of, is_bare, says
from memdir.memory.dates import DATE, WEEKDAY, day_of, ms_of, parsed, since, written_on
from memdir.memory.endings import endings_of, may_end, word_topics
from memdir.memory.file_names import holds_records
from memdir.memory.formers import formers_of, short_names
from memdir.memory.guard import is_for_model, is_secret
from memdir.memory.journals import is_day, named_by
from memdir.memory.notes import Note, note_of
from memdir.memory.people_tables import is_export_of_cards
from memdir.memory.personal import is_first_person, person_of, states
from memdir.memory.reconcile import ends, may_replace
from memdir.memory.references import is_reference
from memdir.memory.relations import RELATIVES
from memdir.memory.statements import FRONT_MAX_CHARS, SENTENCES, Statement
from memdir.memory.states import PASSING, states_of
from memdir.memory.turns import SELF
from memdir.store.agents.files import Provenance
from memdir.store.types import MemoryCandidate

CANDIDATES_MAX: Final = 500
"""Of one document; what comes after is searchable but not remembered."""
TEXT_MIN_CHARS: Final = 6
"""But of an item below a heading that says what it is one of: "nuts" below "Allergies", "42" below "Shoe size"."""
TEXT_MAX_CHARS: Final = 400
_LOOK_MAX_CHARS: Final = 400_000

_DATED_BY: Final = ("updated", "modified", "last_modified", "date", "created")
"""Keys of front matter, the one that counts most first."""
_UPDATED: Final = re.compile(
    r"^[\W_]*(?:(?:last[ -])?(?:updated?|modified|edited|reviewed)|stand|zuletzt (?:aktualisiert|geändert|bearbeitet)|"
    r"(?:mis|mise) à jour|actualizado)(?: at| on| am| le| el)?[ \t:*_(]{1,5}(?P<day>[^\n]{4,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""What the head of a text says of when it was written: `_Last updated: 2026-11-20_`."""
_HEAD_CHARS: Final = 600
_DECIDED: Final = Caseless(
    r"\b(?:decided|decisions?|agreed|chose|chosen|settled on|resolved|entschieden|beschlossen|décidé|decidió)\b"
)
_EMPHATIC: Final = Caseless(r"\b(?:always|never|prefers?)\b")
_RECENT: Final = Caseless(
    r"\b(?:today|yesterday|tomorrow|tonight|currently|right now|at the moment|this (?:week|month|morning|afternoon|sprint)"
    r"|this quarter|last (?:week|night|month)|next (?:week|month|up)|now|in progress|working on|waiting for"
    r"|blocked|todo|to do|due|deadline|upcoming|recently|just (?:finished|started|shipped)"
    r"|heute|gestern|aujourd'hui|demain|hoy|mañana|ayer)\b|^next:",
)
_WEEKDAY: Final = re.compile(rf"(?<!every )(?<!every other )(?<!each )\b{WEEKDAY}\b")
"""One that is meant, and not each."""
_RECENT_HEADING: Final = Caseless(
    r"\b(?:recent|current|now|today|this week|in progress|to ?do|next|log|journal|diary|status|going on|upcoming"
    r"|open (?:points?|questions?|issues?|items?|ends?)|tasks?)\b|^open$",
)
_OF_USER: Final = Caseless(r"\b(?:user|me|my|human|owner)\b")
_VAGUE: Final = Caseless(
    r"(?:(?:my|the|some|other|important|key|more|long-term|work|personal) )?(?:notes?|contexts?|identity|"
    r"top of mind|brief history|memor(?:y|ies)|misc\w*|facts?|others?|"
    r"aufgaben|tagebuch|notizen|heute|tareas|diario|notas|hoy|tâches|aujourd'hui|"
    r"logs?|journal|diary|tasks?|to-?dos?|today|events?|happened|standup|thoughts|highlights|"
    r"general|background|info(?:rmation)?|overview|profile|details|basics|personal(?: info(?:rmation)?)?|things (?:to|i|we) .*|"
    r"about\b.*|user\b.*|me|(?:week|w|kw|q|day|month)? ?\d[\d./ –-]*|never assume|.*\.md\b.*)$",
)
"""Headings that say nothing about what stands below."""
_URL: Final = re.compile(r"<?https?://\S+")
_NAMED: Final = re.compile(r"[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+){0,2}(?: \([^()]*\))?")
"""A heading that may be somebody, or a project."""
_ASIDE: Final = re.compile(r"(?<=\S) \([^()]*\)$")
_LABEL_MAX_CHARS: Final = 40
OWN_CONFIDENCE_MIN: Final = 0.9
"""Least confidence in what a file about the user says of them: who they are comes first in a profile."""
_TITLE: Final = re.compile(
    r"[A-Z][\w'’-]*(?: (?:[A-Z\d][\w'’-]*|an?|the|of|in|on|and|or|for|to|by|at|with|from))* [A-Z][\w'’-]*"
)
"""Of a book or a film: "Seeing Like a State" states nothing."""
_LASTING: Final = Caseless(
    rf"^(?:(?:{MINE}) )?(?:(?:home|work|private|{NEW}) )*"
    r"(?:address|phone|mobile|(?:phone )?number|e-?mail|surname|name|"
    r"birthday|job|role|employer|landlord|landlady|doctor|dentist|boss|manager|time ?zone|adresse|anschrift|"
    r"chefin?|vermieter(?:in)?|(?:haus|zahn)?(?:arzt|ärztin)|cheffe?|médecin|jef[ea]|médic[oa]|"
    r"telefon(?:nummer)?|handy(?:nummer)?|dirección|domicilio|teléfono|móvil|téléphone|portable)(?: address| number)? ?:"
)
"""What does not pass with the day on which it is noted."""


def extract(
    text: str,
    path: str,
    *,
    byte_at: Callable[[int], int],
    written_ms: int | None = None,
    is_first_writing: bool = True,
    restated: Sequence[tuple[int, str]] = (),
    called: frozenset[str] = frozenset(),
) -> tuple[MemoryCandidate, ...]:
    """Candidates in order of the text, at most CANDIDATES_MAX; `byte_at` gives the original byte of a character. Without a
    `path` nobody said that this is to be remembered: only a text about a person has any (`memory.personal`).

    Since when something is so is told by its own words, else by the day of its line or heading, of the file's name, of the
    front matter (in the first writing only: a later line is of a later day), or by when the document was `written_ms`.

    `restated` are lines and what a model says that they say (`model_reader`): candidates like the rules' own where no rule
    found the same. `called`: names of the user, in lower case (`own_name`).

    Pure. Questions, quotations, code, instructions to a model, secrets, and texts that others wrote (`references.is_reference`)
    are left out.
    """
    if _is_untrusted(text) or is_reference(text, path) or is_export_of_cards(text, path):
        return ()
    note = note_of(text[:_LOOK_MAX_CHARS], path, called, None if written_ms is None else day_of(written_ms))
    of_document = _said_on(text, path, written_ms, is_first_writing=is_first_writing)
    found: list[MemoryCandidate] = []
    seen: set[str] = set()
    line, counted = 1, 0
    pieces, passing = note.worth_remembering()
    if restated and not note.is_conversation:  # a model's turns would be told as the user's
        pieces = _with_restated(text, pieces, restated)
    records = _records(pieces, every=note.has_records)
    happened = {one.start for one in passing}
    for piece in sorted((*pieces, *passing), key=lambda one: one.start):
        day = note.journal.day_at(piece.start) or piece.day or of_document
        candidate = _candidate(piece, _subject_in(piece, note, records), note, day)
        if candidate is None or candidate[1].casefold() in seen:
            continue
        kind, said, about, confidence = candidate
        is_passing = piece.start in happened
        seen.add(said.casefold())
        claim = claim_of(said)
        line += text.count("\n", counted, piece.start)
        counted = piece.start
        found.append(
            MemoryCandidate(
                kind="dynamic" if is_passing else kind,
                subject=about,
                text=said,
                confidence=confidence,
                start_line=line,
                end_line=line + text.count("\n", piece.start, piece.end),
                start_byte=byte_at(piece.start),
                end_byte=byte_at(piece.end),
                said_ms=None if day is None else _moment_of(day, written_ms),
                valid_from_ms=None if day is None else ms_of(since(said, day, value="" if claim is None else claim.value)),
                is_passing=is_passing,
            )
        )
        if len(found) >= CANDIDATES_MAX:
            break
    return _holding(found, newest_first=note.journal.is_newest_first)


def _holding(found: Sequence[MemoryCandidate], *, newest_first: bool) -> tuple[MemoryCandidate, ...]:
    """What a text says at its end, where it says one after the other: a journal in one file. Of an attribute with one value
    the last statement, and nothing that a later one says is gone."""
    kept: list[MemoryCandidate] = []
    taken: dict[tuple[str, str], list[MemoryCandidate]] = {}
    enders: dict[str, list[MemoryCandidate]] = {}
    for candidate in found if newest_first else reversed(found):
        if any(ends(later, candidate) for topic in word_topics(candidate.text) for later in enders.get(topic, ())):
            continue
        for topic in {topic for ending in endings_of(candidate.text) for topic in ending.topics}:
            enders.setdefault(topic, []).append(candidate)
        claim = claim_of(candidate.text)
        if claim is not None:
            single = {claim.topic} if claim.is_single else set()
            own = single | {(claim.subject, f"={name}") for name in short_names(claim.value)}
            if any(may_replace(later, candidate) for topic in own for later in taken.get(topic, ())):
                continue
            for said in single | {(claim.subject, f"={former}") for former in formers_of(candidate.text)}:
                taken.setdefault(said, []).append(candidate)
        kept.append(candidate)
    in_order = kept if newest_first else kept[::-1]
    return tuple(sorted(in_order, key=lambda candidate: candidate.start_byte))


def _with_restated(text: str, pieces: list[Statement], restated: Sequence[tuple[int, str]]) -> list[Statement]:
    """With what a model says that lines say (`model_reader`), where no rule found the same."""
    known = {(claim.subject, claim.attribute, claim.value) for piece in pieces if (claim := claim_of(piece.text))}
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    for number, statement in restated:
        claim = claim_of(statement)
        if claim is None or is_for_model(lines[number - 1]) or (claim.subject, claim.attribute, claim.value) in known:
            continue
        known.add((claim.subject, claim.attribute, claim.value))
        start, end = starts[number - 1], starts[number - 1] + len(lines[number - 1])
        # What the line says in its own words, and no rule understands, is the same fact.
        pieces = [one for one in pieces if not (start <= one.start and one.end <= end and claim_of(one.text) is None)]
        pieces.append(Statement(start=start, end=end, text=statement, form="sentence"))
    return sorted(pieces, key=lambda piece: piece.start)


def _moment_of(day: date, written_ms: int | None) -> int:
    """When a statement of a day was made: its midnight, which stands for no time, or when the document was written on it."""
    return written_ms if written_ms is not None and day_of(written_ms) == day else ms_of(day)


def _said_on(text: str, path: str, written_ms: int | None, *, is_first_writing: bool) -> date | None:
    """The day that a whole document is of: its name's, that of its front matter or its head, else when it was written."""
    named = named_by(path)
    if named is not None:
        return named
    if is_first_writing:
        fields, _ = parse(text[:FRONT_MAX_CHARS]) if text.startswith("---") else ({}, "")
        days = [day for key in _DATED_BY if (day := parsed(str(fields.get(key, "")))) is not None]
        days += [day for one in _UPDATED.finditer(text[:_HEAD_CHARS]) if (day := written_on(one["day"])) is not None]
        if days and (written_ms is None or days[0] <= day_of(written_ms)):
            return days[0]
    return None if written_ms is None else day_of(written_ms)


def _is_untrusted(text: str) -> bool:
    """Whether its front matter says that others wrote it (`trust: untrusted`)."""
    fields, _ = parse(text[:FRONT_MAX_CHARS]) if text.startswith("---") else ({}, "")
    return not Provenance.of(fields).is_trusted


def _records(pieces: Sequence[Statement], *, every: bool) -> frozenset[str]:
    """Headings that are each what the lines below are about: the same key stands below several of them, they stand below one
    that says so, or all are (`every`)."""
    below: dict[str, set[str]] = {}
    found: set[str] = set()
    for piece in pieces:
        heading, key = piece.headings[-1] if piece.headings else "", piece.key.casefold()
        if heading and key:
            below.setdefault(key, set()).add(heading)
        if heading and every and (key or is_bare(piece.text)):
            found.add(heading)
        if len(piece.headings) > 1 and holds_records(piece.headings[-2]):
            found.add(heading)
    found |= {heading for headings in below.values() if len(headings) > 1 for heading in headings}
    if found and every:  # beside others that are
        found |= {piece.headings[-1] for piece in pieces if piece.headings and _NAMED.fullmatch(piece.headings[-1])}
    return frozenset(heading for heading in found if not _VAGUE.search(heading))


def _subject_in(piece: Statement, note: Note, records: frozenset[str]) -> str:
    """Whom a line is about by its key, or by the heading it stands under, else by its file."""
    if piece.key in note.members:
        return USER if piece.key.casefold() in SELF else piece.key
    if piece.whom:
        return USER if piece.whom.casefold() in SELF | note.called else piece.whom
    if not piece.headings or piece.headings[-1] not in records:
        return note.subject if piece.speaker is None else USER
    heading = piece.headings[-1]
    is_users = _OF_USER.search(heading) is not None or heading.casefold() in note.called
    return USER if is_users else _ASIDE.sub("", heading)


def _candidate(piece: Statement, subject: str, note: Note, day: date | None) -> tuple[str, str, str, float] | None:
    """Kind, text, subject and confidence; None when the piece states nothing that may be remembered."""
    said = piece.text
    if len(said) > TEXT_MAX_CHARS or _is_too_short(piece) or said.endswith("?") or _URL.fullmatch(said) is not None:
        return None
    if is_for_model(said) or is_secret(said):
        return None
    is_recent_part = any(_RECENT_HEADING.search(heading) for heading in piece.headings)
    recent = _RECENT.search(said) or is_recent_part
    dated = DATE.search(said)
    decided = _DECIDED.search(" ".join((said, subject, *piece.headings[-1:])))
    is_line = piece.form in {"front", "pair"} or is_bare(said)
    is_of_record = note.is_record or subject not in {USER, note.subject}
    is_line = is_line or (is_of_record and not is_first_person(said) and person_of(said, note.names) is None)
    if is_line:
        said = _with_subject(subject, said)
    claim = claim_of(said)
    is_short = piece.form == "sentence" and len(said.split()) < 3 and said.isascii() and not is_first_person(said)
    if is_short and claim is None and not states_of(said) and not may_end(said):
        return None
    durable = decided and not is_recent_part
    # A date at the beginning makes an event; one further in is a detail of a durable fact.
    of_the_day = note.is_of_day(piece) and (piece.form in {"item", "pair"} or _WEEKDAY.search(said) is not None)
    event = recent or of_the_day or piece.form == "task" or (dated is not None and dated.start() <= 12 and not is_line)
    lasts = (
        durable
        or claim is not None
        or _LASTING.search(said) is not None
        or any(state.family not in PASSING for state in states_of(said))
    )
    is_of_attribute = claim is not None and not claim.aspect
    is_once = not durable and not is_of_attribute and piece.form not in {"front", "pair"}
    is_appointment = is_once and day is not None and appointment_day(said, day) is not None
    kind = "dynamic" if is_appointment or (event and not lasts) else "static"
    confidence = {"front": 0.95, "pair": 0.9, "item": 0.85, "task": 0.85}.get(piece.form, 0.7)
    if piece.form in SENTENCES and (decided or _EMPHATIC.search(said)):
        confidence = 0.8
    if claim is not None:
        confidence = max(confidence, 0.85)
    about = claim.subject if claim is not None else subject
    if claim is None and not is_line:
        about = USER if is_first_person(said) else person_of(said, note.names) or subject
    if about == USER and note.is_about_user:
        confidence = OWN_CONFIDENCE_MIN + (1 - OWN_CONFIDENCE_MIN) * confidence
    if piece.speaker:
        about = piece.speaker if about == USER or about in RELATIVES else about
        said = says(piece.speaker, said)
    elif piece.form in {"item", "task", "line"} and not is_line and not (states(said) and _TITLE.fullmatch(said) is None):
        label = "" if note.is_of_talk and len(piece.headings) < 2 else _label(piece)
        said = _with_subject(about, f"{label}: {said}" if label else said)
    return kind, said, about.casefold(), confidence


def _is_too_short(piece: Statement) -> bool:
    """Whether it says too little, and stands under nothing that says more."""
    is_labelled = piece.form in {"item", "line", "task"} and piece.text[:1].isalnum() and bool(_label(piece))
    return len(piece.text) < TEXT_MIN_CHARS and not is_labelled


def _with_subject(subject: str, said: str) -> str:
    """A line that does not tell whom it is about, with the name of who that is."""
    if subject == USER or said.casefold().startswith(subject.casefold().split()[0]):
        return said
    return f"{subject[:1].upper()}{subject[1:]} – {said}"


def _label(piece: Statement) -> str:
    """What an item is an item of, where its own words do not tell."""
    heading = piece.headings[-1] if piece.headings else ""
    return "" if len(heading) > _LABEL_MAX_CHARS or _VAGUE.search(heading) or is_day(heading) else heading
