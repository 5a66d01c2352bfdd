"""`memdir habits`: what the log says of somebody's ways with files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import visible
from memdir.cli.traces.traces import add_filters, chosen
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.traces.consolidate import Memory

_SHOWN: Final = ("browse_ratio", "avg_output_length", "max_dir_depth", "small_edit_ratio", "delete_to_create", "image_files")
"""A number for each dimension."""
_TEXT_MAX_BYTES: Final = 1 << 20


def _memory(args: argparse.Namespace) -> Memory:
    from memdir.traces.consolidate import consolidate
    from memdir.traces.engram import engrams

    return consolidate(engrams(chosen(args)))


def _configure(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="*", help="what it is needed for: chooses contents and episodes")
    parser.add_argument(
        "--model", metavar="PROVIDER:NAME",
        help="a language model that names episodes and judges what was otherwise: by names of files and numbers, no contents",
    )  # fmt: skip
    parser.add_argument("--model-url", metavar="URL", help="another endpoint that speaks the provider's protocol")
    add_filters(parser)


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.habits import as_json, markdown

    memory = _memory(args)
    query = " ".join(args.query)
    if args.model:
        from memdir.llm.providers import model
        from memdir.traces.annotate import annotated

        memory = annotated(memory, model(args.model, url=args.model_url), query)
    if out.json:
        out.document(as_json(memory, query))
    else:
        for line in markdown(memory, query).splitlines():
            out.line(visible(line))
    return EXIT_OK if memory.engrams else EXIT_NOTHING


def _configure_drift(parser: Parser) -> None:
    parser.add_argument("number", metavar="NUMBER", nargs="*", help="names of numbers (default: one for each dimension)")
    parser.add_argument("--plot", metavar="FILE", help="write a picture: NAME.svg or NAME.png")
    add_filters(parser)


def _drift(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.engram import EXTENDED, FEATURES
    from memdir.traces.habits import bars, drift
    from memdir.traces.plot import png, svg

    names = args.number or list(_SHOWN)
    unknown = [name for name in names if name not in (*FEATURES, *EXTENDED)]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no number of a session", hint=f"one of {', '.join((*FEATURES, *EXTENDED))}")
    memory = _memory(args)
    rows = {name: drift(memory, name) for name in names}
    days = next(iter(rows.values()))[0]
    if args.plot is not None:
        if not args.plot.endswith((".svg", ".png")):
            raise UsageError("a plot is an SVG or a PNG", hint="give a name that ends in .svg or .png")
        drawn = svg if args.plot.endswith(".svg") else png
        Path(args.plot).write_bytes(drawn([(name, values) for name, (_, values) in rows.items()], days))
    if out.json:
        values_by_name = {name: values for name, (_, values) in rows.items()}
        out.document({"days": days, "sessions": [one.session for one in memory.engrams], "values": values_by_name})
    else:
        width = max(map(len, names))
        for name, (_, values) in rows.items():
            out.line(f"{name:<{width}}  {bars(values)}  {min(values, default=0):.3g} to {max(values, default=0):.3g}")
        if days:
            out.line(f"{'':<{width}}  {days[0]} to {days[-1]}, {len(days)} sessions")
        else:
            out.note("nothing was recorded yet")
    return EXIT_OK if days else EXIT_NOTHING


def _configure_suggest(parser: Parser) -> None:
    parser.add_argument("file", metavar="PATH", help="a file, there or only named, that wants a place")
    add_filters(parser)


def _suggest(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.suggest import as_json, suggest

    file = Path(args.file)
    text = ""
    if file.is_file():
        with open(file, "rb") as handle:
            text = handle.read(_TEXT_MAX_BYTES).decode("utf-8", "replace")
    found = suggest(chosen(args), file.name, text, named_folder=str(file.absolute().parent))
    if out.json:
        out.document([as_json(one) for one in found])
    else:
        for one in found:
            place = f"{one.folder.rstrip('/')}/{one.name}"
            out.line(f"{out.name(place)}  {one.score:.2f}  like {', '.join(out.name(path) for path in one.evidence)}")
        if not found:
            out.note("nothing that was recorded is like it")
    return EXIT_OK if found else EXIT_NOTHING


def _configure_procedures(parser: Parser) -> None:
    parser.add_argument("--draft", metavar="DIR", help="write a draft of a SKILL.md for each below this new folder")
    add_filters(parser)


def _procedures(args: argparse.Namespace, out: Output) -> int:
    from memdir.traces.suggest import procedures, skill

    found = procedures(chosen(args))
    if args.draft is not None and found:
        folder = Path(args.draft)
        if folder.exists():
            raise UsageError(
                f"{folder} is there already", hint="name a new folder: drafts do not go where they are used unread"
            )
        for number, one in enumerate(found, start=1):
            place = folder / f"procedure-{number}"
            place.mkdir(parents=True)
            (place / "SKILL.md").write_text(skill(one, number), encoding="utf-8")
    if out.json:
        out.document([{"steps": list(one.steps), "sessions": list(one.sessions)} for one in found])
    else:
        for one in found:
            more = " …" if len(one.sessions) > 3 else ""
            out.line(out.style(f"{len(one.sessions)} sessions", "bold") + f"  ({', '.join(one.sessions[:3])}{more})")
            for step in one.steps:
                out.line(f"   {visible(step)}")
        if not found:
            out.note("nothing was done in the same order in three sessions")
    return EXIT_OK if found else EXIT_NOTHING


_WHERE: Final = "From what `memdir traces` recorded on this machine; no model, no network."
COMMAND = Command(
    name="habits",
    usage="[OPTIONS] [QUERY ...]",
    description=(
        "Show how you work with files: patterns in six dimensions, what you write, and when it was otherwise, each with its\n"
        "evidence. From what `memdir traces` recorded on this machine; a model and the network only with --model."
    ),
    examples=[
        ("memdir habits", "everything"),
        ("memdir habits --json quarterly report", "for an agent that writes one"),
        (
            "memdir habits --model anthropic:claude-sonnet-5-5",
            "episodes in a model's words, and its view of what was otherwise",
        ),
    ],
    exit_codes=[(0, "something is known"), (1, "nothing was recorded")],
    configure=_configure,
    run=_run,
)
DRIFT = Command(
    name="habits drift",
    usage="[OPTIONS] [NUMBER ...]",
    description=f"Show how numbers changed from session to session. {_WHERE}",
    examples=[
        ("memdir habits drift", "a number for each dimension"),
        ("memdir habits drift total_edits --plot edits.svg", "one, as a picture"),
    ],
    exit_codes=[(0, "there are sessions"), (1, "nothing was recorded")],
    configure=_configure_drift,
    run=_drift,
)
SUGGEST = Command(
    name="habits suggest",
    usage="[OPTIONS] PATH",
    description=f"Show where a new file would go, and how it would be called, by where you put files like it. {_WHERE}",
    examples=[("memdir habits suggest invoice-acme.pdf", "folders, best first, with the files that say so")],
    exit_codes=[(0, "there is a place"), (1, "nothing is like it")],
    configure=_configure_suggest,
    run=_suggest,
)
PROCEDURES = Command(
    name="habits procedures",
    usage="[OPTIONS]",
    description=f"Show what you do again and again in the same order, in three sessions or more. {_WHERE}",
    examples=[
        ("memdir habits procedures", "the longest first"),
        ("memdir habits procedures --draft drafts/", "as drafts of skills, to be read before they are used"),
    ],
    exit_codes=[(0, "there are some"), (1, "there are none")],
    configure=_configure_procedures,
    run=_procedures,
)
