"""What a passage points to and whom it names: file references, addresses, ticket numbers, identifiers, names.

Two passages that mention the same rare thing are connected (`store.passages.entity_links`), and a reference connects a passage
with a file. What is found here is derived from the text alone, so that it is the same in every engine and whenever it is
asked. Regular expressions over at most TEXT_MAX_CHARS; the first MENTIONS_MAX things of a passage, the surest kinds first.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import unquote

from memdir.store.text.words import fold

MENTIONS_MAX: Final = 32
"""Of one passage; a passage of 300 words of prose has about ten."""
TEXT_MAX_CHARS: Final = 8_000
_NAME_MIN_CHARS: Final = 3
_NAME_MAX_CHARS: Final = 120

FILE: Final = "file"
ID: Final = "id"
NAME: Final = "name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One thing mentioned. `text` is as it was first written there, `key` what makes two of them the same."""

    kind: str
    """FILE: a reference to a file; ID: an address, a number, an identifier; NAME: a capitalised name."""
    key: str
    text: str
    start: int
    """Character of the passage where it first stands."""

    @property
    def number(self) -> int:
        return key_number(self.key)


def key_number(key: str) -> int:
    """A key as the signed 64-bit number that is stored. Two keys in a container of 10 million meet by chance once in 400,000
    such containers, and then connect two passages too many."""
    return int.from_bytes(hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).digest(), "big", signed=True)


def mentions(text: str, *, limit: int = MENTIONS_MAX) -> list[Mention]:
    """What `text` mentions: references first, then ids, then names; each once, at its first place."""
    text = text[:TEXT_MAX_CHARS]
    found: dict[str, Mention] = {}
    taken: list[tuple[int, int]] = []
    for reference, start in _references(text):
        key = f"{FILE}:{slug(posixpath.basename(reference))}"
        found.setdefault(key, Mention(kind=FILE, key=key, text=reference, start=start))
        taken.append((start, start + len(reference)))
    for word, start in _ids(text):
        key = f"{ID}:{fold(word)}"
        found.setdefault(key, Mention(kind=ID, key=key, text=word, start=start))
    for name, start, _ in sorted(_names(text), key=lambda item: (item[2], item[1]))[: 4 * MENTIONS_MAX]:
        if any(first <= start < end for first, end in taken):
            continue
        key = f"{NAME}:{name_key(name)}"
        found.setdefault(key, Mention(kind=NAME, key=key, text=name, start=start))
    return list(found.values())[:limit]


def references(text: str) -> list[str]:
    """The file references of a text as they stand there, each once."""
    return list(dict.fromkeys(reference for reference, _ in _references(text[:TEXT_MAX_CHARS])))


def name_key(name: str) -> str:
    """Names that differ in case, accents or an English genitive only are the same."""
    folded = fold(name)
    for ending in ("'s", "\N{RIGHT SINGLE QUOTATION MARK}s"):
        folded = folded.removesuffix(ending)
    return folded


def slug(name: str) -> str:
    """A file's name or title without regard to case, accents, spaces and punctuation."""
    return "-".join(_WORDS.findall(fold(name).replace("_", " ")))


def file_keys(path: str) -> tuple[str, ...]:
    """The keys under which others refer to the file at `path`: by its name, or by its name without the suffix."""
    name = posixpath.basename(path)
    stem = name.rsplit(".", 1)[0] if "." in name[1:] else name
    return tuple(dict.fromkeys(f"{FILE}:{slug(part)}" for part in (name, stem)))


_WORDS: Final = re.compile(r"\w+")

# References -----------------------------------------------------------------------------------------------------------------

_SUFFIXES: Final = (
    "md|markdown|mdx|rst|adoc|org|txt|text|log|eml|mbox|msg|vtt|srt|csv|tsv|json|jsonl|ndjson|yaml|yml|toml|ini|cfg|conf|env|xml|"
    "html|htm|pdf|doc|docx|odt|rtf|xls|xlsx|ods|ppt|pptx|odp|py|pyi|ipynb|js|jsx|ts|tsx|mjs|cjs|go|rs|java|kt|c|h|cc|cpp|hpp|cs|"
    "rb|php|swift|scala|sh|bash|zsh|fish|ps1|sql|r|lua|pl|css|scss|tf|proto|graphql|png|jpg|jpeg|gif|svg|webp|heic|mp3|wav|m4a|"
    "ogg|mp4|mov|mkv|webm|zip|tar|gz|ics|vcf"
)
_MARKDOWN_LINK: Final = re.compile(r"\]\(\s*<?([^)\s<>]{1,300})>?[^)\n]{0,200}\)")
_WIKI_LINK: Final = re.compile(r"\[\[([^\]|#\n]{1,150})[^\]\n]{0,150}\]\]")
_FILE_NAME: Final = re.compile(
    rf"(?<![\w/.@-])((?:\.{{0,2}}/)?(?:[\w.-]{{1,80}}/){{0,8}}[\w][\w.-]{{0,100}}\.(?:{_SUFFIXES}))(?![\w/])"
)
_PYTHON_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+([.\w]{1,150})[ \t]+import\b|import[ \t]+([.\w]{1,150}))", re.MULTILINE
)
_SCRIPT_IMPORT: Final = re.compile(r"""\b(?:from|require\(|import|import\()\s*['"](\.{1,2}/[^'"\n]{1,200})['"]""")
_C_INCLUDE: Final = re.compile(r"^[ \t]*#[ \t]*include[ \t]+[\"<]([^\">\n]{1,200})[\">]", re.MULTILINE)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:")


