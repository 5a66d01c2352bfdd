"""A report as Markdown with footnotes, as DOCX and as PDF. One walk over the Markdown, three writers."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from memdir.core.errors import UsageError
from memdir.research.archive import Archive
from memdir.research.citations import Citation
from memdir.research.outline import without_part
from memdir.research.render import need_extra, numbered_citations

_MARK: Final = re.compile("\x02(\\d+)\x03")
_FONTS: Final = (
    Path("/usr/share/fonts/truetype/dejavu"),
    Path("/usr/share/fonts/TTF"),
    Path("/usr/share/fonts/dejavu-sans-fonts"),
    Path("/Library/Fonts"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A piece of a report. `kind`: heading, paragraph, item, code, table (then `rows`). Text holds `\\x02N\\x03` for citations,
    and `runs` are its parts with their styles."""

    kind: str
    level: int = 0
    runs: Sequence[tuple[str, str]] = ()
    rows: Sequence[Sequence[Sequence[tuple[str, str]]]] = ()


def markdown(report: str, archive: Archive) -> str:
    """With footnotes, as GitHub, Pandoc and Obsidian read them."""
    body, cited = numbered_citations(without_part(report, "Sources"))
    notes = "\n".join(f"[^{number}]: {_told(one, archive)}" for number, one in enumerate(cited, start=1))
    return _MARK.sub(r"[^\1]", body).rstrip() + ("\n\n" + notes if notes else "") + "\n"


def _told(one: Citation, archive: Archive) -> str:
    source = archive.get(one.path)
    title, url = (source.title, source.url) if source else ("", "")
    return f"{title or one.path}. {url} ({one.path}, lines {one.first}–{one.last})"


def blocks(body: str) -> Iterator[Block]:
    """The pieces of a Markdown text, in order."""
    need_extra()
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark", {"html": False}).enable("table").parse(body)
    depth, level, item = 0, 0, False
    rows: list[list[list[tuple[str, str]]]] = []
    for token in tokens:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif kind in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif kind == "list_item_open":
            item = True
        elif kind == "heading_open":
            level = int(token.tag[1])
        elif kind == "heading_close":
            level = 0
        elif kind == "table_open":
            rows = []
        elif kind == "tr_open":
            rows.append([])
        elif kind == "table_close":
            yield Block(kind="table", rows=rows)
            rows = []
        elif kind in ("fence", "code_block"):
            yield Block(kind="code", runs=[(token.content.rstrip("\n"), "code")])
        elif kind == "inline":
            runs = _runs(token.children or [])
            if rows:
                rows[-1].append(runs)
            elif level:
                yield Block(kind="heading", level=level, runs=runs)
            else:
                yield Block(kind="item" if depth and item else "paragraph", level=depth, runs=runs)
                item = False


def _runs(children: Sequence[Any]) -> list[tuple[str, str]]:
    runs: list[tuple[str, str]] = []
    style: list[str] = []
    for child in children:
        if child.type.endswith("_open"):
            style.append({"strong": "bold", "em": "italic"}.get(child.tag, ""))
        elif child.type.endswith("_close"):
            style and style.pop()
        elif child.type in ("softbreak", "hardbreak"):
            runs.append((" ", ""))
        elif child.content:
            runs.append((child.content, "code" if child.type == "code_inline" else next((one for one in style if one), "")))
    return runs


def docx(report: str, archive: Archive) -> bytes:
    """A Word document with Word's own headings and lists; sources as a numbered list at the end."""
    need_extra()
    from docx import Document
    from docx.shared import Pt

    body, cited = numbered_citations(without_part(report, "Sources"))
    document = Document()

    def add(paragraph: Any, runs: Sequence[tuple[str, str]]) -> None:
        for text, style in runs:
            for piece in _MARK.split(text)[::2] if style == "code" else [text]:
                at = 0
                for match in _MARK.finditer(piece):
                    _styled(paragraph.add_run(_clean(piece[at : match.start()])), style)
                    mark = paragraph.add_run(f"[{match[1]}]")
                    mark.font.superscript = True
                    at = match.end()
                _styled(paragraph.add_run(_clean(piece[at:])), style)

    def _styled(run: Any, style: str) -> None:
        run.bold, run.italic = style == "bold" or None, style == "italic" or None
        if style == "code":
            run.font.name = "Courier New"
            run.font.size = Pt(9.5)

    for block in blocks(body):
        if block.kind == "heading":
            add(document.add_heading(level=min(block.level - 1, 8)), block.runs)
        elif block.kind == "item":
            add(document.add_paragraph(style="List Bullet" if block.level < 2 else "List Bullet 2"), block.runs)
        elif block.kind == "table" and block.rows:
            table = document.add_table(rows=0, cols=max(len(row) for row in block.rows), style="Table Grid")
            for row in block.rows:
                for cell, runs in zip(table.add_row().cells, row, strict=False):
                    add(cell.paragraphs[0], runs)
        else:
            add(document.add_paragraph(), block.runs)
    if cited:
        document.add_heading("Sources", level=1)
        for number, one in enumerate(cited, start=1):
            document.add_paragraph(_clean(f"[{number}] {_told(one, archive)}"))
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text)


