"""A notebook is found by its cells: text and code with their numbers, at the lines of the file."""

from __future__ import annotations

import json

import pytest

from memdir.daemon.line_positions import placed
from memdir.ingest import chunker
from memdir.ingest.chunker import notebook
from memdir.ingest.text import decode
from memdir.store.types import Chunk

CELLS = [
    ("markdown", '# Bacteria in the lab\n\nThe doubling time is 41 hours, said "Ida".\nWe measured it twice.'),
    ("code", "import numpy as np\ngrowth = np.log(2) / 41  # per hour\npath = 'C:\\\\data'\nprint(growth)"),
    ("markdown", "## What it means\n\nÉlodie thinks that the medium was too cold."),
    ("code", ""),
]


def written(indent: int | None = 1) -> bytes:
    cells = [
        {
            "cell_type": kind,
            "metadata": {},
            "outputs": [{"data": {"text/plain": ["array([1, 2])"]}}],
            "source": text.splitlines(True),
        }
        for kind, text in CELLS
    ]
    return json.dumps(
        {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent, ensure_ascii=False
    ).encode()


def chunks(data: bytes) -> list[Chunk]:
    text = decode(data)
    assert text is not None
    return list(chunker.chunk(text, "lab.ipynb"))


@pytest.mark.promise("real.notebooks")
def test_each_cell_is_text_or_code_with_its_number() -> None:
    found = chunks(written())
    assert [chunk.context for chunk in found] == [
        "Bacteria in the lab › cell 1 (text)",
        "Bacteria in the lab › cell 2 (code)",
        "Bacteria in the lab › What it means › cell 3 (text)",
    ]
    assert (
        " ".join(found[0].text.split())
        == '# Bacteria in the lab The doubling time is 41 hours, said "Ida ". We measured it twice.'
    )
    assert not any("array" in chunk.text or "cell_type" in chunk.text for chunk in found)


def test_lines_and_bytes_are_those_of_the_file() -> None:
    data = written()
    lines = data.split(b"\n")
    for chunk, (_, source) in zip(chunks(data), CELLS, strict=False):
        first, last = source.splitlines()[0], source.splitlines()[-1]
        assert first.encode() in lines[chunk.start_line - 1]
        assert last.encode() in lines[chunk.end_line - 1]
        assert first.encode() in data[chunk.start_byte : chunk.end_byte]
        assert placed(data, chunk.text, chunk.start_line, chunk.end_line) == (chunk.start_line, chunk.end_line)


def test_what_is_flattened_is_as_long_and_has_as_many_lines() -> None:
    text = written().decode()
    flat = notebook.flattened(text, notebook.cells_of(text))
    assert len(flat) == len(text)
    assert [len(line) for line in flat.split("\n")] == [len(line) for line in text.split("\n")]


def test_a_notebook_on_one_line_is_read_as_json() -> None:
    data = written(indent=None)
    assert notebook.cells_of(data.decode()) == []
    assert any("doubling time" in chunk.text for chunk in chunks(data))
