"""Passages follow structure, stay within bounds, and know exactly where they stand."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.ingest import chunker
from memdir.ingest.chunker import chunk
from memdir.ingest.chunker.pack import MAX_TOKENS, MIN_TOKENS, Measure
from memdir.ingest.text import decode
from memdir.store.types import Chunk

SUFFIXES = ["md", "rst", "tex", "org", "txt", "eml", "csv", "json", "jsonl", "yaml", "py", "go", "vtt", "log", "unknown"]


def cut(data: bytes | str, path: str = "/x.md") -> list[Chunk]:
    raw = data.encode() if isinstance(data, str) else data
    text = decode(raw)
    assert text is not None
    chunks = list(chunk(text, path))
    check(raw, chunks, text.encoding)
    return chunks


def check(data: bytes, chunks: list[Chunk], encoding: str = "utf-8") -> None:
    """The promises that hold for every text."""
    for ordinal, item in enumerate(chunks):
        span = data[item.start_byte : item.end_byte]
        assert span.decode(encoding) == item.text
        assert item.ordinal == ordinal
        assert item.start_line == lines_before(data, item.start_byte, encoding) + 1
        assert item.end_line == item.start_line + item.text.count("\n")
        assert item.text.strip()
        assert Measure(item.text).tokens(0, len(item.text)) <= MAX_TOKENS + MIN_TOKENS
    starts = [item.start_byte for item in chunks]
    assert starts == sorted(set(starts))


def lines_before(data: bytes, position: int, encoding: str) -> int:
    return data[:position].decode(encoding).count("\n")


def covered_lines(chunks: list[Chunk]) -> set[int]:
    return {line for item in chunks for line in range(item.start_line, item.end_line + 1)}


texts = st.lists(
    st.one_of(
        st.text(max_size=120).filter(lambda text: "\x00" not in text),
        st.sampled_from(
            ["", "  ", "# Head", "## Sub ##", "---", "```", "| a | b |", "- item", "1. one", "Anna: hello", "[00:12] Bob: yes"]
        ),
        st.sampled_from(
            ["From: a@b.c", "Subject: x", "def f():", "class A:", '"quoted, field', "key: value", "Title", "=====", "{", "\t}"]
        ),
        st.sampled_from(["=====", "-----\nTitle\n-----", "Words\n====="]),
        st.sampled_from(["\\section{A}", "\\begin{verbatim}", "\\end{verbatim}", "\\title{T"]),
        st.sampled_from(["* Star", "#+begin_src x", "#+end_src", "#+title: T"]),
        st.text(alphabet="ab 漢字。.", min_size=200, max_size=2500),
    ),
    max_size=30,
).map("\n".join)


@pytest.mark.promise("parts.exact-ranges")
@settings(max_examples=150)
@given(texts, st.sampled_from(SUFFIXES))
def test_every_passage_is_exactly_its_bytes_and_every_written_line_is_in_one(text: str, suffix: str) -> None:
    data = text.encode()
    decoded = decode(data)
    if decoded is None:
        return
    body = data[decoded.bom_bytes :]
    chunks = list(chunk(decoded, f"/x.{suffix}"))
    if not decoded.bom_bytes:
        check(data, chunks, decoded.encoding)
    written = {number for number, line in enumerate(body.decode().split("\n"), start=1) if line.strip()}
    assert written <= covered_lines(chunks)


@settings(max_examples=60)
@given(texts, st.sampled_from(["utf-16-le", "utf-16-be"]))
def test_bytes_are_exact_in_wide_encodings_too(text: str, encoding: str) -> None:
    bom = b"\xff\xfe" if encoding == "utf-16-le" else b"\xfe\xff"
    data = bom + text.encode(encoding, "surrogatepass")
    decoded = decode(data)
    if decoded is None:
        return
    for item in chunk(decoded, "/x.md"):
        assert data[item.start_byte : item.end_byte].decode(encoding) == item.text


written = st.lists(
    st.sampled_from(
        [
            "# Kopf",
            "Grüße, Ärger",
            "x" * 300,
            "naïve café",
            "a,b;c",
            "",
            "    ",
            "\u2028sep",
            "Anna: ja",
            "\t- item",
            "\x0c",
            "日本",
        ]
    ),
    max_size=12,
)


@pytest.mark.promise("retrieval.spans")
@settings(max_examples=120, deadline=None)
@given(
    written,
    st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-32"]),
    st.booleans(),
    st.sampled_from(SUFFIXES),
)
def test_any_encoding_and_any_line_ends_keep_exact_bytes_and_lines(
    lines: list[str], end: str, encoding: str, is_ended: bool, suffix: str
) -> None:
    data = (end.join(lines) + (end if is_ended else "")).encode(encoding, "replace")
    decoded = decode(data)
    if decoded is None:
        return
    for item in chunk(decoded, f"/x.{suffix}"):
        assert data[item.start_byte : item.end_byte].decode(decoded.encoding) == item.text
        before = data[decoded.bom_bytes : item.start_byte].decode(decoded.encoding)
        assert item.start_line == before.count("\n") + 1
        assert item.end_line == item.start_line + item.text.count("\n")


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(SUFFIXES))
def test_any_bytes_have_passages_in_order_inside_the_file_or_none(data: bytes, suffix: str) -> None:
    decoded = decode(data)
    if decoded is None:
        return
    position = 0
    for item in chunk(decoded, f"/x.{suffix}"):
        assert position <= item.start_byte < item.end_byte <= len(data)
        position = item.start_byte


def test_a_line_of_a_megabyte_is_cut_with_overlap_and_without_loss() -> None:
    sentence = "The quick brown fox jumps over the lazy dog while nobody watches. "
    chunks = cut(sentence * 16_000, "/x.txt")
    assert 1000 < len(chunks) < 3000
    assert all(item.start_line == item.end_line == 1 for item in chunks)
    for left, right in pairwise(chunks):
        assert left.start_byte < right.start_byte <= left.end_byte + 1


def test_text_without_spaces_is_bounded_too() -> None:
    chunks = cut("漢字仮名交じり文" * 2000, "/x.txt")
    assert max(len(item.text) for item in chunks) <= MAX_TOKENS
    assert len(cut("x" * 50_000, "/x.txt")) > 30


def test_headings_make_the_context_and_stay_out_of_the_text_below() -> None:
    body = "Body of the section that says enough to stand alone as a passage of its own. " * 4
    chunks = cut(f"# Trip to Oslo\n\n## Packing\n\n{body}\n\n## Budget\n\n{body}\n")
    budget = next(item for item in chunks if "## Budget" in item.text)
    assert budget.context == "Trip to Oslo › Budget"
    assert "Packing" not in budget.text


def test_small_sections_are_joined() -> None:
    chunks = cut("# List\n\n" + "".join(f"## Part {n}\n\nOne short line.\n\n" for n in range(6)))
    assert len(chunks) < 4
    assert chunks[0].context == "List"


def test_a_fence_is_not_searched_for_headings() -> None:
    chunks = cut("# Real\n\n```sh\n# not a heading\nmake\n```\n\nafter\n")
    assert all("not a heading" not in item.context for item in chunks)


def test_front_matter_gives_the_title() -> None:
    assert cut("---\ntitle: Tax return 2025\n---\n\nPaid in March.\n")[0].context.startswith("Tax return 2025")


def test_front_matter_of_bookkeeping_alone_is_no_text_and_its_tags_are_context() -> None:
    for tags in ("tags: [ropes, knots]", "Tags: ropes, knots", "tags:\n- ropes\n- knots"):
        (item,) = cut(f"---\n{tags}\nproject: boats\ncreated: 2026-11-25T10:00:00.000Z\n---\n\nThe halyard is red.\n")
        assert (item.text.strip(), item.context) == ("The halyard is red.", "ropes, knots")
    for told in ("author: Ana", "tags: a\n  note: said by Ana", "tags: a\nsaid by Ana"):
        assert "Ana" in cut(f"---\n{told}\ncreated: 2026-11-25\n---\n\nThe halyard is red.\n")[0].text


def test_table_rows_know_their_header() -> None:
    rows = "".join(f"{n},Oslo,{n * 3},a remark that fills the row with words\n" for n in range(200))
    chunks = cut("station,city,level,remark\n" + rows, "/x.csv")
    assert len(chunks) > 5
    assert all("station, city, level" in item.context for item in chunks[1:])
    assert all(item.text.startswith(tuple("0123456789s")) for item in chunks)


def test_a_quoted_field_keeps_its_lines_together() -> None:
    chunks = cut('a,b\n1,"first\nsecond\nthird"\n2,x\n', "/x.csv")
    assert any('"first\nsecond\nthird"' in item.text for item in chunks)


def test_turns_of_a_conversation_are_not_cut() -> None:
    turns = [f"{('Anna', 'Bo')[n % 2]}: turn number {n} says something of middling length here." for n in range(80)]
    chunks = cut("\n".join(turns), "/talk.txt")
    assert len(chunks) > 3
    for item in chunks:
        assert item.text.split("\n")[0].startswith(("Anna:", "Bo:"))
        assert item.text in "\n".join(turns)


def test_mail_passages_know_subject_and_sender() -> None:
    body = "\n\n".join(f"Paragraph {n} of the letter with a little more than nothing in it." * 4 for n in range(12))
    data = f"From: Ana Ruiz <ana@example.org>\nTo: me@example.org\nSubject: =?utf-8?q?Caf=C3=A9_opening?=\nDate: x\n\n{body}\n"
    chunks = cut(data, "/m.eml")
    assert all("Café opening" in item.context and "Ana Ruiz" in item.context for item in chunks)


def test_an_encoded_attachment_is_left_out() -> None:
    blob = "\n".join(["QUJD" * 19] * 400)
    data = f"From: a@b.c\nTo: d@e.f\nSubject: s\n\nHello there.\n\n{blob}\n\nBye.\n"
    chunks = cut(data, "/m.eml")
    assert not any("QUJDQUJD" in item.text for item in chunks)
    assert any("Bye." in item.text for item in chunks)


def test_functions_are_passages_with_their_class_as_context() -> None:
    body = "        total = 0\n" + "        total += compute(total, limit)\n" * 25 + "        return total\n\n"
    code = "import os\n\n\nclass Queue:\n" + "".join(
        f"    # Number {n}\n    def step_{n}(self, limit):\n{body}" for n in range(4)
    )
    chunks = cut(code, "/q.py")
    third = next(item for item in chunks if "def step_2" in item.text)
    assert "Queue › step_2" in third.context
    assert third.text.lstrip().startswith("# Number 2")


def test_an_empty_or_blank_document_has_no_passages() -> None:
    assert cut("") == []
    assert cut(" \n\n\t\n") == []


def test_the_number_of_passages_is_bounded_and_the_status_says_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["memdir.ingest.chunker.pack"], "CHUNKS_MAX", 5)
    monkeypatch.setattr(chunker, "CHUNKS_MAX", 5)
    text = decode(("A line of the log that is long enough to count for something.\n" * 500).encode())
    assert text is not None
    chunks = chunk(text, "/x.log")
    assert len(chunks) == 5
    assert chunker.note(text, chunks) == f"too long to index whole: searchable up to line {chunks[-1].end_line} (5 passages)"
    short = decode(b"one line\n")
    assert short is not None
    assert chunker.note(short, chunk(short, "/x")) is None


def test_the_title_is_what_the_document_calls_itself() -> None:
    for data, path, expected in (
        (b"# Garden plan\n\ntext", "/x.md", "Garden plan"),
        (b"From: a@b.c\nTo: b@c.d\nSubject: Lease\n\nbody", "/x.eml", "Lease"),
        (b"no heading at all, just a sentence.", "/x.txt", None),
    ):
        text = decode(data)
        assert text is not None
        assert chunker.cut(text, path)[1] == expected


def test_headings_of_org_mode_are_headings_and_not_list_items() -> None:
    about = "The keel was repainted in April by Rui, and the shrouds are to be replaced before the winter storms. " * 8
    text = (
        f"#+TITLE: Sailing notes\n\n* Boat    :boat:sail:\n{about}\n** TODO Replace the shrouds\n{about}\n"
        f"* Crew\n- Ana steers\n#+BEGIN_SRC python\n* no heading\n# a comment\n#+END_SRC\n{about}\n"
    )
    decoded = decode(text.encode())
    assert decoded is not None
    passages, title = chunker.cut(decoded, "/log.org")
    assert title == "Sailing notes"
    contexts = [passage.context for passage in passages]
    assert any("Boat" in one and "Replace the shrouds" in one and "TODO" not in one for one in contexts)
    assert any("Crew" in one for one in contexts)
    assert not any("no heading" in one or ":sail:" in one or "comment" in one for one in contexts)


RST = """\
.. _boats:

