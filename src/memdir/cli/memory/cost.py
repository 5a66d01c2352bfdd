"""`memdir cost`: what memory costs and saves in tokens, on the user's own numbers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_OK, Command, Parser, bounded_int
from memdir.cli.memory.options import add_container

if TYPE_CHECKING:
    from memdir.agents.cost import CostModel
    from memdir.cli.output import Output

_TIMEOUT_S: Final = 10.0
_CURVE: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000)


def _number(low: float, high: float) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not low <= value <= high:  # also refuses nan
            raise argparse.ArgumentTypeError(f"{text} is not between {low:g} and {high:g}")
        return value

    return parse


def _configure(parser: Parser) -> None:
    from memdir.agents import cost

    tokens = _number(1, 10_000_000)
    parser.add_argument(
        "--tokens-per-turn", metavar="N", type=tokens, default=cost.TOKENS_PER_TURN,
        help="of a turn, question and answer (default: 1000)",
    )  # fmt: skip
    parser.add_argument(
        "--top-k", metavar="N", type=_number(0, 1000), help="memories injected in a turn (default: what was, else 5)"
    )
    parser.add_argument(
        "--chunk-tokens",
        metavar="N",
        type=_number(0, 100_000),
        help="tokens of a memory (default: of those injected, else 512)",
    )
    parser.add_argument("--turns", metavar="N", type=bounded_int(1, 1_000_000), default=cost.TURNS, help="(default: 50)")
    parser.add_argument(
        "--window", metavar="N", type=bounded_int(1000, 100_000_000), default=cost.WINDOW_TOKENS,
        help="the model's context window in tokens (default: 200000)",
    )  # fmt: skip
    parser.add_argument("--overhead-ms", metavar="MS", type=_number(0, 60_000), default=cost.OVERHEAD_MS, help="(default: 5)")
    parser.add_argument(
        "--inference-ms", metavar="MS", type=_number(1, 3_600_000), default=cost.INFERENCE_MS, help="(default: 2000)"
    )
    parser.add_argument("--days", metavar="N", type=bounded_int(1, 365), default=7, help="of usage to count (default: 7)")
    add_container(parser)
    parser.add_argument("--no-usage", action="store_true", help="compute only; no server is asked")
    parser.add_argument("--tables", action="store_true", help="the tables of the paper, for comparison")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.agents.cost import CHUNK_TOKENS, TOP_K, CostModel

    usage, stats = (None, None) if args.no_usage else _asked(args, out)
    blocks = int(usage["injections"]) if usage else 0
    told = int(usage["injectedMemories"]) if usage else 0
    top_k, chunk_tokens = args.top_k, args.chunk_tokens
    if top_k is None:
        top_k = told / blocks if blocks else TOP_K
    if chunk_tokens is None:
        chunk_tokens = int(usage["injectedTokens"]) / told if usage and told else CHUNK_TOKENS
    model = CostModel(
        tokens_per_turn=args.tokens_per_turn,
        top_k=top_k,
        chunk_tokens=chunk_tokens,
        turns=args.turns,
        window_tokens=args.window,
    )
    report = _report(model, args, usage, stats)
    if out.json:
        out.document(report | ({"tables": _tables()} if args.tables else {}))
        return EXIT_OK
    _print(report, out)
    if args.tables:
        _print_tables(_tables(), out)
    return EXIT_OK


def _asked(args: argparse.Namespace, out: Output) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Usage and size of the container; None for both when no server runs, or it has no such container: what is left is a
    calculation, which needs neither."""
    from memdir.agents.service import AgentMemories, agent_container
    from memdir.client.light import LightCallError
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    server = running_server(app_paths())
    if server is None:
        out.note("no server runs, so nothing is known of what was injected; `memdir server start` starts it")
        return None, None
    memories = AgentMemories(server=server, container=agent_container(args.container), timeout_s=_TIMEOUT_S)
    try:
        return memories.usage(days=args.days), memories.stats()
    except LightCallError as error:
        if error.status != 404:
            raise
        out.note(f"the server has no memory called {memories.container}, so nothing was injected from it")
        return None, None


def _report(
    model: CostModel, args: argparse.Namespace, usage: dict[str, Any] | None, stats: dict[str, Any] | None
) -> dict[str, Any]:
    from memdir.agents.cost import overhead

    shown = [turn for turn in _CURVE if turn < model.turns] + [model.turns]
    return {
        "model": {
            "tokens_per_turn": model.tokens_per_turn, "top_k": round(model.top_k, 2),
            "chunk_tokens": round(model.chunk_tokens, 1), "turns": model.turns, "window_tokens": model.window_tokens,
            "measured": {
                "top_k": bool(args.top_k is None and usage and usage["injections"]),
                "chunk_tokens": bool(args.chunk_tokens is None and usage and usage["injectedMemories"]),
            },
        },
        "break_even": round(model.break_even, 2),
        "break_even_turn": model.break_even_turn,
        "tokens_without": round(model.baseline_total),
        "tokens_with": round(model.with_memory_total),
        "reduction": round(model.reduction, 4),
        "window_full_turn": model.window_full_turn,
        "response_tokens": round(model.response_tokens()),
        "latency_overhead": round(overhead(args.overhead_ms, args.inference_ms), 5),
        "by_turn": [
            {
                "turn": turn, "without": round(model.baseline_at(turn)), "with": round(model.with_memory_at),
                "ratio": round(model.ratio_at(turn), 4),
            }
            for turn in shown
        ],
        "stored": None if stats is None else {
            "memories": stats["memories"], "tokens": stats["tokens"],
            "amplification": round(model.amplification(stats["tokens"]), 3),
        },
        "usage": None if usage is None else _usage(usage),
    }  # fmt: skip


