"""Write a recorded run into docs/benchmarks.md: `scale_figures.py FILE.json...`, made by `memdir bench scale --output`.

Of a figure in several files the first counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final

from server_figures import DOCS, Figures, goals, read, write
from sync_figures import origin

BEGIN: Final = "<!-- figures of memdir bench scale: written by scripts/scale_figures.py -->"
_SIZED: Final = re.compile(r"(\d+)\.(\w+)$")
_SHARES: Final = ("p50", "p95", "p99")
_LATENCIES: Final = {
    "lexical": "by words", "lexical_needle": "· rare words", "lexical_common": "· common words", "lexical_mixed": "· both",
    "fts5": "plain FTS5", "fts5_common": "· common words", "exhaustive": "every passage scored", "vectors": "by vectors",
    "while_building": "whole search, while indexes are made",
    "hybrid": "whole search", "hybrid_cpu": "· its processor time", "scoped": "· in ten files",
    "scoped_cpu": "· its processor time, in ten files", "http": "· over HTTP", "http_around": "· · all but the search itself",
    "http_scoped": "· over HTTP, in ten files", "http_filtered": "· over HTTP, filtered",
    "visible_by_words": "change seen by words", "visible_by_vector": "change seen by vector",
    "put_found": "put, found by words", "visible_by_meaning": "put, all vectors",
}  # fmt: skip
_SINGLE: Final = {
    "build_rate": "passages/s", "disk": "disk, bytes each", "first_search": "first search, ms", "words_ready": "words built, s",
    "vectors_ready": "vectors built, s",
    "memory_loaded_rss": "loaded, MiB", "memory_searched_rss": "searched, MiB",
    "memory_searched_anonymous": "of it no file, MiB",
    "server_idle": "server idle, MiB", "server_resident": "server, MiB", "lexical_top10_equal": "top 10 = exhaustive",
    "vectors_recall_at_10": "recall@10",
}  # fmt: skip


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    found, machine = read(files)
    parts = (
        origin(machine), goals(found), latencies(found, _LATENCIES), sizes(found, _SINGLE, "passages"),
        listed(found, "pipeline_"),
    )  # fmt: skip
    write(DOCS / "benchmarks.md", BEGIN, "\n\n".join(part for part in parts if part))
    return 0


def measured_sizes(found: Figures) -> list[int]:
    return sorted({int(match[1]) for name in found if (match := _SIZED.match(name))})


def latencies(found: Figures, titles: Mapping[str, str], form: str = ",g") -> str:
    """Milliseconds at p50 / p95 / p99, a column for each size; '' when no size was measured."""
    columns = measured_sizes(found)
    if not columns:
        return ""
    rows = ["| ms, p50 / p95 / p99 | " + " | ".join(f"{size:,}" for size in columns) + " |", "|---|" + "---|" * len(columns)]
    for name, title in titles.items():
        cells = []
        for size in columns:
            values = [found.get(f"{size}.{name}_{share}") for share in _SHARES]
            cells.append(" / ".join(f"{value['value']:{form}}" for value in values if value is not None))
        if any(cells):
            rows.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def sizes(found: Figures, titles: Mapping[str, str], of: str, form: str = ",g") -> str:
    """What is one number, a row for each size; '' when none was measured."""
    if not measured_sizes(found):
        return ""
    rows = [f"| {of} | " + " | ".join(titles.values()) + " |", "|---|" + "---|" * len(titles)]
    for size in measured_sizes(found):
        values = [found.get(f"{size}.{name}") for name in titles]
        rows.append(
            f"| {size:,} | " + " | ".join("" if value is None else f"{value['value']:{form}}" for value in values) + " |"
        )
    return "\n".join(rows)


def listed(found: Figures, prefix: str) -> str:
    """A line for each figure whose name begins so."""
    return "\n".join(
        f"- `{name}`: {figure['value']:,g} {figure['unit']}" + (f" ({figure['note']})" if figure.get("note") else "")
        for name, figure in found.items()
        if name.startswith(prefix)
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
