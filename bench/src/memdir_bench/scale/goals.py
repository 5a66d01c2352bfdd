"""The goals of issue 6 that are about size, in one table: figure, goal, which way is better. Meant for two processors."""

from __future__ import annotations

from typing import Final

from memdir_bench.figures import Better, Figure

GOALS: Final[dict[str, tuple[float, Better]]] = {
    "1000000.lexical_p95": (15, "lower"),
    # Not 1: tantivy rounds the lengths of passages, and what was deleted counts until segments are merged (docs/adr/0023).
    "1000000.lexical_top10_equal": (0.95, "higher"),
    "100000.lexical_top10_equal": (0.95, "higher"),
    "100000.hybrid_p50": (6, "lower"),
    "100000.hybrid_p95": (10, "lower"),
    "1000000.hybrid_p50": (8, "lower"),
    "1000000.hybrid_p95": (25, "lower"),
    "100000.vectors_recall_at_10": (0.96, "higher"),
    "1000000.vectors_recall_at_10": (0.96, "higher"),
    "100000.scoped_p95": (5, "lower"),
    "1000000.scoped_p95": (5, "lower"),
    "100000.server_resident": (600, "lower"),
    "100000.visible_by_words_p95": (20, "lower"),
    "1000000.visible_by_words_p95": (20, "lower"),
    "100000.visible_by_meaning_p95": (1000, "lower"),
    "1000000.visible_by_meaning_p95": (1000, "lower"),
    "import_put_found_p95": (20, "lower"),
    "import_visible_by_meaning_p95": (1000, "lower"),
    **{
        f"prose.{size}.{state}_{mode}_10_p{share}": (goal * (2 if state == "reading" else 1), "lower")
        for size, goals in {5_000: (10, 20), 20_000: (11, 22), 100_000: (12, 25)}.items()
        for share, goal in zip((50, 95), goals, strict=True)
        for state in ("idle", "reading")
        for mode in ("documents", "memories", "hybrid")
    },
    **{f"prose.{size}.read_share": (0.7, "higher") for size in (5_000, 20_000, 100_000)},
    "prose.10000.server_resident": (350, "lower"),
    "pipeline_rate": (250, "higher"),
    "pipeline_batch_rate": (250, "higher"),
}


def figure(name: str, value: float, unit: str, *, samples: int = 1, note: str = "", better: Better = "lower") -> Figure:
    """A figure such as `100000.hybrid_p50`, with the goal of its name if it has one."""
    goal, wanted = GOALS.get(name, (None, better))
    return Figure(name=name, value=value, unit=unit, samples=samples, goal=goal, better=wanted, note=note)