==========
Boat notes
==========

.. code-block:: python

   # no heading
   sail()

{about}

Rigging
=======

{about}

Shrouds
-------

{about}

Crew
====

----

{about}
"""


@pytest.mark.parametrize("name", ["boats.rst", "boats.txt", "README"])
def test_underlined_titles_are_headings_by_the_order_of_their_styles(name: str) -> None:
    about = "The keel was repainted in April by Rui, and the shrouds are to be replaced before the winter storms. " * 8
    text = decode(RST.format(about=about).encode())
    assert text is not None
    passages, title = chunker.cut(text, f"/{name}")
    assert title == "Boat notes"
    contexts = list(dict.fromkeys(passage.context for passage in passages))
    assert contexts == ["Boat notes", *(f"Boat notes › {one}" for one in ("Rigging", "Rigging › Shrouds", "Crew"))]


def test_a_title_between_tildes_begins_no_fence() -> None:
    about = "The keel was repainted in April by Rui, and the shrouds are to be replaced before the winter storms. " * 8
    text = f"~~~~~\nBoats\n~~~~~\n\n{about}\n\nRigging\n=======\n\n{about}\n"
    assert [passage.context for passage in cut(text, "/x.rst")][-1] == "Boats › Rigging"


def test_lines_of_signs_alone_are_no_titles() -> None:
    for text in ("-----\n-----\n\nOne.\n", "One thing.\n\n-----\n\nAnother.\n", "  Total\n  -----\n\n  12\n"):
        assert {passage.context for passage in cut(text, "/x.txt")} == {""}, text


LATEX = r"""
\documentclass{{article}}
\title[Boats]{{Boat \emph{{notes}}
  of a year\thanks{{to nobody}}}}
