"""Write a recorded run into docs/benchmarks.md: `sync_figures.py FILE.json...`, made by `memdir bench sync --grow --output`.

Of a figure in several files the first counts.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

from server_figures import DOCS, Figures, processors, read, write

BEGIN: Final = "<!-- figures of memdir bench sync: written by scripts/sync_figures.py -->"
_GROWN: Final = re.compile(r"(push|follow|resident|status|idle)_(\d+)_?(\w*)$")
_COLUMNS: Final = {
    ("push", "rate"): "push, files/s",
    ("push", "daemon_cpu"): "daemon, ms/file",
    ("push", "server_cpu"): "server, ms/file",
    ("follow", "rate"): "catch up, files/s",
    ("resident", ""): "daemon, MiB",
    ("status", ""): "status, ms",
    ("idle", "files_daemon_cpu"): "idle daemon, s/min",
}


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    found, machine = read(files)
    write(DOCS / "benchmarks.md", BEGIN, "\n\n".join(part for part in (origin(machine), table(found), growth(found)) if part))
    return 0


def origin(machine: dict[str, Any]) -> str:
    return (
        f"{processors(machine)}, Linux {machine['kernel'].split('-')[0]}, Python {machine['python']}, "
        f"load {machine['load_1m']} at the end."
    )


def table(found: Figures) -> str:
    """Every figure that is not about growth."""
    rows = ["| figure | value | goal | met | |", "|---|---|---|---|---|"]
    for name, figure in found.items():
        if _grown(name) is None:
            goal, met = ("", "") if "goal" not in figure else (f"{figure['goal']:,g}", "yes" if figure["met"] else "no")
            value = f"{figure['value']:,g} {figure['unit']}"
            rows.append(f"| `{name}` | {value} | {goal} | {met} | {figure.get('note', '')} |")
    return "\n".join(rows)


def growth(found: Figures) -> str:
    """One row a size."""
    sizes: dict[int, dict[str, str]] = {}
    for name, figure in found.items():
        grown = _grown(name)
        if grown is not None:
            size, column = grown
            sizes.setdefault(size, {})[column] = f"{figure['value']:,g}"
    if not sizes:
        return ""
    columns = list(_COLUMNS.values())
    rows = ["| files | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for size, cells in sorted(sizes.items()):
        rows.append(f"| {size:,} | " + " | ".join(cells.get(column, "") for column in columns) + " |")
    return "\n".join(rows)


def _grown(name: str) -> tuple[int, str] | None:
    """Size and column of a figure about growth."""
    match = _GROWN.match(name)
    column = None if match is None else _COLUMNS.get((match[1], match[3]))
    return None if match is None or column is None else (int(match[2]), column)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
