"""`memdir bench scale`: that it measures what it says, and that its judges would see what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from memdir_bench.scale import command
from memdir_bench.scale.exact import Exhaustive, plain_fts5
from memdir_bench.scale.goals import GOALS
from memdir_bench.scale.material import KINDS, WORDS_PER_PASSAGE, Material
from memdir_bench.scale.throughput import memory_text

SCRIPT = Path(__file__).parents[2] / "scripts" / "scale_figures.py"
PASSAGES = 400


@pytest.fixture(scope="module")
def material() -> Material:
    return Material(dense_dim=384, static_dim=256)


@pytest.mark.long
@pytest.mark.promise("ranked.scale")
def test_a_container_is_filled_searched_compared_and_served(tmp_path: Path) -> None:
    figures = {made.name: made for made in command.at_size(PASSAGES, command.QUICK, parent=tmp_path)}
    assert figures[f"{PASSAGES}.lexical_top10_equal"].value == 1.0
    assert figures[f"{PASSAGES}.vectors_recall_at_10"].value >= 0.99, "so few are all compared"
    for part in ("lexical", "vectors", "hybrid", "scoped", "http_filtered", "visible_by_words", "visible_by_vector"):
        assert 0 < figures[f"{PASSAGES}.{part}_p50"].value <= figures[f"{PASSAGES}.{part}_p95"].value
    assert 0 < figures[f"{PASSAGES}.http_around_p50"].value < figures[f"{PASSAGES}.http_p50"].value
    measured = {name.partition(".")[2] for name in figures}
    assert {goal.partition(".")[2] for goal in GOALS if "." in goal and not goal.startswith("prose.")} <= measured, (
        "every goal has its figure"
    )
    assert not list(tmp_path.iterdir())
    recorded = tmp_path / "run.json"
    report = {"machine": command.machine(), "figures": [made.as_json() for made in figures.values()], "failed": {}}
    recorded.write_text(json.dumps(report))
    read = "import json, sys; sys.path.insert(0, sys.argv[1]); import scale_figures as s; "
    show = "f, _ = s.read([sys.argv[2]]); print(s.latencies(f, s._LATENCIES), s.sizes(f, s._SINGLE, 'passages'), sep=chr(10))"
    shown = subprocess.run(
        [sys.executable, "-c", read + show, str(SCRIPT.parent), str(recorded)], capture_output=True, text=True, check=True
    ).stdout
    assert "| whole search | " in shown
    assert "| 400 | " in shown


def test_a_smaller_container_is_the_beginning_of_a_larger_one(material: Material) -> None:
    small, large = material.block(0, 60), material.block(0, 200)
    assert (small.words == large.words[:60]).all()
    assert (material.dense(0, small) == material.dense(0, large)[:60]).all()
    again = Material(dense_dim=384, static_dim=256)
    assert again.texts(again.block(0, 60)) == material.texts(small)
    assert len(set(material.words)) == len(material.words)


def test_the_judges_agree_with_each_other_and_see_a_wrong_answer(material: Material, tmp_path: Path) -> None:
    exact = Exhaustive(material, PASSAGES)
    with plain_fts5(tmp_path, material, PASSAGES) as plain:
        for kind in KINDS:
            for query in material.queries(kind, 8):
                found = plain.search(query.text, 10)
                assert exact.equal(query, found, fts5=True)
                worst = int(np.argmin(exact.bm25(query, fts5=True)))
                assert not exact.equal(query, [*found[:-1], worst], fts5=True) or not found
    query = material.queries("mixed", 1)[0].dense
    assert exact.nearest(query[None])[0] == set(np.argsort(-(exact._vectors.astype(np.float32) @ query))[:10].tolist())


def test_short_memories_are_short_and_all_different() -> None:
    texts = [memory_text(number) for number in range(3000)]
    assert len(set(texts)) == len(texts)
    lengths = [len(text.split()) for text in texts]
    assert WORDS_PER_PASSAGE - 4 < sum(lengths) / len(lengths) < WORDS_PER_PASSAGE + 8


def test_a_container_of_a_million_has_as_many_rows_as_were_asked_for(material: Material) -> None:
    blocks = material.blocks(1_000_000)
    assert sum(rows for _, rows in blocks) == 1_000_000
    assert material.blocks(400) == [(0, 400)]
