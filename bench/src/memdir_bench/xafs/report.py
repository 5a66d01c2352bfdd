"""What the runs cost and got right: by condition, size of the corpus and family; Markdown, JSON and a page with plots."""

from __future__ import annotations

import html
import json
import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import UsageError

Row = dict[str, Any]

PRICES: Final = {"input": 3.0, "cached": 0.3, "output": 15.0}
"""Dollars for a million tokens: of a model in the middle, for an idea of the order."""
CPU_HOUR: Final = 0.05
"""Dollars."""
_SAMPLES: Final = 2_000
_WIDTH, _HEIGHT, _MARGIN = 640, 320, 50
_COLOURS: Final = {"plain": "#b3541e", "mount": "#1f6f8b", "shell": "#5a8f29"}


def load(out: Path) -> list[Row]:
    """The rows of all runs, without transcripts; UsageError when there are none."""
    rows = []
    for file in sorted(out.glob("*/*/*.json")):
        row = json.loads(file.read_text(encoding="utf-8"))
        row.pop("transcript", None)
        rows.append(row)
    if not rows:
        raise UsageError(f"there are no runs in {out}", hint="memdir bench xafs run --corpora FOLDER --out FOLDER")
    return rows


def money(row: Row) -> float:
    """Dollars of one run."""
    fresh = row["tokens_in"] - row["tokens_cached"]
    return float(fresh * PRICES["input"] + row["tokens_cached"] * PRICES["cached"] + row["tokens_out"] * PRICES["output"]) / 1e6


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Of one group of runs."""
    right = sum(row["correct"] for row in rows)
    tokens = sum(row["tokens"] for row in rows)
    return {
        "questions": len(rows), "correct": right, "pass_rate": round(right / len(rows), 4), "tokens": tokens,
        "tokens_in": sum(row["tokens_in"] for row in rows), "tokens_cached": sum(row["tokens_cached"] for row in rows),
        "tokens_out": sum(row["tokens_out"] for row in rows), "tokens_per_correct": round(tokens / right) if right else None,
        "calls": sum(row["calls"] for row in rows), "wall_s": round(sum(row["wall_s"] for row in rows), 1),
        "dollars": round(sum(map(money, rows)), 4),
    }  # fmt: skip


def grouped(rows: Sequence[Row], key: Callable[[Row], Any]) -> dict[Any, dict[str, dict[str, Any]]]:
    """key -> condition -> summary."""
    groups: dict[Any, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        groups[key(row)][row["condition"]].append(row)
    return {name: {condition: summary(of) for condition, of in sorted(found.items())} for name, found in sorted(groups.items())}


def change(rows: Sequence[Row], condition: str, *, base: str = "plain", seed: int = 1) -> dict[str, float] | None:
    """By how much the tokens per correct answer are lower than in `base`, with the 95 % interval of the bootstrap over the
    questions that were asked in both (Efron, 1979); None without any."""
    pairs: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        pairs[row["id"]][row["condition"]] = row
    both = [(pair[base], pair[condition]) for pair in pairs.values() if base in pair and condition in pair]
    whole = _lower(both)
    if whole is None:
        return None
    rng = random.Random(seed)  # noqa: S311
    samples = sorted(one for _ in range(_SAMPLES) if (one := _lower(rng.choices(both, k=len(both)))) is not None)
    return {
        "lower_by": round(whole, 4), "from": round(samples[int(0.025 * len(samples))], 4),
        "to": round(samples[min(len(samples) - 1, int(0.975 * len(samples)))], 4), "questions": len(both),
    }  # fmt: skip


def _lower(pairs: Sequence[tuple[Row, Row]]) -> float | None:
    costs: list[float] = []
    for side in (0, 1):
        right = sum(pair[side]["correct"] for pair in pairs)
        if not right:
            return None
        costs.append(float(sum(pair[side]["tokens"] for pair in pairs)) / right)
    return 1.0 - costs[1] / costs[0]


def report(out: Path) -> dict[str, Any]:
    """All figures."""
    rows = load(out)
    conditions = sorted({row["condition"] for row in rows})
    large = [row for row in rows if row["corpus"] >= 200]
    ingest = {file.stem: json.loads(file.read_text()) for file in sorted((out / "ingest").glob("*.json"))}
    return {
        "conditions": grouped(rows, lambda _: "all")["all"],
        "by_corpus": grouped(rows, lambda row: row["corpus"]),
        "by_family": grouped(rows, lambda row: row["family"]),
        "change": {one: change(rows, one) for one in conditions if one != "plain"},
        "change_from_200_files": {one: change(large, one) for one in conditions if one != "plain"} if large else {},
        "ingest": ingest,
        "break_even": _break_even(rows, ingest),
        "prices": PRICES | {"cpu_hour": CPU_HOUR},
    }


def _break_even(rows: Sequence[Row], ingest: Mapping[str, Mapping[str, Any]]) -> dict[int, float | None]:
    """Corpus -> how many questions pay for the processor time of its ingest; None where the mount saves nothing."""
    found = {}
    by_corpus = grouped(rows, lambda row: row["corpus"])
    for told in ingest.values():
        pair = by_corpus.get(told["corpus"], {})
        if "plain" in pair and "mount" in pair:
            saved = (
                pair["plain"]["dollars"] / pair["plain"]["questions"] - pair["mount"]["dollars"] / pair["mount"]["questions"]
            )
            found[told["corpus"]] = round(told["cpu_s"] / 3600 * CPU_HOUR / saved, 2) if saved > 0 else None
    return found


def markdown(found: Mapping[str, Any]) -> str:
    """For a page of documentation."""
    lines = ["| | questions | right | tokens | tokens per right answer | calls | dollars |", "|---|---|---|---|---|---|---|"]
    groups = [
        ("all", found["conditions"]),
        *((f"{size:,} files", of) for size, of in found["by_corpus"].items()),
        *found["by_family"].items(),
    ]
    for name, conditions in groups:
        for condition, one in conditions.items():
            each = f"{one['tokens_per_correct']:,}" if one["tokens_per_correct"] else "none right"
            lines.append(
                f"| {name}, {condition} | {one['questions']} | {one['pass_rate']:.2f} | {one['tokens']:,} | {each} "
                f"| {one['calls']} | {one['dollars']:.2f} |"
            )
    for title, key in (("All corpora", "change"), ("Corpora of 200 files and more", "change_from_200_files")):
        for condition, one in found[key].items():
            if one is not None:
                lines.append(
                    f"\n{title}, {condition} against plain: tokens per right answer lower by {one['lower_by']:.0%} "
                    f"(95 %: {one['from']:.0%} to {one['to']:.0%}, {one['questions']} questions)."
                )
    lines += [
        "",
        "| ingest | files a second | cpu s | server MiB | unreadable | search p95 ms, during | after | break-even, questions |",
    ]
    lines += ["|---|---|---|---|---|---|---|---|"]
    lines += [
        f"| {name} | {one['files_per_s']} | {one['cpu_s']} | {one['server_peak_mib']:.0f} | {one['failed']} "
        f"| {one.get('search_during_p95_ms') or 'none'} | {one.get('search_after_p95_ms') or 'none'} "
        f"| {_told(found['break_even'].get(one['corpus']))} |"
        for name, one in found["ingest"].items()
    ]
    name = max(found["ingest"], default="")
    if formats := found["ingest"].get(name, {}).get("formats"):
        lines += ["", f"| format, {name} | files | read a second | without text, of how many |", "|---|---|---|---|"]
        lines += [
            f"| {suffix} | {one['files']} | {one['a_second'] or 'needs no reader'} | {one['without_text']} of {one['sample']} |"
            for suffix, one in sorted(formats.items())
        ]
    return "\n".join(lines) + "\n"


def _told(questions: float | None) -> str:
    return "never" if questions is None else f"{questions:.1f}"


def page(found: Mapping[str, Any]) -> str:
    """One HTML file with two plots that needs no network."""
    sizes = list(found["by_corpus"])
    series = {
        condition: [
            (size, of[condition]["tokens"] / of[condition]["questions"])
            for size, of in found["by_corpus"].items()
            if condition in of
        ]
        for condition in found["conditions"]
    }
    return (
        "<!doctype html><meta charset=utf-8><title>xAFS</title>"
        "<style>body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto}"
        "svg text{font:12px sans-serif}"
        "td{padding:0 1em 0 0;text-align:right}td:first-child{text-align:left}</style><h1>xAFS</h1>"
        f"<h2>Tokens a question, by files in the corpus</h2>{_curves(sizes, series)}"
        f"<h2>Right answers, by family</h2>{_bars(found['by_family'])}"
        f"<h2>Figures</h2>{_tables(markdown(found))}\n"
    )


def _tables(text: str) -> str:
    """The Markdown of the figures as HTML: rows of tables, and paragraphs."""
    parts = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|--") or not line:
            continue
        if line.startswith("|"):
            parts.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        else:
            parts.append(f"</table><p>{html.escape(line)}</p><table>")
    return f"<table>{''.join(parts)}</table>"


def _curves(sizes: Sequence[int], series: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    import math

    top = max((value for points in series.values() for _, value in points), default=1.0) or 1.0
    low, high = math.log10(min(sizes)), math.log10(max(sizes))

    def x(size: float) -> float:
        return _MARGIN + (_WIDTH - 2 * _MARGIN) * ((math.log10(size) - low) / (high - low) if high > low else 0.5)

    def y(value: float) -> float:
        return _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * value / top

    parts = [f'<text x="{x(size):.0f}" y="{_HEIGHT - 25}" text-anchor="middle">{size}</text>' for size in sizes]
    parts += [f'<text x="5" y="{y(top * share):.0f}">{top * share:,.0f}</text>' for share in (0, 0.5, 1)]
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS.get(name, "#444")
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{_line(points, x, y)}"/>')
        parts.append(f'<text x="{_MARGIN + 10 + 90 * number}" y="20" fill="{colour}">{html.escape(name)}</text>')
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'


def _line(points: Sequence[tuple[int, float]], x: Callable[[float], float], y: Callable[[float], float]) -> str:
    return " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points)


def _bars(families: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    parts, left = [], _MARGIN
    for family, conditions in families.items():
        parts.append(f'<text x="{left}" y="{_HEIGHT - 25}">{html.escape(str(family))}</text>')
        for condition, one in conditions.items():
            tall = (_HEIGHT - 2 * _MARGIN) * one["pass_rate"]
            parts.append(
                f'<rect x="{left}" y="{_HEIGHT - _MARGIN - tall:.1f}" width="35" height="{tall:.1f}" '
                f'fill="{_COLOURS.get(condition, "#444")}"/>'
            )
            parts.append(f'<text x="{left}" y="{_HEIGHT - _MARGIN - tall - 4:.1f}">{one["pass_rate"]:.2f}</text>')
            left += 45
        left += 40
    return f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img">{"".join(parts)}</svg>'
