"""Markdown and its relatives: front matter, headings, fences, tables, list items, paragraphs. And other text whose headings
are lines of it: reStructuredText and plain text like it, Org mode, LaTeX."""

from __future__ import annotations

import re
from typing import Final

from memdir.core.frontmatter import BOOKKEEPING, listed, parse
from memdir.ingest.chunker.blocks import TITLE_MAX_CHARS, Block, Line, Outline, clip, lines_of
from memdir.store.text.wrapping import is_rule, is_title

_ATX: Final = re.compile(r" {0,3}(#{1,6})[ \t]+")
_ATX_END: Final = re.compile(r"(?:^|(?<=[ \t]))#+$")
_OTHER_HEADING: Final = re.compile(r"(?P<mark>={1,6}|\*{1,6})[ \t]+(?P<text>\S.*)$")
_FENCE: Final = re.compile(r"[ \t]{0,3}(`{3,}|~{3,})")
_BACKTICKS: Final = re.compile(r"[ \t]{0,3}(`{3,})")
"""The fence of text in which tildes are rules of titles."""
_ORG_HEADING: Final = re.compile(r"(\*{1,8})[ \t]+(?:(?:TODO|NEXT|WAITING|DONE)[ \t]+)?")
"""Stars and the keyword of a task; behind the heading may stand tags (orgmode.org/worg/org-syntax.html)."""
_ORG_TAGS: Final = re.compile(r"(?<=[ \t]):[\w@#%:]+:$")
_ORG_FENCE: Final = re.compile(r"[ \t]*#\+begin_(src|example|export)\b", re.IGNORECASE)
_ORG_TITLE: Final = re.compile(r"#\+title:[ \t]*(.+?)[ \t]*$", re.IGNORECASE)
_LATEX_LEVELS: Final = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_LATEX_HEADING: Final = re.compile(
    rf"[ \t]*\\(?P<mark>{'|'.join(_LATEX_LEVELS)})\*?(?:\[[^\]]*\])?\{{(?P<text>(?:[^{{}}]|\{{[^{{}}]*\}})+)\}}"
)
_LATEX_FENCE: Final = re.compile(r"[ \t]*\\begin\{(verbatim|lstlisting|minted|comment)\}")
_LATEX_TITLE: Final = re.compile(r"^[ \t]*\\title(?:\[[^\]]*\])?\{((?:[^{}]|\{[^{}]*\}){1,400})\}", re.MULTILINE)
_LATEX_COMMAND: Final = re.compile(r"\\(?:footnote|thanks|label|cite\w*)\{[^{}]*\}|\\(?:[A-Za-z]+\*?|.)|[{}~$]")
_ITEM: Final = re.compile(r"[-*+•][ \t]+|\d{1,9}[.)][ \t]+")
_UNDERLINE: Final = re.compile(r"(=+|-+)[ \t]*$")
_TITLE: Final = re.compile(r"title[ \t]*:[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.IGNORECASE)
_FIELD_OR_ITEM: Final = re.compile(r"\w[^:]*:|\s*- ")
_FRONT_MATTER_MAX_LINES: Final = 200


def looks_like(text: str) -> bool:
    """Headings at the margin, or front matter, near the top."""
    return text.startswith("---\n") or any(line.indent == 0 and _ATX.match(line.text) for line in lines_of(text[:20_000]))


def outline(text: str) -> Outline:
    """Blocks under their heading path; the first heading (or the front matter's title) is the title."""
    return _outline(_Scanner(list(lines_of(text))))


def has_underlined(text: str) -> bool:
    """Whether there are underlined titles near the top."""
    lines = list(lines_of(text[:20_000]))
    scanner = _UnderlinedScanner(lines)
    return any(scanner.heading_at(index)[0] for index in range(len(lines)))


def underlined(text: str, title: str = "") -> Outline:
    """The same of text with underlined titles: reStructuredText, or plain text."""
    scanner = _UnderlinedScanner(list(lines_of(text)))
    scanner.title = title
    return _outline(scanner)


def org(text: str) -> Outline:
    """The same of Org mode's text."""
    return _outline(_OrgScanner(list(lines_of(text))))


def latex(text: str) -> Outline:
    """The same of LaTeX's."""
    return _outline(_LatexScanner(list(lines_of(text))))


def _outline(scanner: _Scanner) -> Outline:
    blocks = scanner.run()
    return Outline(title=clip(scanner.title or scanner.first_heading, TITLE_MAX_CHARS), blocks=blocks)


class _Scanner:
    """One pass over the lines; `_open` is where the block being read began."""

    _fence = _FENCE

    def __init__(self, lines: list[Line]) -> None:
        self._lines = lines
        self._blocks: list[Block] = []
        self._headings: list[tuple[int, str]] = []
        self._open = 0
        self._note = ""
        self._tags = ""
        self.title = ""
        self.first_heading = ""

    def run(self) -> list[Block]:
        index = self._front_matter()
        fence = ""
        while index < len(self._lines):
            line = self._lines[index]
            if fence:
                if self._ends(fence, line.text):
                    fence = ""
                index += 1
                continue
            mark = self._fence.match(line.text)
            if mark:
                self._flush(line.start)
                fence = mark.group(1)
                index += 1
                continue
            index += self._plain_line(index, line)
        self._flush(self._lines[-1].end if self._lines else 0)
        return self._blocks

    def _ends(self, fence: str, text: str) -> bool:
        mark = _FENCE.match(text)
        return mark is not None and mark.group(1).startswith(fence) and not text.strip("`~ \t")

    def _plain_line(self, index: int, line: Line) -> int:
        """Handles one line outside fences; returns how many lines were used."""
        previous = self._lines[index - 1] if index else None
        heading, used = self.heading_at(index)
        if heading is not None:
            self._flush(line.start)
            level, text = heading
            while self._headings and self._headings[-1][0] >= level:
                self._headings.pop()
            self._headings.append((level, clip(text, 100)))
            self.first_heading = self.first_heading or text
            return used
        table = line.text.lstrip().startswith("|")
        was_table = previous is not None and previous.text.lstrip().startswith("|")
        starts_block = (
            (previous is not None and previous.blank and not line.blank and not self._only_heading_open())
            or (line.indent == 0 and _ITEM.match(line.text) is not None and not self._only_heading_open())
            or table != was_table
            or (table and was_table)
        )
        if starts_block and not line.blank and not (table != was_table and self._only_heading_open()):
            self._flush(line.start)
        if table and not was_table:
            self._note = clip(line.text.strip().strip("|").replace("|", ", "), 120)
        elif not table and not line.blank:
            self._note = ""
        return 1

    def _only_heading_open(self) -> bool:
        """A heading goes with the first block below it."""
        return bool(self._headings) and self._blocks_since_heading() == 0

    def _blocks_since_heading(self) -> int:
        wanted = self._path()
        return sum(1 for block in self._blocks[-1:] if block.heading == wanted)

    def heading_at(self, index: int) -> tuple[tuple[int, str] | None, int]:
        line = self._lines[index]
        found = _ATX.match(line.text)
        if found:
            return (len(found.group(1)), _ATX_END.sub("", line.text[found.end() :].rstrip()).rstrip()), 1
        other = _OTHER_HEADING.match(line.text)
        if other and (other["mark"].startswith("=") or len(other["mark"]) > 1):
            return (len(other["mark"]), other["text"].rstrip(" =")), 1
        under = self._lines[index + 1] if index + 1 < len(self._lines) else None
        if under is not None and self._stands_alone(index) and not line.text.startswith(("|", "-", "*", ">")):
            mark = _UNDERLINE.match(under.text)
            if mark and len(mark.group(1)) >= 3:
                return (1 if mark.group(1)[0] == "=" else 2, line.text.strip()), 2
        return None, 0

    def _stands_alone(self, index: int) -> bool:
        """Whether a line is at the margin, and nothing is right above it."""
        line = self._lines[index]
        return not line.blank and line.indent == 0 and (index == 0 or self._lines[index - 1].blank)

    def _front_matter(self) -> int:
        if not self._lines or self._lines[0].text.rstrip() != "---":
            return 0
        for index, line in enumerate(self._lines[1:_FRONT_MATTER_MAX_LINES], start=1):
            if line.text.rstrip() in {"---", "..."}:
                self._close_front_matter(self._lines[1:index], line.end)
                return index + 1
            found = _TITLE.match(line.text)
            if found:
                self.title = found.group(1)
        self.title = ""
        return 0

    def _close_front_matter(self, lines: list[Line], end: int) -> None:
        """Front matter of bookkeeping alone is left out, or its dates would make all notes of a day alike; its tags are context
        of what follows."""
        written = [line.text.rstrip() for line in lines]
        fields = {name.casefold(): value for name, value in parse("\n".join(["---", *written, "---"]))[0].items()}
        if not fields.keys() <= BOOKKEEPING or not all(_FIELD_OR_ITEM.match(text) for text in written):
            self._flush(end)
            return
        self._blocks.append(Block(start=self._open, end=end, skip=True))
        self._open = end
        self._tags = ", ".join(listed(fields.get("tags") or fields.get("tag")))

    def _path(self) -> tuple[str, ...]:
        return tuple(text for _, text in self._headings)

    def _flush(self, end: int) -> None:
        if end > self._open:
            self._blocks.append(Block(start=self._open, end=end, heading=self._path(), note=self._note or self._tags))
            self._open = end


class _UnderlinedScanner(_Scanner):
    """Each style of title that is met for the first time is one level below those before it
    (docutils.sourceforge.io/docs/ref/rst/restructuredtext.html#sections)."""

    _fence = _BACKTICKS

    def __init__(self, lines: list[Line]) -> None:
        super().__init__(lines)
        self._styles: dict[tuple[str, int], int] = {}

    def heading_at(self, index: int) -> tuple[tuple[int, str] | None, int]:
        if not self._stands_alone(index):
            return None, 0
        first, *below = (line.text for line in self._lines[index : index + 3])
        title, rule, used = first.strip(), below[0] if below else "", 2
        if len(below) == 2 and is_rule(first) and below[1][:1] == first[0]:
            title, rule, used = below[0].strip(), below[1], 3
        if not is_title(title, rule):
            return None, 0
        level = self._styles.setdefault((rule[0], used), len(self._styles) + 1)
        return (level, title), used

    def _front_matter(self) -> int:
        return 0


class _OrgScanner(_Scanner):
    _fence = _ORG_FENCE

    def _ends(self, fence: str, text: str) -> bool:
        return text.strip().casefold() == f"#+end_{fence}".casefold()

    def heading_at(self, index: int) -> tuple[tuple[int, str] | None, int]:
        text = self._lines[index].text
        found = _ORG_HEADING.match(text)
        heading = _ORG_TAGS.sub("", text[found.end() :].rstrip()).rstrip() if found else ""
        return ((len(found.group(1)), heading), 1) if found and heading else (None, 0)

    def _front_matter(self) -> int:
        titles = (_ORG_TITLE.match(line.text) for line in self._lines[:_FRONT_MATTER_MAX_LINES])
        self.title = next((title.group(1) for title in titles if title), "")
        return 0


class _LatexScanner(_Scanner):
    _fence = _LATEX_FENCE

    def _ends(self, fence: str, text: str) -> bool:
        return text.lstrip().startswith(f"\\end{{{fence}}}")

    def heading_at(self, index: int) -> tuple[tuple[int, str] | None, int]:
        found = _LATEX_HEADING.match(self._lines[index].text)
        heading = _without_commands(found["text"]) if found else ""
        return ((_LATEX_LEVELS.index(found["mark"]), heading), 1) if found and heading else (None, 0)

    def _front_matter(self) -> int:
        found = _LATEX_TITLE.search("\n".join(line.text for line in self._lines[:_FRONT_MATTER_MAX_LINES]))
        self.title = _without_commands(found.group(1)) if found else ""
        return 0


def _without_commands(latex: str) -> str:
    return " ".join(_LATEX_COMMAND.sub(" ", latex).split())
