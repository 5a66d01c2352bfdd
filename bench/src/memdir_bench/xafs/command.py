"""`memdir bench xafs make | run | report`."""

from __future__ import annotations

import argparse
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import Command, Parser, bounded_int
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.llm.port import Model
    from memdir_bench.xafs.hosts import HostAgent

_NEEDED: Final = ("reportlab", "docx", "xlsxwriter", "espeakng_loader")


def _sizes(text: str) -> tuple[int, ...]:
    one = bounded_int(2, 100_000)
    return tuple(one(part.strip()) for part in text.split(","))


def _configure_make(parser: Parser) -> None:
    from memdir_bench.xafs.corpus import QUESTIONS, SIZES

    add = parser.add_argument
    add("--seed", metavar="N", type=bounded_int(0, 2**32), default=1, help="of everything that is made up (default: 1)")
    add("--out", metavar="DIR", type=Path, required=True, help="where the corpora go, a folder each")
    add("--sizes", metavar="N,N", type=_sizes, default=SIZES, help="files in each corpus (default: thirteen, 5 to 9,988)")
    add(
        "--questions",
        metavar="N",
        type=bounded_int(2, 10_000),
        default=QUESTIONS,
        help=f"over all corpora (default: {QUESTIONS})",
    )


def _make(args: argparse.Namespace, out: Output) -> int:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} cannot be imported", hint="pip install 'memdir-bench[ingest]'")
    from memdir.cli.output import Progress
    from memdir_bench.xafs.corpus import Readings, make_corpus, questions_of

    counts = questions_of(args.sizes, args.questions)
    readings, made = Readings(), []
    try:
        for size in args.sizes:
            folder = args.out / f"c{size:05d}"
            if (folder / "files").exists():
                raise UsageError(f"{folder} exists", hint="choose another --out, or delete it")
            with Progress(f"corpus of {size:,}", noun="file") as bar:
                report = make_corpus(
                    folder,
                    seed=args.seed,
                    size=size,
                    count=counts[size],
                    readings=readings,
                    progress=lambda done, size=size: bar.update(done, size),  # type: ignore[misc]
                )
            made.append(report)
            if not out.json:
                out.line(
                    f"{folder}: {report['files']:,} files, {report['size_bytes'] / 1e6:.1f} MB, "
                    f"{len(report['questions'])} questions"
                )
    finally:
        readings.close()
    if out.json:
        out.document(
            [
                {key: value for key, value in report.items() if key != "questions"} | {"questions": len(report["questions"])}
                for report in made
            ]
        )
    return 0


def _configure_run(parser: Parser) -> None:
    from memdir_bench.commands import add_model
    from memdir_bench.xafs.hosts import HOSTS
    from memdir_bench.xafs.run import CONDITIONS

    add = parser.add_argument
    add("--corpora", metavar="DIR", type=Path, required=True, help="what `make` made")
    add("--out", metavar="DIR", type=Path, required=True, help="where each run is kept; what is there is not run again")
    add(
        "--condition", metavar="NAME", nargs="+", choices=CONDITIONS, default=["plain", "mount"],
        help=f"some of {', '.join(CONDITIONS)} (default: plain mount)",
    )  # fmt: skip
    add_model(parser, "a language model as the agent (default: the scripted agent, without one)")
    add(
        "--host", choices=tuple(HOSTS), help="an installed host program as the agent, as you have set it up, without asking you"
    )
    add("--host-arg", metavar="ARG", action="append", default=[], help="an argument for the host, such as --host-arg=--model=x")
    add(
        "--seconds", metavar="N", type=bounded_int(10, 24 * 3600), default=600,
        help="that a model or a host may take for one question (default: 600)",
    )  # fmt: skip
    add(
        "--parallel", metavar="N", type=bounded_int(1, 64), default=1,
        help="questions of one drive answered at once, but for the shell and a model over MCP (default: 1)",
    )  # fmt: skip
    add("--largest", metavar="N", type=bounded_int(1, 100_000), default=100_000, help="leave out corpora of more files")
    add("--calls", metavar="N", type=bounded_int(1, 1000), default=40, help="commands for one question, at most (default: 40)")
    add(
        "--tokens",
        metavar="N",
        type=bounded_int(1000, 10**8),
        default=400_000,
        help="for one question, at most (default: 400,000)",
    )


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir_bench.report import ended_in_order
    from memdir_bench.xafs.hosts import HostAgent
    from memdir_bench.xafs.policy import Budget
    from memdir_bench.xafs.run import Runner, corpora_in, run_all

    corpora = [
        one for one in corpora_in(args.corpora) if json.loads((one / "questions.json").read_text())["corpus"] <= args.largest
    ]
    agent: Model | HostAgent | None = None
    if args.model is not None and args.host is not None:
        raise UsageError("--model and --host are two agents", hint="give one of them, and each an --out of its own")
    if args.model is not None:
        from memdir.llm.providers import model

        agent = model(args.model, url=args.model_url)
    elif args.host is not None:
        agent = HostAgent(name=args.host, more=tuple(args.host_arg))
    runner = Runner(
        args.out, Budget(calls=args.calls, tokens=args.tokens, seconds=args.seconds), out.note, agent, args.parallel
    )
    with ended_in_order():
        run_all(corpora, runner, conditions=args.condition)
    return _show(args.out, out)


