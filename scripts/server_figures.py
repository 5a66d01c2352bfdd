"""Write recorded runs into the docs: `server_figures.py FILE.json...`, made by `memdir bench server --output`.

Goals and figures go into docs/benchmarks.md, what an item costs and what a processor can carry into docs/scale.md. Of a figure
in several files the first counts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parents[1] / "docs"
FIGURES: Final = "<!-- figures of memdir bench server: written by scripts/server_figures.py -->"
CAPACITY: Final = "<!-- capacity: written by scripts/server_figures.py -->"
BUSY: Final = 0.7
"""The share of a processor that is planned with: beyond it, waiting grows faster than work."""
STORES: Final = ("sqlite", "postgres")
REQUESTS: Final = ("put", "add", "get", "list", "search")
CLIENTS: Final = (1, 16, 64)
GROWN: Final = (1_000, 10_000, 100_000)
_END: Final = "<!-- end -->"

Figures = dict[str, dict[str, Any]]


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    found, _ = read(files)
    write(DOCS / "benchmarks.md", FIGURES, "\n\n".join([goals(found), requests(found), growth(found)]))
    write(DOCS / "scale.md", CAPACITY, capacity(found))
    return 0


def read(files: list[str]) -> tuple[Figures, dict[str, Any]]:
    """Figures by name, and the machine of the first file."""
    found: Figures = {}
    machine: dict[str, Any] = {}
    for file in reversed(files):
        report = json.loads(Path(file).read_text(encoding="utf-8"))
        found.update({figure["name"]: figure for figure in report["figures"] if figure["value"] is not None})
        machine = report.get("machine", {})
    return found, machine


def write(page: Path, begin: str, text: str) -> None:
    """Put `text` between the line `begin` and the next end."""
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, end, after = rest.partition(_END)
    if not found or not end:
        raise SystemExit(f"{page} lacks the lines {begin!r} and {_END!r}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def processors(machine: dict[str, Any]) -> str:
    """How many, and which, when the run told."""
    told = machine.get("processor")
    return f"{machine['cpus']} CPUs{f' ({told})' if told else ''}"


def goals(found: Figures) -> str:
    """Every figure that has a goal."""
    rows = ["| figure | value | goal | met |", "|---|---|---|---|"]
    for name, figure in found.items():
        if "goal" in figure:
            value = f"{figure['value']:,g} {figure['unit']}"
            rows.append(f"| `{name}` | {value} | {figure['goal']:,g} | {'yes' if figure['met'] else 'no'} |")
    return "\n".join(rows)


def requests(found: Figures) -> str:
    """Requests a second, and milliseconds at p50 / p95 / p99, by number of clients."""
    rows = ["| request | store | " + " | ".join(f"{clients} at once" for clients in CLIENTS) + " |", "|---|---|---|---|---|"]
    for store in STORES:
        for kind in REQUESTS:
            cells = [cell(found, f"{store}.{kind}_{clients}") for clients in CLIENTS]
            if any(cells):
                rows.append(f"| {kind} | {store} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def growth(found: Figures) -> str:
    """The same for one client, by documents in the container."""
    rows = ["| request | store | " + " | ".join(f"{count:,} documents" for count in GROWN) + " |", "|---|---|---|---|---|"]
    for store in STORES:
        for kind in ("put", "get", "list"):
            cells = [cell(found, f"{store}.{kind}_{count}") for count in GROWN]
            if any(cells):
                rows.append(f"| {kind} | {store} | " + " | ".join(cells) + " |")
    return "\n".join(rows) if len(rows) > 2 else ""


def cell(found: Figures, stem: str) -> str:
    if f"{stem}_rate" not in found:
        return ""
    waits = " / ".join(shown(found[f"{stem}_{share}"]["value"]) for share in ("p50", "p95", "p99"))
    return f"{found[f'{stem}_rate']['value']:,.0f}/s, {waits} ms"


def shown(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def capacity(found: Figures) -> str:
    """One row for each kind of work that was measured, for each store."""
    values = {name: float(figure["value"]) for name, figure in found.items()}
    rows = ["| work | store | processor time | one processor carries |", "|---|---|---|---|"]
    for store in STORES:
        for kind in REQUESTS:
            cost_ms = values.get(f"{store}.{kind}_16_server_cpu")
            if cost_ms:
                rows.append(f"| {kind} | {store} | {cost_ms:.2f} ms | {BUSY * 1000 / cost_ms:,.0f} a second |")
        cost_ms = values.get(f"{store}.pipeline_cpu")
        if cost_ms:
            an_hour = BUSY * 3_600_000 / cost_ms
            rows.append(f"| document through the pipeline | {store} | {cost_ms:.0f} ms | {an_hour:,.0f} an hour |")
    size_bytes = values.get(f"sqlite.document_{GROWN[-1]}_disk")
    if size_bytes:
        rows.append(f"| a document on the disk (of one word) | sqlite | | {size_bytes / 1024:,.1f} KiB each |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
