"""What an item costs and what a processor can carry, as a table: `capacity.py FILE.json...`.

The files are made by `memdir bench server --output`. The table goes to standard output, or between two lines of docs/scale.md
where it has them. Of a figure in several files the first counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "scale.md"
BEGIN: Final = "<!-- capacity: written by scripts/capacity.py -->"
END: Final = "<!-- end of the capacity -->"
BUSY: Final = 0.7
"""The share of a processor that is planned with: beyond it, waiting grows faster than work."""
REQUESTS: Final = ("put", "add", "get", "list", "search")


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    figures: dict[str, float] = {}
    for file in reversed(files):
        report = json.loads(Path(file).read_text(encoding="utf-8"))
        figures.update({figure["name"]: figure["value"] for figure in report["figures"] if figure["value"] is not None})
    made = table(figures)
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        PAGE.write_text(f"{before}{begin}\n\n{made}\n\n{end}{after}", encoding="utf-8")
    else:
        sys.stdout.write(made + "\n")
    return 0


def table(figures: dict[str, float]) -> str:
    """One row for each kind of work that was measured, for each store."""
    rows = ["| work | store | processor time | one processor carries |", "|---|---|---|---|"]
    for store in ("sqlite", "postgres"):
        for kind in REQUESTS:
            cost_ms = figures.get(f"{store}.{kind}_16_server_cpu")
            if cost_ms:
                rows.append(f"| {kind} | {store} | {cost_ms:.2f} ms | {BUSY * 1000 / cost_ms:,.0f} a second |")
        cost_ms = figures.get(f"{store}.pipeline_cpu")
        if cost_ms:
            rows.append(
                f"| document through the pipeline | {store} | {cost_ms:.0f} ms | {BUSY * 3_600_000 / cost_ms:,.0f} an hour |"
            )
    disk = [("text of 0.6 KB, indexed", figures.get("sqlite.pipeline_disk"))]
    disk += [("tiny, without passages", figures.get(f"sqlite.document_{count}_disk")) for count in (100_000, 10_000, 1_000)]
    for what, size_bytes in disk:
        if size_bytes:
            rows.append(f"| a document on the disk ({what}) | sqlite | | {size_bytes / 1024:,.1f} KiB each |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