def _configure_report(parser: Parser) -> None:
    add = parser.add_argument
    add("--out", metavar="DIR", type=Path, required=True, help="where `run` kept the runs")
    add("--html", metavar="FILE", type=Path, help="write a page with plots too")
    add("--audit", metavar="DIR", type=Path, help="corpora whose shortcuts are tried too; reads every file of them")


def _report(args: argparse.Namespace, out: Output) -> int:
    from memdir_bench.xafs.report import page, report

    if args.html is not None:
        args.html.write_text(page(report(args.out)), encoding="utf-8")
    return _show(args.out, out, audited=None if args.audit is None else _audited(args.audit))


def _audited(folder: Path) -> dict[str, dict[str, float]]:
    from memdir_bench.xafs.audits import audit
    from memdir_bench.xafs.corpus import Readings
    from memdir_bench.xafs.run import corpora_in, questions_in

    found, readings = {}, Readings()
    try:
        for corpus in corpora_in(folder):
            files = [file for file in (corpus / "files").rglob("*") if file.is_file()]
            texts = {str(file.relative_to(corpus / "files")): readings.text(file.name, file.read_bytes()) for file in files}
            found[corpus.name] = audit([question for _, question in questions_in(corpus)], texts)
    finally:
        readings.close()
    return found


def _show(folder: Path, out: Output, *, audited: dict[str, dict[str, float]] | None = None) -> int:
    from memdir_bench.xafs.report import markdown, report

    found: dict[str, Any] = report(folder)
    if audited is not None:
        found["shortcuts"] = audited
    if out.json:
        out.document(found)
        return 0
    sys.stdout.write(markdown(found))
    for corpus, shares in (audited or {}).items():
        out.line(f"{corpus}: shortcuts get right: " + ", ".join(f"{name} {share:.2f}" for name, share in shares.items()))
    return 0


MAKE: Final = Command(
    name="bench xafs make",
    usage="[OPTIONS] --out DIR",
    description=(
        "Make drives of a made-up organisation each, of 5 to 9,988 files: notes, mail, chats, tables, office files, PDF,\n"
        "scans, pictures, recordings, code and logs, with drafts and talk around what is asked. Each question is proved to\n"
        "be answered by its gold files, and by no part of them. See docs/xafs.md."
    ),
    examples=[
        ("memdir bench xafs make --out corpora", "all thirteen, some minutes"),
        ("memdir bench xafs make --out small --sizes 5,50,200 --seed 7", "three of another world"),
    ],
    exit_codes=[(0, "made")],
    configure=_configure_make,
    run=_make,
)
RUN: Final = Command(
    name="bench xafs run",
    usage="[OPTIONS] --corpora DIR --out DIR",
    description=(
        "Let an agent answer every question in each condition: a plain folder with a shell, the mount, the shell in process,\n"
        "the same as a tool of an MCP server. Every run is kept with its transcript; what is broken off goes on where it was.\n"
        "A host program runs in copies of the drives, with your settings, and is not asked to confirm its commands."
    ),
    examples=[
        ("memdir bench xafs run --corpora corpora --out runs --largest 500", "the corpora of up to 500 files"),
        ("memdir bench xafs run --corpora corpora --out gpt --model openai:gpt-5.5", "with your own model"),
        ("memdir bench xafs run --corpora corpora --out claude --host claude-code", "with a host program"),
    ],
    exit_codes=[(0, "all questions were asked")],
    configure=_configure_run,
    run=_run,
)
REPORT: Final = Command(
    name="bench xafs report",
    usage="[OPTIONS] --out DIR",
    description="Tokens, right answers and the costs of ingest, by condition, size and family, with intervals.",
    examples=[
        ("memdir bench xafs report --out runs --html xafs.html", "and a page with plots"),
        ("memdir bench xafs report --out runs --audit corpora", "and what shortcuts would get right"),
    ],
    exit_codes=[(0, "reported")],
    configure=_configure_report,
    run=_report,
)
