"""Whom a document is about by its name and its folder: the user, somebody, a project, or what it is called. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal

from memdir.memory.assistants import is_of_assistant
from memdir.memory.claims import USER
from memdir.memory.dates import ANY_WEEKDAY
from memdir.memory.guard import is_secret
from memdir.memory.people_tables import is_of_cards
from memdir.memory.references import AGENT_NAME
from memdir.memory.task_lists import TASK_LIST_NAME

OWN_STEMS: Final = frozenset(
    """
    user me about about-me profile user-profile my-profile memory memories preferences prefs my-preferences identity now
    human human-block user-info user-facts user-memory user-memories user-context user-preferences about-user about-the-user
    core-memory long-term-memory
    claude agents life personal health medical bio how-to-work-with-me working-with-me work-with-me manual-of-me
    user-manual-of-me my-user-manual readme-me personal-readme emergency emergency-info in-case-of-emergency notfall
    allergies medications medication meds prescriptions supplements vaccinations
    ich über-mich profil vorlieben moi à-propos-de-moi préférences yo sobre-mi sobre-mí perfil preferencias
    """.split()  # noqa: SIM905
)
"""Names of files in which every item is there to be remembered, however many there are."""
BIOGRAPHY_STEMS: Final = frozenset({"bio", "biography", "about", "about-me", "biografie", "biografía"})
"""Names of files that tell of the user as others would: "Nadia Rahman grew up in Dhaka"."""
_USER_STEMS: Final = OWN_STEMS | frozenset(
    """
    settings readme index okrs fitness workouts workout-log training-log running-log symptoms work job employment arbeit beruf
    trabajo empleo travail
    """.split()  # noqa: SIM905
)
TASTES: Final = r"(?:[a-z]+-){1,2}(?:preferences|prefs|sizes|measurements)"
"""Names of files that tell of the user in one respect, and of their lines: `travel-preferences`."""
_HABITS: Final = re.compile(rf"{TASTES}|(?:[a-z]+-){{1,2}}(?:habits|routines?|vorlieben|préférences)")
_OF_DAYS: Final = re.compile(
    r"(?:(?:daily|weekly|monthly|yearly|my|dev|work|personal|quick|random|private|meine?|mis|mes)-)*"
    r"(?:notes?|journal|diary|log|logbook|reviews?|retro|inbox|to-?dos?|tasks?|stand-?ups?|scratch(?:pad)?|week|month|ideas|"
    r"reflections?|brain-?dump|goals|resolutions|habits|bucket-?list|brag(?:-?doc)?|"
    r"wins|achievements|accomplishments|quick|capture|misc|random|untitled|tagebuch|notizen|diario|notas|carnet)"
    r"(?:-?(?:for-)?[wq]?\d+)*|(?:\d{4}-?)?[wq]\d+"
)
"""Names of files that people write into day by day, about themselves."""
_MONTH_OR_NAME: Final = r"jan|may|april|june|august|julio"
"""Months that people are called, too: only with a number, or in a folder of a journal or a year."""
_PERIOD: Final = (
    r"january|januar|janvier|enero|feb(?:ruary|ruar|rero)?|f[eé]vrier|mar(?:ch|s|zo)?|märz|apr|avril|abril|mai|mayo|jun[io]?|juin|"
    r"junio|jul[iy]?|juillet|aug|ao[uû]t|agosto|sept?(?:ember|embre|iembre)?|septiembre|o[ck]t(?:ober|obre|ubre)?|"
    r"nov(?:ember|embre|iembre)?|de[cz](?:ember)?|d[eé]cembre|diciembre|"
    rf"{ANY_WEEKDAY}|spring|summer|autumn|fall|winter|christmas|frühling|sommer|herbst|"
    r"printemps|été|automne|hiver|primavera|verano|otoño|invierno|week|[hqw]\d{1,2}"
)
_NUMBERS: Final = r"\d{1,4}(?:[-.]\d{1,4}){0,2}"
_OF_PERIOD: Final = re.compile(
    rf"(?:(?:my|notes?|journal|diary|log)-)*(?:{_NUMBERS}|(?:{_NUMBERS}-)?(?:{_PERIOD})(?:-?{_NUMBERS})?|"
    rf"{_NUMBERS}-?(?:{_MONTH_OR_NAME})(?:-{_NUMBERS})?|(?:{_MONTH_OR_NAME})-?{_NUMBERS}|this-(?:week|month|year)|to(?:day|morrow)|"
    r"yesterday|heute|hoy|hier)(?:-(?:notes?|journal|diary|log))?"
)
"""Names of files of a day, a month or another time."""
_GENERIC: Final = re.compile(
    r"(?:(?:my|new|phone|some|other|all|neue|nueva|nouvelle)-)*(?:notes?|things?|stuff|thoughts|brain|dump|files?|facts|updates?|"
    r"news|drafts?|temp|tmp|dail(?:y|ies)|weekl(?:y|ies)|monthly|(?:voice-?)?memos?|voice-?notes?|recordings?|dictations?|transcripts?|tests?|life-stuff|everything|misc|notizen?|notas?|divers|varios|sonstiges|unbenannt|sans-titre|"
    r"sin-título)(?:-?\d+)?"
)
"""Names that tell nothing of what is in a file."""
_GROUPS_STEMS: Final = frozenset(
    "team family friends colleagues familie freunde kollegen famille amis collègues familia amigos".split()  # noqa: SIM905
)
"""What lies in a folder below theirs need not be of one of them: `team/standups`."""
_PEOPLE_STEMS: Final = _GROUPS_STEMS | frozenset(
    "people persons contacts clients customers kontakte personen leute kunden personnes personas clientes".split()  # noqa: SIM905
)
_PROJECTS_STEMS: Final = frozenset({"projects", "projekte", "projets", "proyectos"})
RECORDS_STEMS: Final = _PEOPLE_STEMS | _PROJECTS_STEMS
"""Names of files in which each heading is somebody, or a project, and what stands below is of it; and of folders in which each
file is."""
_RECORD_FOLDER: Final = re.compile(
    rf"(?P<record>(?:.*/)?(?:\d{{1,3}}[ ._-]+)?(?:person|{'|'.join(sorted(RECORDS_STEMS - _GROUPS_STEMS))})/"
    r"(?:(?:archived?|done|active|inactive|current|completed|finished|old|paused|someday|work|personal|private|\d{4})/)*"
    r"[^/]+)/",
    re.IGNORECASE,
)
"""A folder of one person or project, which each file in it is about: `people/Ana Ruiz/notes.md`."""
_CV: Final = r"(?:cv|resum[eé]|résumé|curriculum(?:-vitae)?|vitae|lebenslauf|currículum|linkedin(?:-profile)?)"
_CV_EDITION: Final = r"(?:-(?:\d{4}(?:-\d\d){0,2}|[a-z]{2}|english|deutsch|español|français|short|long|final))*"
_CV_OWNER: Final = (
    r"(?!(?:my|mein|mi|mon)-|\S*\b(?:on|the|of|to|for|an?|in|with|and|work|template|tips)\b)[^\W\d_]{2,}(?:-[^\W\d_]+){0,3}?"
)
_CV_NAME: Final = re.compile(
    rf"(?:my-|mein-|mi-|mon-)?{_CV}{_CV_EDITION}|(?P<before>{_CV_OWNER})-{_CV}{_CV_EDITION}|{_CV}-(?P<behind>{_CV_OWNER}){_CV_EDITION}"
)
_OWN_FOLDER: Final = re.compile(
    r"(?:\d+[-_. ]+)?(?:me|my|user|memory|personal|private?|profile|about(?:[-_ ]me)?|career|jobs?|work|cvs?|"
    r"resumes?|documents?|docs|dokumente|applications?|bewerbung(?:en)?|karriere|currículum|documentos)?",
    re.IGNORECASE,
)
"""Where one's own lies; in another folder, called after somebody, it is theirs."""
_NO_NAME: Final = re.compile(r"^\d{4}[-_. ]?\d{2}[-_. ]?\d{2}(?:\d{4}|\d{6})?(?!\d)[-_ ]*|[ _-][0-9a-f]{32}$")
"""Of a file's name the day, and the number that Notion gives."""


