"""Texts that somebody else wrote, or that are about such: nothing in them is remembered. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.core.siblings import TRANSCRIBED_SUFFIXES

AGENT_NAME: Final = re.compile(r"-[0-9a-f]{6}\.md$")
"""As `store.agents.files.slug` names a file."""
HEAD_CHARS: Final = 1000
_REFERENCE: Final = (
    r"(?:book|reading|literature|lecture|course|class|film|movie|podcast|article|paper|kindle)s?[- ]"
    r"(?:notes?|highlights?|summar\w+)|"
    r"literature|lectures?|courses?|articles?|papers?|clippings?|web-?clips?|highlights|readwise|pocket|instapaper|kindle|"
    r"books?|bookshelf|novels?|fiction|stor(?:y|ies)|poems?|poetry|lyrics|quotes?|quotations?|recipes?|templates?|"
    r"bücher|artikel|zitate|rezepte|vorlagen|vorlesungen|gedichte|libros|artículos|citas|recetas|plantillas|poemas|"
    r"livres|citations|recettes|modèles|poèmes"
)
_REFERENCE_FOLDER: Final = re.compile(rf"/(?:\.github|(?:\d+[-_. ]+)?(?:{_REFERENCE})(?:[ _-][0-9a-f]{{32}})?)/", re.IGNORECASE)
_OF_PROGRAMS: Final = re.compile(
    r"(?:AUTHORS|BUGS|CHANGE(?:LOG|S)[\d.]*|CODE_OF_CONDUCT|CONTRIBUT(?:ING|ORS)|COPYING(?:\.LIB)?|COPYRIGHT|copyright|DCO|"
    r"GOVERNANCE|HACKING|(?:\w+_)?LICEN[CS]E|INSTALL|LIESMICH|MAINTAIN(?:ERS|ING|ENCE)|NEWS|NOTICE|PATENTS|RELEAS(?:ES|ING)|SECURITY|SUPPORT|THANKS|"
    r"UPGRAD(?:E|ING)|(?:[Dd]ebian\.)?[Cc]hange[Ll]og|"
    r"(?:.*[_.-])?(?i:faq))(?:[.-](?:md|txt|rst|org|gz|[\dA-Z].*))?|"
    r"READ_?ME(?:\.txt|\.rst|[._-][\dA-Z].*)?|.*\.Debian(?:\.md|\.txt)?"
)
"""Names of files that come with every program."""
_SUFFIX: Final = re.compile(r"[^.].*\.(?P<suffix>[a-z][a-z0-9_+-]{0,9}|[A-Z]{2,5})")
_NOTE_SUFFIXES: Final = TRANSCRIBED_SUFFIXES | frozenset(
    """
    md markdown mdown mkd mdx qmd txt text org rst adoc asciidoc wiki textile tex rtf note notes memo journal diary
    doc docx odt pages epub htm html xhtml mht mhtml webarchive eml msg mbox ppt pptx odp xls xlsx ods csv tsv key numbers
    vcf ics one
    """.split()  # noqa: SIM905
)
"""Ends of names of what people write; other files that have one are read by programs."""
_PROGRAM_MARKS: Final = re.compile(
    r"^[ \t]*\.\. (?:(?!(?:note|tip|hint|important|warning|todo|image|figure|contents)::)[a-z][\w:+-]*::|_[^\n:]+:[ \t]*$)|"
    r":(?:ref|doc|class|func|meth|mod|term):`|!\[[^\]\n]*\]\(https?://[^)\s]*(?:badge|shields\.io)|"
    r"^#{1,4} (?:Synopsis|SYNOPSIS|See [Aa]lso|SEE ALSO)[ \t]*$|"
    r"^(?:#{1,3} )?\S[^\n]{0,40} v?\d+\.\d[\w.]* [Rr]elease [Nn]otes\b|"
    r"^\d{4}-\d\d-\d\d  ?[A-Z][^\n<]{2,40}  ?<[^\s<>@]+@[^\s<>]+>|"
    r"\A#!|^(?:# [^\n]{48,}\n){2}# [^\n]*\n|"
    r"^-----BEGIN [A-Z ]+-----|^Format: https?://www\.debian\.org/doc/packaging-manuals/",
    re.MULTILINE,
)
"""Directives, targets and roles of reStructuredText, scripts, comments of settings over several lines, badges, titles of
release notes, entries of GNU change logs, Debian's copyrights and certificates, which programs' documents have, and seldom
somebody's notes."""
_FORTUNE_END: Final = re.compile(r"^%$", re.MULTILINE)
"""Between sayings, as `strfile` reads them."""
_FORTUNES_MIN: Final = 3
TAG_BELOW: Final = r"^(?:tags?|categor(?:y|ies)):[ \t]*\r?(?:\n[ \t]*-[ \t][^\n]*){0,20}?\n[ \t]*-[ \t]+[\"'#]*"
"""Up to a tag in a list that has each on a line of its own."""
_FROM_ELSEWHERE: Final = re.compile(
    rf"^(?:source|original|via|clipped(?:[ _-](?:from|url))?|quelle|fuente)::?[ \t]*[\"'<\[]*https?://|"
    rf"^(?:isbn|doi)::?[ \t]*\S|^tags?::?[^\n]*[ \t\[#,'\"](?:{_REFERENCE})(?=[\s\],'\"]|$)|"
    rf"{TAG_BELOW}(?:{_REFERENCE})[\"']?[ \t]*\r?$",
    re.IGNORECASE | re.MULTILINE,
)
"""What the head of a text says that was taken from a page or a book, or is about one."""
_OF_PAGE: Final = re.compile(r"^(?:url|link)::?[ \t]*[\"'<\[]*https?://", re.IGNORECASE | re.MULTILINE)
_OF_AUTHOR: Final = re.compile(
    r"^(?:authors?|published|publisher|site)::?[ \t]*\S|^type::?[ \t]*[\"']?(?:web|article|clipping|bookmark)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Where both are said, too."""


def is_reference(text: str, path: str) -> bool:
    """Whether a text is what somebody else wrote, or is about such: a page that was clipped, notes on a book, a recipe, a
    template, what comes with a program or is read by one; by its name, its folder, what its head says, or its markup."""
    if AGENT_NAME.search(path) and path.startswith("/memory/"):
        return False
    head = text[:HEAD_CHARS]
    is_page = _OF_PAGE.search(head) is not None and _OF_AUTHOR.search(head) is not None
    name = path.rpartition("/")[2]
    of_kind = _SUFFIX.fullmatch(name)
    is_read_by_programs = of_kind is not None and of_kind["suffix"].lower() not in _NOTE_SUFFIXES
    is_named_so = _REFERENCE_FOLDER.search(path) is not None or _OF_PROGRAMS.fullmatch(name) is not None
    is_marked_so = _PROGRAM_MARKS.search(text) is not None or len(_FORTUNE_END.findall(text)) >= _FORTUNES_MIN
    return is_page or is_named_so or is_read_by_programs or _FROM_ELSEWHERE.search(head) is not None or is_marked_so
