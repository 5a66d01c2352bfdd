"""A report as HTML that stands alone: a click on a citation opens the archived page at the cited lines."""

from __future__ import annotations

import html
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Final

from memdir.core.errors import UsageError
from memdir.research.archive import Archive
from memdir.research.citations import PATTERN, Citation, found

_WHOLE_MAX_LINES: Final = 600
_AROUND: Final = 80
"""Lines on both sides of a citation that are shown of a longer page."""
_LINE_MAX_CHARS: Final = 2000


def need_extra() -> None:
    """UsageError when the libraries for reports are missing."""
    if importlib.util.find_spec("markdown_it") is None:
        raise UsageError("research and its reports need the extra `research`", hint="pip install 'memdir[research]'")


def numbered_citations(report: str) -> tuple[str, list[Citation]]:
    """The report with `[1]` for each citation, and what the numbers mean. Equal citations have one number."""
    cited: dict[Citation, int] = {}

    def number(match: re.Match[str]) -> str:
        at = cited.setdefault(found(match), len(cited) + 1)
        return f"\x02{at}\x03"

    return PATTERN.sub(number, report), list(cited)


def html_report(report: str, archive: Archive, facts: Mapping[str, Any]) -> str:
    """`facts` is `run.summary`: what the report cost and how it came about is told below it."""
    need_extra()
    from markdown_it import MarkdownIt

    body, cited = numbered_citations(_without_sources(report))
    # No HTML of a page or a model is let through.
    page = MarkdownIt("commonmark", {"html": False}).enable("table").render(body)
    page = re.sub(
        "\x02(\\d+)\x03", lambda match: f'<a class="cite" href="#s{match[1]}" data-n="{match[1]}">{match[1]}</a>', page
    )
    title = next((line[2:].strip() for line in report.split("\n") if line.startswith("# ")), "Report")
    rows = [_source_row(number, one, archive) for number, one in enumerate(cited, start=1)]
    template = Template(files("memdir.research").joinpath("report_page.html").read_text("utf-8"))
    return template.substitute(
        title=html.escape(title),
        body=page,
        sources="\n".join(row[0] for row in rows),
        pages=_script_json(_pages(cited, archive)),
        cites=_script_json({str(number): row[1] for number, row in enumerate(rows, start=1)}),
        facts=html.escape(_told(facts)),
    )


def _without_sources(report: str) -> str:
    from memdir.research.outline import without_part

    return without_part(report, "Sources")


def _source_row(number: int, one: Citation, archive: Archive) -> tuple[str, dict[str, Any]]:
    source = archive.get(one.path)
    title = (source.title if source else "") or one.path
    url = source.url if source else ""
    link = (
        f' <a href="{html.escape(url, quote=True)}" rel="noreferrer">{html.escape(url)}</a>'
        if url.startswith(("http://", "https://"))
        else ""
    )
    text = f"{html.escape(title)}, lines {one.first}–{one.last}{link}"
    row = f'<li id="s{number}"><a class="open" href="#" data-n="{number}">{text.partition(" <a")[0]}</a>{link}</li>'
    return row, {"path": one.path, "first": one.first, "last": one.last, "title": title, "url": url}


def _pages(cited: Sequence[Citation], archive: Archive) -> dict[str, list[tuple[int, str]]]:
    """Path to the numbered lines that are carried in the report: the whole page, or what stands around the citations."""
    pages: dict[str, list[tuple[int, str]]] = {}
    for path in dict.fromkeys(one.path for one in cited):
        source = archive.get(path)
        if source is None:
            continue
        spans = [(one.first, one.last) for one in cited if one.path == path]
        short = len(source.lines) <= _WHOLE_MAX_LINES
        pages[path] = [
            (number, line[:_LINE_MAX_CHARS])
            for number, line in enumerate(source.lines, start=1)
            if number >= source.first and (short or any(first - _AROUND <= number <= last + _AROUND for first, last in spans))
        ]
    return pages


def _script_json(value: Any) -> str:
    """JSON that cannot end the script it stands in."""
    return (
        json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )


def _told(facts: Mapping[str, Any]) -> str:
    cost = "price not known" if facts.get("usd") is None else f"{facts['usd']:.2f} USD"
    tokens = facts.get("input_tokens", 0) + facts.get("output_tokens", 0)
    counted = (
        f"{facts.get('rounds')} rounds, {facts.get('sources')} sources, {facts.get('searches')} searches, {tokens:,} tokens"
    )
    return (
        f"{facts.get('model')}: {counted}, {cost}, {facts.get('minutes')} minutes. Outcome: {facts.get('outcome')}. "
        "Every citation was checked against the archived page: its lines exist, and the numbers, names and quotations of the "
        "sentence stand in them. Whether they mean what the sentence says, a reader decides."
    )
