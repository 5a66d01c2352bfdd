"""Write recorded runs into docs/benchmarks.md: `retrieval_figures.py FILE.json...`, made by `memdir bench retrieval --output`.

Of a figure in several files the first counts.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from server_figures import DOCS, Figures, read, write

BEGIN: Final = "<!-- figures of memdir bench retrieval: written by scripts/retrieval_figures.py -->"
COLLECTIONS: Final = ("cranfield", "cisi")
MEASURES: Final = ("ndcg_10", "recall_5", "recall_10", "recall_100", "mrr", "success_1")
_ABLATION: Final = "without_"


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    found, _ = read(files)
    parts = [goals(found), *(stages(found, name) for name in COLLECTIONS), ablations(found), others(found)]
    write(DOCS / "benchmarks.md", BEGIN, "\n\n".join(part for part in parts if part))
    return 0


def goals(found: Figures) -> str:
    """Every figure that has a goal."""
    rows = ["| figure | value | 95 % interval | questions | goal | met |", "|---|---|---|---|---|---|"]
    for name, figure in found.items():
        if "goal" in figure:
            row = [f"`{name}`", short(figure["value"]), interval(figure), f"{figure['samples']:,}", f"{figure['goal']:g}"]
            rows.append(f"| {' | '.join(row)} | {'yes' if figure['met'] else 'no'} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def stages(found: Figures, collection: str) -> str:
    """A row a stage, a column a measure; nDCG@10 with its interval."""
    names = [name.split(".")[1] for name in found if name.startswith(f"{collection}.") and name.endswith(".success_1")]
    if not names:
        return ""
    rows = [f"| {collection} | " + " | ".join(MEASURES) + " |", "|---" * (len(MEASURES) + 1) + "|"]
    for stage in names:
        cells = [short(found[f"{collection}.{stage}.{measure}"]["value"]) for measure in MEASURES]
        cells[0] += f" ({interval(found[f'{collection}.{stage}.ndcg_10'])})"
        rows.append(f"| {stage} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def ablations(found: Figures) -> str:
    """What nDCG@10 loses without each part."""
    parts = list(dict.fromkeys(name.split(".")[1].removeprefix(_ABLATION) for name in found if f".{_ABLATION}" in name))
    if not parts:
        return ""
    rows = ["| nDCG@10 of the whole search over that without | " + " | ".join(COLLECTIONS) + " |", "|---|---|---|"]
    for part in parts:
        gaps = [found.get(f"{name}.full_over_{_ABLATION}{part}.ndcg_10") for name in COLLECTIONS]
        rows.append(f"| {part} | " + " | ".join(f"{gap['value']:+.3f} ({interval(gap)})" if gap else "" for gap in gaps) + " |")
    return "\n".join(rows)


def others(found: Figures) -> str:
    """What is in no other table: lines, languages, hops, unrelated questions."""
    rows = ["| figure | value | 95 % interval | questions |", "|---|---|---|---|"]
    for name, figure in found.items():
        told = name.split(".")[0] in COLLECTIONS and name.rsplit(".", 1)[-1] in MEASURES
        if not told and "goal" not in figure:
            rows.append(f"| `{name}` | {short(figure['value'])} | {interval(figure)} | {figure['samples']:,} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def interval(figure: dict[str, Any]) -> str:
    """From lower to upper end."""
    return " to ".join(short(end) for end in figure["spread"]) if "spread" in figure else ""


def short(value: float) -> str:
    """Three digits behind the point, as shares are told here."""
    return f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