def subject_of(path: str) -> str:
    """`user` for files about the user, the project for memories of agents, which are called after what they say, else what the
    file, or the folder of one person or project, is called."""
    folder, _, name = record_of(path).rpartition("/")
    if AGENT_NAME.search(name) and folder.startswith("/memory/"):
        name = folder.rpartition("/")[2]
    base = stem_of(name)
    if not name or is_secret(title_of(name)):
        return USER
    if record_of(path) == path and (whose := resume_owner(path)) is not None:
        return whose
    is_own = base in _USER_STEMS or is_of_assistant(base) or any(one.fullmatch(base) for one in (_OF_DAYS, TASK_LIST_NAME))
    is_own = is_own or is_own_resume(path) or _HABITS.fullmatch(base) is not None
    above = stem_of(folder)
    if above not in RECORDS_STEMS:
        is_month = re.fullmatch(_MONTH_OR_NAME, base) is not None and (above.isdigit() or _OF_DAYS.fullmatch(above) is not None)
        is_own = is_own or is_month or any(one.fullmatch(base) for one in (_OF_PERIOD, _GENERIC))
    if is_own or not base or path.startswith("/user/"):
        return USER
    written = re.sub(r"[_-]|(?<=[a-z]{4})(?=[A-Z][a-z])", " ", title_of(name)).strip()
    return written.title() if written.islower() and stem_of(folder) in _PEOPLE_STEMS else written


