"""What a running research looks like in a terminal, and `memdir research status` once."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TYPE_CHECKING, Final

from memdir.cli.text import human_duration, is_terminal, plural, shortened, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from memdir.research.outline import Todo
    from memdir.research.state import State

_INTERVAL_S: Final = 0.2
_BAR: Final = 20


def lines(state: State, todos: list[Todo], style: Callable[[str, str], str] = lambda text, _kind: text) -> list[str]:
    """Rounds, TODOs, sources, tokens, money and the last actions, a line each."""
    usage, settings = state.usage, state.settings
    stage = state.stage.name.replace("-", " ") if state.stage else "begins"
    done = sum(todo.status == "complete" for todo in todos)
    shown = [style(visible(shortened(state.topic.split("\n")[0], 100)), "bold")]
    rounds = sum(name.startswith("round-") for name in state.stages)
    shown.append(f"  {state.outcome or stage} · {plural(rounds, 'round')} of {settings.rounds}")
    if todos:
        filled = _BAR * done // len(todos)
        shown.append(f"  todo    [{'#' * filled}{'.' * (_BAR - filled)}] {done} of {len(todos)}")
    failed = f", {len(state.failed)} failed" if state.failed else ""
    shown.append(f"  sources {len(set(state.fetched.values()))} from {plural(state.searches, 'search', 'searches')}{failed}")
    cost = "price not known" if state.unpriced else f"{usage.usd or 0:.2f} USD"
    budget = f" of {settings.budget_tokens:,}" if settings.budget_tokens else ""
    spent = f" of {settings.budget_usd:.2f}" if settings.budget_usd else ""
    took = f"{human_duration(state.worked_ms / 1000)}, {plural(state.replies, 'answer')} of {visible(state.model)}"
    shown.append(f"  spent   {usage.tokens:,}{budget} tokens, {cost}{spent}, {took}")
    shown += [style(f"  · {visible(shortened(one, 110))}", "dim") for one in state.actions[-5:]]
    return shown


class LiveView:
    """Draws over itself on a terminal; elsewhere one line for each stage."""

    def __init__(self, todos: Callable[[], list[Todo]], note: Callable[[str], None], style: Callable[[str, str], str]) -> None:
        self._todos = todos
        self._note = note
        self._style = style
        self._shown = is_terminal(sys.stderr)
        self._drawn = 0
        self._next_s = 0.0
        self._said = ""

    def update(self, state: State) -> None:
        if not self._shown:
            said = state.actions[-1] if state.actions else ""
            if said != self._said and (said.endswith(" begins") or " ends: " in said):
                self._note(said.replace("-", " "))
            self._said = said
            return
        now_s = time.monotonic()
        if now_s >= self._next_s or state.outcome:
            self._next_s = now_s + _INTERVAL_S
            self._draw(state)

    def _draw(self, state: State) -> None:
        width = shutil.get_terminal_size().columns - 1
        plain = lines(state, self._todos())
        styled = [
            self._style(shortened(line, width), "dim") if line.startswith("  ·") else shortened(line, width) for line in plain
        ]
        up = f"\x1b[{self._drawn}A" if self._drawn else ""
        sys.stderr.write(up + "\x1b[J" + "\n".join(styled) + "\n")
        sys.stderr.flush()
        self._drawn = len(styled)
