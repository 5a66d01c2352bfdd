"""`bench search` on a little of everything."""

from __future__ import annotations

from memdir.bench.search import run


def test_both_stores_are_filled_searched_and_compared(database_url: str) -> None:
    report = run(600, database_url)
    figures = {figure["name"]: figure for figure in report["figures"]}
    for part in ("words", "rare_words", "words_in_folder", "vectors", "vectors_in_folder"):
        for name in ("sqlite", "postgres"):
            assert 0 < figures[f"{name}_{part}_p50"]["value"] <= figures[f"{name}_{part}_p95"]["value"]
        assert figures[f"ratio_{part}"]["value"] > 0
    assert figures["postgres_vectors_recall_at_10"]["value"] >= 0.99, "so few are all compared"


def test_without_a_database_there_is_nothing_to_compare() -> None:
    names = {figure["name"] for figure in run(200, None)["figures"]}
    assert "sqlite_words_p50" in names
    assert not any(name.startswith(("postgres", "ratio")) for name in names)