def pdf(report: str, archive: Archive) -> bytes:
    """Letters of every alphabet need a DejaVu font on the machine. UsageError when the report has some and there is none."""
    need_extra()
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.platypus import Paragraph, Preformatted, SimpleDocTemplate, Spacer, Table

    body, cited = numbered_citations(without_part(report, "Sources"))
    family, code = _font(body)
    text = ParagraphStyle("text", fontName=family, fontSize=10.5, leading=15, spaceAfter=7)
    item = ParagraphStyle("item", parent=text, leftIndent=16, bulletIndent=4, spaceAfter=3)
    mono = ParagraphStyle("code", fontName=code, fontSize=8.5, leading=11, spaceAfter=8, leftIndent=8)
    small = ParagraphStyle("small", parent=text, fontSize=8.5, leading=11, spaceAfter=3)
    flow: list[Any] = []
    for block in blocks(body):
        if block.kind == "heading":
            size = {1: 20, 2: 15}.get(block.level, 12)
            heading = ParagraphStyle(
                f"h{block.level}", fontName=family, fontSize=size, leading=size * 1.3, spaceBefore=12, spaceAfter=6
            )
            flow.append(Paragraph(f"<b>{_markup(block.runs, code)}</b>", heading))
        elif block.kind == "code":
            flow.append(Preformatted(block.runs[0][0], mono, maxLineLength=95))
        elif block.kind == "item":
            flow.append(Paragraph(_markup(block.runs, code), item, bulletText="•"))
        elif block.kind == "table" and block.rows:
            flow.append(
                Table(
                    [[Paragraph(_markup(cell, code), small) for cell in row] for row in block.rows],
                    style=[("GRID", (0, 0), (-1, -1), 0.4, "#999999")],
                )
            )
            flow.append(Spacer(1, 8))
        else:
            flow.append(Paragraph(_markup(block.runs, code), text))
    if cited:
        flow.append(
            Paragraph("<b>Sources</b>", ParagraphStyle("sources", fontName=family, fontSize=15, leading=20, spaceBefore=12))
        )
        flow += [Paragraph(f"[{number}] {escape(_told(one, archive))}", small) for number, one in enumerate(cited, start=1)]
    written = io.BytesIO()
    title = next((line[2:] for line in report.split("\n") if line.startswith("# ")), "Report")
    SimpleDocTemplate(written, pagesize=A4, title=title, author="memdir research").build(flow)
    return written.getvalue()


def _markup(runs: Sequence[tuple[str, str]], code: str) -> str:
    """reportlab's inline markup."""
    forms = {"bold": "<b>{}</b>", "italic": "<i>{}</i>", "code": f'<font name="{code}" size="9">{{}}</font>', "": "{}"}
    text = "".join(forms[style].format(escape(_CONTROL.sub("", one))) for one, style in runs)
    return _MARK.sub(r'<super size="7">[\1]</super>', text)


_CONTROL: Final = re.compile("[\x00\x01\x04-\x08\x0b-\x1f]")


def _font(body: str) -> tuple[str, str]:
    """Names of fonts for text and code that hold the letters of the report."""
    from reportlab.lib.fonts import addMapping
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont

    for folder in _FONTS:
        regular = folder / "DejaVuSans.ttf"
        if regular.exists():
            pdfmetrics.registerFont(TTFont("DejaVuSans", str(regular)))
            bold = folder / "DejaVuSans-Bold.ttf"
            pdfmetrics.registerFont(TTFont("DejaVuSans-Bold", str(bold if bold.exists() else regular)))
            mono = folder / "DejaVuSansMono.ttf"
            pdfmetrics.registerFont(TTFont("DejaVuSansMono", str(mono if mono.exists() else regular)))
            for weight, slant, name in (
                (0, 0, "DejaVuSans"),
                (1, 0, "DejaVuSans-Bold"),
                (0, 1, "DejaVuSans"),
                (1, 1, "DejaVuSans-Bold"),
            ):
                addMapping("DejaVuSans", weight, slant, name)
            return "DejaVuSans", "DejaVuSansMono"
    try:
        body.encode("cp1252")
    except UnicodeEncodeError:
        raise UsageError(
            "this report has letters that need a DejaVu font", hint="apt-get install fonts-dejavu-core, or export html"
        ) from None
    return "Helvetica", "Courier"
