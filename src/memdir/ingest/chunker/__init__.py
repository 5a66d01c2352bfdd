"""Structure-aware chunking: a splitter per kind of text finds blocks, one packer makes passages of bounded size.

A splitter says where structure begins; it never copies text. The packer joins small neighbours, cuts what is too long,
and keeps exact byte and line ranges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from memdir.ingest.chunker import code, dialogue, mail, markdown, notebook, plain, records
from memdir.ingest.chunker.blocks import TITLE_MAX_CHARS, Block, Outline, clip
from memdir.ingest.chunker.pack import CHUNKS_MAX, pack
from memdir.ingest.text import DecodedText
from memdir.store.types import Chunk

__all__ = ["CHUNKS_MAX", "chunk", "cut", "note"]

_MARKDOWN: Final = frozenset({"md", "markdown", "mdx", "qmd", "rmd", "adoc", "asciidoc"})
_MAIL: Final = frozenset({"eml", "mbox", "msg"})
_SUBTITLES: Final = frozenset({"vtt", "srt"})


def cut(text: DecodedText, path: str, *, front_chars: int = 0, title: str = "") -> tuple[Sequence[Chunk], str | None]:
    """The passages of a document, in order, at most CHUNKS_MAX; and what it is called: `title`, else front matter title, first
    heading, mail subject; None when it does not say. `path` is used for its suffix only. The first `front_chars` characters are
    left out: they are about the document and not of it."""
    cells = notebook.cells_of(text.text) if _suffix(path) == "ipynb" else []
    if cells:
        outline = notebook.outline(text.text, cells)
        return pack(replace(text, text=notebook.flattened(text.text, cells)), outline), outline.title or None
    outline = _behind(front_chars, _outline(text.text[front_chars:], path))
    outline = replace(outline, title=clip(title, TITLE_MAX_CHARS) or outline.title)
    return pack(text, outline), outline.title or None


def _behind(front_chars: int, outline: Outline) -> Outline:
    """The outline of what begins at `front_chars`, as one of the whole."""
    if not front_chars:
        return outline
    moved = (replace(block, start=block.start + front_chars, end=block.end + front_chars) for block in outline.blocks)
    return replace(outline, blocks=[Block(start=0, end=front_chars, skip=True), *moved])


def chunk(text: DecodedText, path: str) -> Sequence[Chunk]:
    """The passages alone."""
    return cut(text, path)[0]


def note(text: DecodedText, chunks: Sequence[Chunk]) -> str | None:
    """One sentence for the document's status when its end is not searchable, else None."""
    if not text.truncated and len(chunks) < CHUNKS_MAX:
        return None
    reached = chunks[-1].end_line if chunks else 0
    return f"too long to index whole: searchable up to line {reached} ({len(chunks)} passages)"


def _suffix(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name.rsplit(".", 1)[-1].lower() if "." in name else ""


def _outline(text: str, path: str) -> Outline:
    suffix = _suffix(path)
    by_suffix: Iterable[tuple[frozenset[str], Callable[[str], Outline]]] = (
        (_MARKDOWN, markdown.outline),
        (frozenset({"rst"}), markdown.underlined),
        (frozenset({"org"}), markdown.org),
        (frozenset({"tex", "latex"}), markdown.latex),
        (_MAIL, mail.outline),
        (_SUBTITLES, dialogue.subtitles),
        (records.TABLES, records.table),
        (records.JSON, records.json_like),
        (records.LINES, records.json_lines),
        (records.KEYED, records.keyed),
        (code.SUFFIXES, code.outline),
    )
    for suffixes, splitter in by_suffix:
        if suffix in suffixes:
            if splitter is markdown.outline and dialogue.looks_like(text):
                return dialogue.outline(text)
            return splitter(text)
    if mail.looks_like(text):
        return mail.outline(text)
    if dialogue.looks_like(text):
        return dialogue.outline(text)
    if text.startswith("#!") or code.looks_like(text):
        return code.outline(text)
    if markdown.looks_like(text):
        return markdown.outline(text)
    if markdown.has_underlined(text):
        return markdown.underlined(text, plain.first_line_title(text))
    return plain.outline(text)


def _covers(blocks: Sequence[Block], length: int) -> bool:
    """Whether blocks lie in order without gaps, the contract between splitters and the packer (used by the tests)."""
    position = 0
    for block in blocks:
        if block.start != position or block.end < block.start:
            return False
        position = block.end
    return position == length