\begin{{document}}
{about}

\section{{Rigging}}\label{{sec:rig}}
{about}

\subsection*{{The \textbf{{old}} shrouds}}
{about}
\begin{{verbatim}}
\section{{No heading}}
\end{{verbatim}}
{about}

\section[In short]{{Crew~\cite{{rui}}}}
{about}
\end{{document}}
"""


def test_sections_of_latex_are_headings() -> None:
    about = "The keel was repainted in April by Rui, and the shrouds are to be replaced before the winter storms. " * 8
    text = decode(LATEX.format(about=about).encode())
    assert text is not None
    passages, title = chunker.cut(text, "/boats.tex")
    assert title == "Boat notes of a year"
    contexts = list(dict.fromkeys(passage.context for passage in passages))
    assert contexts == [title, *(f"{title} › {one}" for one in ("Rigging", "Rigging › The old shrouds", "Crew"))]


def test_an_end_of_a_block_that_never_began_swallows_no_heading() -> None:
    about = "The keel was repainted in April by Rui, and the shrouds are to be replaced before the winter storms. " * 8
    passages = cut(f"* Boat\n{about}\n#+END_SRC\n* Crew\n{about}\n", "/log.org")
    assert any("Crew" in passage.context for passage in passages)


@pytest.mark.parametrize("mark", ["# a", "* a", "#+title: a", "title: a"])
@pytest.mark.parametrize("suffix", ["md", "org"])
def test_a_heading_with_a_long_gap_takes_no_longer_than_any_line(mark: str, suffix: str) -> None:
    """5,000 spaces took a regular expression two minutes."""
    assert cut(f"---\n{mark}{' ' * 50_000}x\n---\n{mark}{' ' * 50_000}x\ntext\n", f"/x.{suffix}")


def test_a_heading_keeps_its_signs_and_loses_those_that_close_it() -> None:
    text = decode(b"# Notes on C#\n\nOne.\n\n## Closed ##\n\nTwo.\n")
    assert text is not None
    passages, title = chunker.cut(text, "/x.md")
    assert title == "Notes on C#"
    assert "Closed ##" in passages[-1].text