def _references(text: str) -> Iterator[tuple[str, int]]:
    if "](" in text:
        for match in _MARKDOWN_LINK.finditer(text):
            target = unquote(match[1]).split("#", 1)[0].split("?", 1)[0]
            if target and _SCHEME.match(target) is None:
                yield target, match.start(1)
    if "[[" in text:
        yield from ((match[1].strip(), match.start(1)) for match in _WIKI_LINK.finditer(text) if match[1].strip())
    if "." in text:
        yield from ((match[1], match.start(1)) for match in _FILE_NAME.finditer(text) if "//" not in match[1])
    if "import" in text or "require(" in text or "from " in text:
        yield from _imports(text)
    if "include" in text:
        yield from ((match[1], match.start(1)) for match in _C_INCLUDE.finditer(text))


def _imports(text: str) -> Iterator[tuple[str, int]]:
    for match in _PYTHON_IMPORT.finditer(text):
        module = (match[1] or match[2]).strip(".")
        if module:
            yield module.replace(".", "/") + ".py", match.start()
    yield from ((match[1], match.start(1)) for match in _SCRIPT_IMPORT.finditer(text))


# Ids ------------------------------------------------------------------------------------------------------------------------

_DIGIT: Final = re.compile(r"\d")
_ADDRESS: Final = re.compile(r"[\w.+%-]{1,100}@[\w-]{1,60}(?:\.[\w-]{1,60}){1,5}")
_URL: Final = re.compile(r"https?://[^\s<>\"'\])}]{4,300}")
_TICKET: Final = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,9}-\d{1,8}(?![\w-])")
_ISSUE: Final = re.compile(r"(?<![\w#&/])#\d{2,8}\b")
_MIXED: Final = re.compile(r"(?<![\w.-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9][A-Za-z0-9-]{2,62}[A-Za-z0-9](?![\w-])")
_IDENTIFIER: Final = re.compile(r"\b(?:[A-Za-z][A-Za-z0-9]*_\w*[A-Za-z0-9]|[a-z][a-z0-9]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b")
_NUMBER: Final = re.compile(r"(?<![\w.,/:-])\d{5,20}(?![\w,/:-]|\.\d)")
_EACH_DAY: Final = re.compile(
    r"\d{1,4}(?:st|nd|rd|th|am|pm|ms|kg|km|mm|cm|px|gb|mb|kb|h|min|x\d+|[A-Za-z]{1,2})", re.IGNORECASE
)


def _ids(text: str) -> Iterator[tuple[str, int]]:
    if "@" in text:
        yield from ((match[0].rstrip("."), match.start()) for match in _ADDRESS.finditer(text))
    if "://" in text:
        yield from ((match[0].rstrip(".,;:!?/"), match.start()) for match in _URL.finditer(text))
    if _DIGIT.search(text) is not None:
        yield from ((match[0], match.start()) for match in _TICKET.finditer(text))
        if "#" in text:
            yield from ((match[0], match.start()) for match in _ISSUE.finditer(text))
        for match in _MIXED.finditer(text):
            if _EACH_DAY.fullmatch(match[0]) is None:
                yield match[0], match.start()
        yield from ((match[0], match.start()) for match in _NUMBER.finditer(text))
    yield from ((match[0], match.start()) for match in _IDENTIFIER.finditer(text) if len(match[0]) <= _NAME_MAX_CHARS)


# Names ----------------------------------------------------------------------------------------------------------------------