def holds_records(heading: str) -> bool:
    """Whether each heading below one is somebody, or a project: "Projects", "Current projects"."""
    return heading.casefold().rpartition(" ")[2] in RECORDS_STEMS - _GROUPS_STEMS


def is_about_user(path: str) -> bool:
    """Whether a file is about the user by its name, or lies in no place."""
    stem = stem_of(path)
    is_named = stem in OWN_STEMS or is_of_assistant(stem) or is_own_resume(path)
    return not path or is_named or path.startswith("/user/")


def kind_of_subject(path: str, subject: str) -> Literal["person", "project"] | None:
    """What a fact in a file is about, where the file, or its folder, is one of people, or of projects, and says whom it is
    about: by its own name, or by its headings."""
    stem, folder = stem_and_folder(path)
    if is_of_cards(path):
        return "person"
    if stem in RECORDS_STEMS:
        return None if subject in {USER, stem} else "person" if stem in _PEOPLE_STEMS else "project"
    if folder not in RECORDS_STEMS or subject != subject_of(path).casefold():
        return None
    return "person" if folder in _PEOPLE_STEMS else "project"


def is_resume(path: str) -> bool:
    """Whether a file is a curriculum vitae by its name, whoever's."""
    return _as_resume(path) is not None


def resume_owner(path: str) -> str | None:
    """Whose curriculum vitae a file is, where its name or its folder says so; None for the user's, and for what is none."""
    found = _as_resume(path)
    if found is None:
        return None
    whose, folder = found["before"] or found["behind"], path.rpartition("/")[0].rpartition("/")[2]
    if whose:
        return str(whose).replace("-", " ").title()
    return None if _OWN_FOLDER.fullmatch(folder) else folder


def is_own_resume(path: str) -> bool:
    """Whether a file is the user's curriculum vitae, by its name and by where it lies."""
    return is_resume(path) and resume_owner(path) is None


def _as_resume(path: str) -> re.Match[str] | None:
    return _CV_NAME.fullmatch(re.sub(r"[-.]+", "-", stem_of(path)))


def record_of(path: str) -> str:
    """The path of the folder of one person or project that a file lies in, else its own."""
    found = _RECORD_FOLDER.match(path)
    return path if found is None else found["record"]


def stem_and_folder(path: str) -> tuple[str, str]:
    """Stems of a file, or of the folder of one person or project, and of the folder around it."""
    place = record_of(path)
    return stem_of(place), stem_of(place.rpartition("/")[0])


def title_of(path: str) -> str:
    """What a file is called, without the end of its name, a day and a number."""
    return _NO_NAME.sub("", path.rpartition("/")[2].rsplit(".", 1)[0])


def stem_of(path: str) -> str:
    return re.sub(r"[_ ]", "-", title_of(path)).casefold()
