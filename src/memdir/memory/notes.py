"""What kind of text a document is (a note, a journal, minutes, a letter, a conversation), whom it is about, and which of its
statements are worth remembering. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final

from memdir.core.caseless import Caseless
from memdir.memory.assertions import is_meant
from memdir.memory.claims import USER
from memdir.memory.clauses import JOINING, clauses
from memdir.memory.dates import DAY_PREFIX, Journal, named_by
from memdir.memory.endings import may_end
from memdir.memory.guard import is_for_model, is_overriding, is_secret
from memdir.memory.personal import (
    NOTE_MAX_WORDS,
    is_claim,
    is_of_life,
    names_within,
    personal,
    states,
    worth_remembering,
)
from memdir.memory.pronouns import resolved
from memdir.memory.statements import SENTENCES, Statement, cleaned, statements
from memdir.memory.turns import SELF

_AGENT_NAME: Final = re.compile(r"-[0-9a-f]{6}\.md$")
"""As `store.agents.files.slug` names a file."""
_OWN_STEMS: Final = frozenset(
    """
    user me about about-me profile user-profile my-profile memory preferences prefs my-preferences identity now claude agents
    ich über-mich profil vorlieben moi à-propos-de-moi préférences yo sobre-mi sobre-mí perfil preferencias
    """.split()  # noqa: SIM905
)
"""Names of files in which every item is there to be remembered, however many there are."""
_TO_KEEP: Final = Caseless(
    r"\b(?:pref(?:erence)?s|lessons?(?: learn(?:ed|t))?|learnings|conventions|house rules|gotchas|decisions|facts|remember)$"
)
"""Names and titles of notes in which everything is there to be remembered."""
_USER_STEMS: Final = _OWN_STEMS | {"settings", "readme", "index"}
_OF_DAYS: Final = re.compile(
    r"(?:(?:daily|weekly|monthly|yearly|my|dev|work|personal|quick|random|private|meine?|mis|mes)-)*"
    r"(?:notes?|journal|diary|log|logbook|reviews?|retro|inbox|to-?dos?|tasks?|stand-?ups?|scratch(?:pad)?|week|month|ideas|"
    r"reflections?|brain-?dump|tagebuch|notizen|diario|notas|carnet)(?:-?[wq]?\d+)*|(?:\d{4}-?)?[wq]\d+"
)
"""Names of files that people write into day by day, about themselves."""
_RECORDS_STEMS: Final = frozenset(
    """
    people persons contacts team family friends colleagues clients customers projects kontakte personen leute familie freunde
    kollegen kunden projekte personnes famille amis collègues projets personas familia amigos clientes proyectos
    """.split()  # noqa: SIM905
)
"""Names of files in which each heading is somebody, or a project, and what stands below is of it; and of folders in which each
file is."""
_BETWEEN: Final = re.compile(rf"(?:{JOINING})?\s*")
_SENTENCE_MIN_WORDS: Final = 4
_LINE_MAX_WORDS: Final = 40
"""Where one says more, the text is no list of lines."""
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
    is_record: bool
    """Whether it lies in a folder in which each file is about somebody, or a project."""
    is_to_keep: bool
    """Whether all that it says is there to be remembered, where it is short."""
    is_own: bool
    """Whether it is about the user, so that all its items are, however long it is, and whoever is named concerns them."""
    names: frozenset[str]
    """What is a name in it, and not only the first word of a sentence."""
    members: frozenset[str]
    """Keys of lines that are people."""

    @property
    def has_records(self) -> bool:
        """Whether each of its headings is somebody, or a project."""
        return _stem(self.path) in _RECORDS_STEMS

    @property
    def is_conversation(self) -> bool:
        """Whether several speak in it."""
        return any(piece.speaker is not None for piece in self.pieces)

    def is_of_day(self, piece: Statement) -> bool:
        """Whether a statement of a journal stands under a day, or behind one."""
        day = named_by(self.path) or self.journal.day_at(piece.start) or DAY_PREFIX.match(piece.text)
        return self.is_journal and day is not None

    def worth_remembering(self) -> tuple[list[Statement], list[Statement]]:
        """What lasts, and what else a journal tells of, by which something may be over; with names in place of pronouns. Of a
        conversation what the user states, and what others say of themselves."""
        if self.is_conversation:
            return [
                piece
                for piece in self.pieces
                if (is_claim(piece.text) if piece.speaker else piece.form not in SENTENCES or states(cleaned(piece.text)))
            ], []
        pieces = self._not_for_models()
        said = [cleaned(piece.text) for piece in pieces]
        is_short = sum(len(one.split()) for one in said) <= NOTE_MAX_WORDS
        listed = [True] * len(pieces) if self.is_to_keep and is_short else self._listed(pieces, said)
        if self.path:
            chosen = worth_remembering(said, names=self.names, listed=listed, is_own=self.is_own, is_journal=self.is_journal)
        else:
            chosen = [
                one and (item or states(text) or is_of_life(text))
                for one, item, text in zip(personal(said, listed=all(listed)), listed, said, strict=True)
            ]
        kept = [
            one or (piece.key in self.members and is_meant(text)) for one, piece, text in zip(chosen, pieces, said, strict=True)
        ]
        about = f"{self.subject[:1].upper()}{self.subject[1:]}" if self.is_record else None
        named = _with_names(self.text, pieces, about)
        tells = self.is_journal and (is_short or any(kept))
        passing = [tells and not one and may_end(text) for one, text in zip(kept, said, strict=True)]
        return list(compress(named, kept)), list(compress(named, passing))

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
        are_lines = self.is_own or not (self.is_journal or is_letter or any(len(one.split()) > _LINE_MAX_WORDS for one in said))
        lines = sum(piece.form == "line" for piece in pieces)
        is_titled = len(pieces) == 1 or (not self.is_own and 2 * lines <= len(pieces))
        return [
            piece.form in {"item", "task", "front"}
            or (piece.form == "pair" and not self.is_journal)
            or (
                piece.form == "line"
                and are_lines
                and (self.is_own or _is_sentence(one))
                and not (at == 0 and is_titled and _stands_alone(self.text, piece))
            )
            for at, (piece, one) in enumerate(zip(pieces, said, strict=True))
        ]


def note_of(text: str, path: str) -> Note:
    """Of a document; `path` is empty for one that lies in no place."""
    subject = _subject_of(path)
    journal = Journal(text)
    pieces = tuple(part for piece in statements(text) for part in _clauses(piece))
    stem, folder = _stem(path), _stem(path.rpartition("/")[0])
    titles = (stem.replace("-", " "), *(piece.headings[0] for piece in pieces[:1] if piece.headings))
    is_to_keep = folder in _RECORDS_STEMS or any(map(_TO_KEEP.search, titles))
    is_own = is_to_keep or stem in _OWN_STEMS
    said = [cleaned(piece.text) for piece in pieces]
    names = names_within(said) | {word.title() for word in subject.split()}
    return Note(
        text=text,
        path=path,
        pieces=pieces,
        journal=journal,
        is_journal=_is_journal(pieces, journal, path),
        subject=subject,
        is_record=folder in _RECORDS_STEMS,
        is_to_keep=is_to_keep,
        is_own=is_own,
        names=names | {one.split(maxsplit=1)[0] for one in said if one and is_own},
        members=_members(pieces),
    )


def _members(pieces: Sequence[Statement]) -> frozenset[str]:
    """Keys of lines that are people, in what a group writes down of what each did: one of them is "me"."""
    keys = {piece.key for piece in pieces if piece.key}
    if not any(key.casefold() in SELF for key in keys):
        return frozenset()
    return frozenset(key for key in keys if key.casefold() in SELF or (key.istitle() and " " not in key))


def _is_journal(pieces: Sequence[Statement], journal: Journal, path: str) -> bool:
    """Whether it is named after a day, or a third of what it says stands under one or behind one."""
    dated = sum(journal.day_at(piece.start) is not None for piece in pieces)
    led = sum(DAY_PREFIX.match(piece.text) is not None for piece in pieces)
    return named_by(path) is not None or 0 < dated >= len(pieces) / 3 or 1 < led >= len(pieces) / 3


def _subject_of(path: str) -> str:
    """`user` for files about the user, the project for memories of agents, which are called after what they say, else what the
    file is called."""
    folder, _, name = path.rpartition("/")
    if _AGENT_NAME.search(name) and folder.startswith("/memory/"):
        name = folder.rpartition("/")[2]
    if not name or is_secret(name):
        return USER
    base = _stem(name)
    is_own = base in _USER_STEMS or _OF_DAYS.fullmatch(base) is not None or not base or path.startswith("/user/")
    return USER if is_own else base.replace("-", " ")


def _stem(path: str) -> str:
    name = path.rpartition("/")[2].rsplit(".", 1)[0]
    return re.sub(r"[_ ]", "-", re.sub(r"^\d{4}-\d{2}-\d{2}[-_ ]?", "", name)).casefold()


def _stands_alone(text: str, piece: Statement) -> bool:
    """Whether an empty line follows, or nothing."""
    rest = text[piece.end :]
    return not rest.strip() or rest.lstrip(" \t\r").startswith(("\n\n", "\n\r\n"))


def _is_sentence(said: str) -> bool:
    """Whether a line says something, and is no name, title, address or number."""
    words = [plain for word in said.split() if (plain := word.lstrip("(\"'“")) and plain[0].isalpha()]
    return 2 * sum(word[:1].islower() for word in words) >= max(len(words), _SENTENCE_MIN_WORDS)


def _with_names(text: str, pieces: Sequence[Statement], about: str | None) -> list[Statement]:
    """With the name in place of "she" and "he" where a paragraph tells who that is, or the text is `about` somebody."""
    goes_on = [
        before is not None and piece.form == before.form and _BETWEEN.fullmatch(text, before.end, piece.start) is not None
        and "\n\n" not in text[before.end : piece.start]
        for before, piece in zip([None, *pieces], pieces, strict=False)
    ]  # fmt: skip
    said = resolved([piece.text for piece in pieces], goes_on=goes_on, about=about)
    return [replace(piece, text=one) for piece, one in zip(pieces, said, strict=True)]


def _clauses(piece: Statement) -> list[Statement]:
    """What a sentence says, one fact each."""
    found = clauses(piece.text) if piece.form in {"item", *SENTENCES} else []
    if len(found) < 2:
        return [piece]
    return [replace(piece, start=piece.start + start, end=piece.start + end, text=text) for start, end, text in found]