_UPPER: Final = (
    "A-Z\u00c0-\u00d6\u00d8-\u00de\u0100\u0102\u0104\u0106\u010c\u010e\u0110\u0118\u011a\u0130\u0141\u0143\u0147\u0158\u015a\u015e"
    "\u0160\u0164\u016e\u0170\u0178\u0179\u017b\u017d\u0391-\u03a9\u0401-\u042f"
)
_CAPITALISED: Final = rf"[{_UPPER}](?:[\w]|['\N{{RIGHT SINGLE QUOTATION MARK}}&-](?=\w)){{1,40}}"
_PARTICLE: Final = r"(?:(?:de|del|da|di|von|van|der|den|la|le|du|of)[ \t])?"
_RUN: Final = re.compile(rf"(?<![\w/@.'_-]){_CAPITALISED}(?:[ \t]{{1,2}}{_PARTICLE}{_CAPITALISED}){{0,4}}")
_KATAKANA: Final = re.compile("[\u30a1-\u30fa\u30fc]{3,20}")
_BEGINS: Final = re.compile(r"(?:^|[.!?:;*>#|\"(\u201c\u201e\u00ab-])[ \t]*$|\n[ \t]*$")
_PLAIN: Final = """
    the this that these those there their they then than thanks and any all also are was were what when where which
    while who why will with would you your yes not now next note notes nobody nothing new no our one only once other
    please since some so still such she should see from for first after again as at before both but by can could dear
    did do does done each either every few has have he hello her here hi his how however i if in into is it its just last let
    later like made many may maybe me more most my never of off on or out over per re regards same best kind subject
    date sent to cc bcc fwd fw todo ok okay about today tomorrow yesterday monday tuesday wednesday thursday friday
    saturday sunday january february march april june july august september october november december mon tue wed thu
    fri sat sun jan feb mar apr jun jul aug sep sept oct nov dec am pm gmt utc der die das ein eine einen einem und oder
    wir ich sie er es ist war wird mit von vom zum zur bei nach vor aus auf im den dem des nicht kein keine bitte danke
    hallo liebe lieber betreff datum montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar mai juni
    juli oktober dezember el la los las un una y o que por para con de del en se su sus fue le les une et ou dans pour
    avec sur au aux du ce cette ces il elle nous vous ils elles je
"""
_PLAIN_WORDS: Final = frozenset(_PLAIN.split())
"""Written with a capital at the beginning of a sentence or a line, or always, and still no names."""


def _names(text: str) -> Iterator[tuple[str, int, int]]:
    """Names with their place and rank: 0 for several words side by side, 1 for one inside a sentence, 2 for a single word at
    the beginning of one, which is a name only perhaps."""
    for match in _RUN.finditer(text):
        words = [(piece[0], match.start() + piece.start()) for piece in re.finditer(r"\S+", match[0])]
        while words and name_key(words[0][0]) in _PLAIN_WORDS:
            words.pop(0)
        if not words:
            continue
        capitals = [item for item in words if name_key(item[0]) not in _PLAIN_WORDS]
        for (left, start), (right, _) in pairwise(capitals):
            yield f"{left} {right}", start, 0
        alone = len(capitals) == 1
        begins = alone and capitals[0][1] == match.start() and _BEGINS.search(text, max(0, match.start() - 40), match.start())
        for word, start in capitals:
            if _NAME_MIN_CHARS <= len(word) <= _NAME_MAX_CHARS:
                yield word, start, 2 if begins else 1
    if not text.isascii():
        yield from ((match[0], match.start(), 1) for match in _KATAKANA.finditer(text))


def numbers(text: str, *, limit: int = MENTIONS_MAX) -> list[int]:
    """The stored numbers of what a passage mentions, in ascending order, each once."""
    return sorted({mention.number for mention in mentions(text, limit=limit)})


def resolved(reference: str, source: str | None) -> Sequence[str]:
    """Absolute paths that `reference` in the file at `source` may mean, the likeliest first: as it stands from the source's
    folder, then from the root. A name without a suffix may mean a note or a module of that name."""
    if not reference or len(reference) > 1000:
        return ()
    folder = posixpath.dirname(source) if source else "/"
    relative = posixpath.normpath(posixpath.join(folder, reference.lstrip("/") if reference.startswith("~/") else reference))
    paths = [relative, posixpath.normpath("/" + reference.lstrip("/"))]
    made = [path for path in dict.fromkeys(paths) if path.startswith("/") and path != "/" and not path.startswith("//")]
    if "." in posixpath.basename(reference):
        return made
    return [*made, *(path + suffix for path in made for suffix in _IMPLIED_SUFFIXES)]


_IMPLIED_SUFFIXES: Final = (".md", ".txt", ".ts", ".tsx", ".js", ".py", "/index.ts", "/index.js", "/README.md")


def base_names(reference: str) -> Sequence[str]:
    """Names of files that `reference` may mean wherever they stand, its own spelling first."""
    base = posixpath.basename(reference.rstrip("/"))
    if not base:
        return ()
    if "." in base[1:]:
        return (base,)
    spellings = dict.fromkeys((base, base.replace(" ", "-"), base.replace(" ", "_"), slug(base)))
    return tuple(spelling + suffix for spelling in spellings for suffix in (".md", ".txt"))