def _usage(usage: dict[str, Any]) -> dict[str, Any]:
    told = usage["injectedMemories"]
    return {
        "days": usage["days"], "sessions": usage["sessions"], "injections": usage["injections"],
        "injected_memories": told, "injected_tokens": usage["injectedTokens"], "used_afterwards": usage["usedAfterwards"],
        "used_share": round(usage["usedAfterwards"] / told, 4) if told else None,
        "searches": usage["searches"], "stored": usage["stored"],
    }  # fmt: skip


def _tables() -> dict[str, Any]:
    from memdir.agents.cost import SCENARIOS, STORAGES, CostModel

    model = CostModel()
    return {
        "break_even": [_scenario(name, made) for name, made in SCENARIOS],
        "capacity": [
            {
                "storage": name, "tokens": round(model.capacity_tokens(size_bytes)),
                "amplification": model.amplification(model.capacity_tokens(size_bytes)),
            }
            for name, size_bytes in STORAGES
        ],
    }  # fmt: skip


def _scenario(name: str, model: CostModel) -> dict[str, Any]:
    return {
        "scenario": name, "tokens_per_turn": model.tokens_per_turn, "top_k": model.top_k, "chunk_tokens": model.chunk_tokens,
        "break_even": round(model.break_even + 1e-9, 2), "turn": model.break_even_turn,
    }  # fmt: skip


# --- for people --------------------------------------------------------------------------------------------------------


def _print(report: dict[str, Any], out: Output) -> None:
    model = report["model"]
    measured = ", ".join(name.replace("_", " ") for name, was in model["measured"].items() if was)
    out.line(
        f"{model['tokens_per_turn']:,g} tokens a turn, {model['top_k']:g} memories of {model['chunk_tokens']:g} tokens in each,"
        f" a window of {model['window_tokens']:,}" + (f" ({measured}: as injected)" if measured else "")
    )
    out.line()
    out.line(f"{'turn':>8}{'without':>16}{'with memory':>16}{'ratio':>9}")
    for row in report["by_turn"]:
        out.line(f"{row['turn']:>8,}{row['without']:>16,}{row['with']:>16,}{row['ratio']:>9.3f}")
    saved = report["reduction"]
    out.line(f"{'all':>8}{report['tokens_without']:>16,}{report['tokens_with']:>16,}{1 - saved:>9.3f}")
    out.line()
    out.line(f"break-even       {report['break_even']:.2f}: cheaper from turn {report['break_even_turn']:,} on")
    out.line(
        f"reduction        {saved:.1%} of the input tokens of {model['turns']:,} turns" + (" (more!)" if saved < 0 else "")
    )
    out.line(f"window           full at turn {report['window_full_turn']:,} without memory; with it every turn is as long")
    out.line(f"left to answer   {report['response_tokens']:,} tokens, after system, memory and a conversation of 5,000")
    out.line(f"time             {report['latency_overhead']:.2%} of the model's")
    stored, usage = report["stored"], report["usage"]
    if stored is not None:
        out.line(
            f"stored           {stored['memories']:,} memories, about {stored['tokens']:,} tokens: "
            f"{stored['amplification']:,g} windows"
        )
    if usage is not None:
        share = "" if usage["used_share"] is None else f" ({usage['used_share']:.0%})"
        out.line(
            f"last {usage['days']:>3} days    {usage['injections']:,} blocks in {usage['sessions']:,} sessions: "
            f"{usage['injected_memories']:,} memories, {usage['injected_tokens']:,} tokens; "
            f"{usage['used_afterwards']:,} used afterwards{share}"
        )
        out.line(f"                 {usage['searches']:,} searches, {usage['stored']:,} stored by agents")


def _print_tables(tables: dict[str, Any], out: Output) -> None:
    out.line()
    for row in tables["break_even"]:
        out.line(
            f"{row['scenario']:<22}{row['tokens_per_turn']:>7,g}{row['top_k']:>4,g}{row['chunk_tokens']:>5,g}"
            f"{row['break_even']:>7.2f} (turn {row['turn']})"
        )
    for row in tables["capacity"]:
        out.line(f"{row['storage']:<22}{row['tokens']:>16,} tokens{row['amplification']:>9,g} windows")


COMMAND = Command(
    name="cost",
    usage="[OPTIONS]",
    description=(
        "What memory costs and saves in tokens. Without it turn t sends all turns before it again: s·t tokens. With it every\n"
        "turn sends itself and k memories of c tokens: s + k·c. Break-even is at turn 1 + k·c/s. What the hook injected, and\n"
        "how much of it the session used afterwards, comes from the server, and so do k and c unless you give them."
    ),
    examples=[
        ("memdir cost", "on what was injected this week"),
        ("memdir cost --tokens-per-turn 2000 --top-k 10 --turns 100", "a heavy coding session"),
        ("memdir cost --no-usage --tables", "the paper's tables; needs no server"),
        ("memdir cost --days 30 --json", "for programs"),
    ],
    exit_codes=[(0, "computed")],
    configure=_configure,
    run=_run,
)
