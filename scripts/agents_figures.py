"""Write a recorded run into docs/benchmarks.md: `agents_figures.py FILE.json...`, made by `memdir bench agents --output`.

Of a figure in several files the first counts.
"""

from __future__ import annotations

import sys
from typing import Final

from scale_figures import latencies, listed, sizes
from server_figures import DOCS, Figures, goals, read, write
from sync_figures import origin

BEGIN: Final = "<!-- figures of memdir bench agents: written by scripts/agents_figures.py -->"
_KINDS: Final = {
    "words": "in the words of the memory", "reworded": "as asked days later", "paraphrase": "the subject by another name",
    "typo": "one letter wrong", "elsewhere": "without a project", "all": "all of these", "held": "of it on held-out subjects",
}  # fmt: skip
_LATENCIES: Final = {
    "needle": "needle", "rare": "rare words", "common": "common words", "mixed": "both", "needle_cpu": "needle, processor",
    "common_cpu": "common words, processor", "mixed_cpu": "both, processor", "fts5_needle": "plain FTS5, needle",
    "fts5_rare": "· rare words", "fts5_common": "· common words", "fts5_mixed": "· both", "service": "needle, answer made",
    "recorded": "both, counted as accesses", "hook": "hook, exec to exit",
}  # fmt: skip
_SINGLE: Final = {
    "build_rate": "import, 1/s", "build_cpu": "import, ms of processor", "database": "database, bytes each",
    "disk": "disk, bytes each", "index": "index in memory, bytes each", "fts5_disk": "FTS5, bytes each",
    "load": "first search, ms",
    "hook_cpu": "hook, ms of processor", "python_p50": "interpreter alone, ms", "needles_found": "needles of 100",
    "top10_equal": "top 10 = every one scored",
}  # fmt: skip


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    found, machine = read(files)
    parts = (
        origin(machine), goals(found), accuracy(found), latencies(found, _LATENCIES, ",.3g"),
        sizes(found, _SINGLE, "memories", ",.4g"), listed(found, "day_"),
    )  # fmt: skip
    write(DOCS / "benchmarks.md", BEGIN, "\n\n".join(part for part in parts if part))
    return 0


def accuracy(found: Figures) -> str:
    """A row for each kind of question."""
    if "all_top1" not in found:
        return ""
    rows = ["| question | asked | top-1 | 95 % | MRR | in the first ten |", "|---|---|---|---|---|---|"]
    for kind, title in _KINDS.items():
        top1 = found[f"{kind}_top1"]
        values = [found[f"{kind}_{name}"]["value"] for name in ("mrr", "top10")]
        rows.append(
            f"| {title} | {top1['samples']} | {top1['value']:.2f} | {_between(top1['spread'])} | "
            + " | ".join(f"{value:.2f}" for value in values) + " |"
        )  # fmt: skip
    for name, title in (
        ("negatives_answered", "nothing is there, and something was answered"),
        ("held_negatives_answered", "· held out"),
    ):
        one = found[name]
        rows.append(f"| {title} | {one['samples']} | {one['value']:.2f} | {_between(one['spread'])} | | |")
    return "\n".join(rows)


def _between(spread: list[float]) -> str:
    return f"{spread[0]:.2f}–{spread[1]:.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
