"""HTML to Markdown by html-to-markdown: headings, lists, tables, code and the words of links; no scripts, no navigation."""

from __future__ import annotations

import re
from typing import Final

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

from memdir.ingest.extractors.output import ExtractionError
from memdir.store.text.wrapping import by_sentence

DEPTH_MAX: Final = 400
_PREFORMATTED: Final = re.compile(r"<(/?)(?:pre|textarea)\b", re.IGNORECASE)
_PICTURE: Final = re.compile(r"""<img\b[^>]*?\salt\s*=\s*(?:"([^"]*)"|'([^']*)')[^>]*>""", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"<(strong|b|em|i)>([^<>]*)</\1>", re.IGNORECASE)
_DESCRIBED_MIN_WORDS: Final = 3
"""Of what is said in place of a picture; with fewer it is the name of a logo, a badge or a file."""
_NO_TEXT: Final = ["script", "style", "noscript", "template", "svg", "iframe", "object", "head > link"]
_AROUND: Final = [
    "nav",
    "[role=navigation]",
    "[role=search]",
    "body > header nav",
    "body > footer",
    "[role=contentinfo]",
    ".navheader",
    ".navfooter",
    ".sphinxsidebar",
    ".related",
    ".headerlink",
    "#cookie-banner",
]
"""What stands around the text of a page. The classes are those of DocBook and Sphinx, which made most saved manuals."""


def markdown(html: str, *, page: bool = False) -> str:
    """`page`: a web page, of which what stands around its text is left out. ExtractionError when nothing can read it."""
    options = ConversionOptions(
        extract_metadata=False,
        skip_images=True,
        max_depth=DEPTH_MAX,
        exclude_selectors=_NO_TEXT + (_AROUND if page else []),
        preprocessing=PreprocessingOptions(enabled=page, preset="standard", remove_navigation=page, remove_forms=False),
        autolinks=False,
        compact_tables=True,
    )
    try:
        result = convert(_PICTURE.sub(_described, _EMPHASIS.sub(_whole, _on_one_line(html))), options)
    except Exception as error:
        raise ExtractionError("its HTML cannot be read", hint="open it in a browser and save it again") from error
    return by_sentence(result.content or "")


def _whole(emphasis: re.Match[str]) -> str:
    """Without the emphasis of a part of a word, whose marks would stand in the middle of it."""
    html, inside = emphasis.string, emphasis[2]
    around = (html[: emphasis.start()][-1:] + inside[:1], inside[-1:] + html[emphasis.end() : emphasis.end() + 1])
    return inside if any(len(pair) == 2 and pair.isalnum() for pair in around) else emphasis[0]


def _on_one_line(html: str) -> str:
    """Without line ends where they mean no more than a space, which the library keeps."""
    pieces: list[str] = []
    begin, kept = 0, False
    for tag in _PREFORMATTED.finditer(html):
        if bool(tag[1]) == kept:
            pieces.append(html[begin : tag.start()] if kept else _joined(html[begin : tag.start()]))
            begin, kept = tag.start(), not kept
    return "".join([*pieces, html[begin:] if kept else _joined(html[begin:])])


def _described(picture: re.Match[str]) -> str:
    """What its author says in place of the picture."""
    return f" {description(picture[1] or picture[2] or '')} "


def description(said: str) -> str:
    """What is said in place of a picture; nothing when that does not say what it shows."""
    return f"(picture: {said})" if len(said.split()) >= _DESCRIBED_MIN_WORDS else ""


def _joined(text: str) -> str:
    return " ".join(line.strip(" \t\r") for line in text.split("\n"))
