"""Write a recorded run into docs/benchmarks.md: `posix_figures.py FILE.json...`, made by `memdir bench posix --output`.

Of a goal or figure that several files measured, the first counts; workloads come from the first file that has any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from server_figures import processors

PAGE: Final = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN: Final = "<!-- figures of memdir bench posix: written by scripts/posix_figures.py -->"
END: Final = "<!-- end of the figures -->"

Report = dict[str, Any]


def main(files: list[str]) -> int:
    if not files:
        sys.stderr.write(f"usage: {sys.argv[0]} FILE.json...\n")
        return 2
    reports = [json.loads(Path(file).read_text(encoding="utf-8")) for file in files]
    page = PAGE.read_text(encoding="utf-8")
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.stderr.write(f"{PAGE} lacks the lines {BEGIN!r} and {END!r}\n")
        return 2
    PAGE.write_text(f"{before}{begin}\n\n{section(reports)}\n\n{end}{after}", encoding="utf-8")
    return 0


def section(reports: list[Report]) -> str:
    first = next((report for report in reports if report["workloads"]), reports[0])
    parts = [origin(first), workloads(first), requests(first), growth(reports), figures(reports), goals(reports)]
    return "\n\n".join(part for part in parts if part)


def origin(report: Report) -> str:
    settings, machine = report["settings"], report["machine"]
    return (
        f"{settings['rounds_done']} rounds, {settings['files']:,} small files, {settings['documents']:,} documents, "
        f"{settings['sources']:,} sources, {settings['stream_mib']:,} MiB; {machine['disk']}, {processors(machine)}, Linux "
        f"{machine['kernel'].split('-')[0]}, Python {machine['python']}, load {machine['load_1m']} at the end; seed "
        f"{settings['seed']}. Cold: {settings['cold']}."
    )


def workloads(report: Report) -> str:
    """Microseconds an operation as median (least-most) for every target, then memdir's ratios."""
    targets = [name for name in report["targets"] if name not in ("memdir-observed", "memdir-passthrough")]
    head = [f"us an operation: {name}" if name == targets[0] else name for name in targets]
    rows = [["workload", *head, "x native", "in cpu", "x best peer", "daemon us"]]
    for one in report["workloads"]:
        memdir = one["targets"].get("memdir", {})
        cells = [spread(one["targets"].get(name, {}).get("wall_us_per_op")) for name in targets]
        peer = memdir.get("ratio_best_peer")
        rows.append(
            [
                f"`{one['name']}`",
                *cells,
                spread(memdir.get("ratio_native")),
                middle(memdir.get("ratio_native_cpu")),
                "" if peer is None else f"{short(peer['median'])} {peer['peer']}",
                middle(memdir.get("cpu_us_per_op")),
            ]
        )
    return table(rows) if report["workloads"] else ""


def requests(report: Report) -> str:
    rows = [["workload", "requests an operation", "kinds (0.1 and more)"]]
    for one in report["workloads"]:
        memdir = one["targets"].get("memdir", {})
        if "requests_per_op" not in memdir:
            continue
        kinds = {kind: count / one["ops"] for kind, count in memdir["requests"].items()}
        shown = ", ".join(f"{kind} {short(share)}" for kind, share in kinds.items() if share >= 0.1)
        rows.append([f"`{one['name']}`", middle(memdir["requests_per_op"]), shown])
    return table(rows) if len(rows) > 1 else ""


def growth(reports: list[Report]) -> str:
    found = next((report["growth"] for report in reports if report["growth"]), [])
    if not found:
        return ""
    counts = list(found[0]["us_per_op"])
    rows = [["us an operation with", "target", *(f"{int(count):,} files" for count in counts), "factor"]]
    rows += [
        [f"`{one['workload']}`", one["target"], *(short(one["us_per_op"].get(count)) for count in counts), short(one["factor"])]
        for one in sorted(found, key=lambda one: one["workload"])
    ]
    return table(rows)


def figures(reports: list[Report]) -> str:
    seen: dict[str, dict[str, Any]] = {}
    for report in reports:
        for figure in report["figures"]:
            seen.setdefault(figure["name"], figure)
    rows = [["figure", "value", "samples", ""]]
    rows += [
        [f"`{name}`", f"{short(one['value'])} {one['unit']}", str(one["samples"]), one.get("note", "")]
        for name, one in seen.items()
    ]
    return table(rows) if seen else ""


def goals(reports: list[Report]) -> str:
    """A goal that nothing measured is not met."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for report in reports:
        for goal in report["goals"]:
            key = (goal["name"], goal["target"])
            if key not in seen or (seen[key]["value"] is None and goal["value"] is not None):
                seen[key] = goal
    rows = [["goal", "of", "value", "goal", "met"]]
    for (name, target), goal in seen.items():
        value = "not measured" if goal["value"] is None else f"{short(goal['value'])} {goal['unit']}"
        rows.append([f"`{name}`", target, value, f"{goal['goal']:g}", "yes" if goal["met"] else "no"])
    return table(rows)


def table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def spread(value: dict[str, Any] | None) -> str:
    return "" if value is None else f"{short(value['median'])} ({short(value['min'])}-{short(value['max'])})"


def middle(value: dict[str, Any] | None) -> str:
    return "" if value is None else short(value["median"])


def short(value: float | None) -> str:
    """Three significant digits, no exponent."""
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
