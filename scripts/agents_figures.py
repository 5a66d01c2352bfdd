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
    "words": "in the words of the memory", "reworded": "as asked days later", "chatty": "that, in a prompt of 170 words",
    "paraphrase": "the subject by another name", "typo": "one letter wrong", "elsewhere": "without a project",
    "all": "all of these", "held": "of it held out",
}  # fmt: skip
_NEGATIVES: Final = {
    "negative": "about what no memory is about", "sharing": "that, in words that many memories have",
    "chatty_negative": "that, in a prompt of 170 words", "everyday": "small talk and general knowledge",
    "negatives": "all of these", "held_negatives": "of it held out",
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
    """A row for each kind of question, by words and by meaning; then what was answered and should not have been."""
    if "all_top1" not in found:
        return ""
    ways = {"": "", "semantic_": ", by words and meaning"} if "semantic_all_top1" in found else {"": ""}
    rows = [
        "| question | asked | top-1 | 95 % | the same fact, any project | MRR | in the first ten |",
        "|---|---|---|---|---|---|---|",
    ]
    for prefix, way in ways.items():
        for kind, title in _KINDS.items():
            top1, fact1, mrr, top10 = (found[f"{prefix}{kind}_{name}"] for name in ("top1", "fact1", "mrr", "top10"))
            values = " | ".join(f"{one['value']:.2f}" for one in (fact1, mrr, top10))
            rows.append(f"| {title}{way} | {top1['samples']} | {top1['value']:.2f} | {_between(top1['spread'])} | {values} |")
    answered = ["| nothing is there | asked | answered all the same | 95 % |", "|---|---|---|---|"]
    for prefix, way in ways.items():
        for kind, title in _NEGATIVES.items():
            one = found[f"{prefix}{kind}_answered"]
            answered.append(f"| {title}{way} | {one['samples']} | {one['value']:.2f} | {_between(one['spread'])} |")
    return "\n".join(rows) + "\n\n" + "\n".join(answered)


def _between(spread: list[float]) -> str:
    return f"{spread[0]:.2f}–{spread[1]:.2f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
