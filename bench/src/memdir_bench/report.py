"""What the benchmarks of parts share: from a run to its JSON, its table and its exit code."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from memdir.core.errors import UsageError

_WIDTH: Final = 38


def reported(run: Callable[[argparse.Namespace], dict[str, Any]], args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print, also to `args.output`. 0, or 2 when a part could not be measured."""
    with ended_in_order():
        report = run(args)
    text = json.dumps(report, indent=2) + "\n"
    if args.output is not None:
        try:
            args.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{args.output} cannot be written: {error.strerror}", hint="choose another --output") from None
    sys.stdout.write(text if as_json else table(report))
    return 2 if report["failed"] else 0


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM leaves the block as an exception does: mounts, servers and folders are cleaned up then, too."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def table(report: dict[str, Any]) -> str:
    """The report for people."""
    rows = [f"{'figure':<{_WIDTH}}{'value':>10}  {'unit':<9}{'goal':>8}  met"]
    for figure in report["figures"]:
        met = {True: "yes", False: "NO", None: ""}[figure.get("met")]
        rows.append(
            f"{figure['name']:<{_WIDTH}}{figure['value']!s:>10}  {figure['unit']:<9}{figure.get('goal', ''):>8}  {met}"
            f"{'  ' + figure['note'] if figure.get('note') else ''}".rstrip()
        )
    rows += report.get("remarks", [])
    rows += [f"not measured: {name}: {why}" for name, why in report["failed"].items()]
    return "\n".join(rows) + "\n"
