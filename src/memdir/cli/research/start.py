"""`memdir research TOPIC`: gather a knowledge base in rounds, then write a report from it."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import is_terminal, visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output
    from memdir.daemon.registry import MountRecord
    from memdir.research.run import Means
    from memdir.research.state import Settings, State
    from memdir.research.web.place import Place
    from memdir.research.workspace import Workspace

_FOLDER: Final = "research"
_ENGINES: Final = ("searxng", "brave", "tavily", "serper")  # as memdir.research.web.engines, which is not imported for --help
_BUDGETS: Final = {
    "rounds": "rounds",
    "budget_tokens": "budget_tokens",
    "budget_usd": "budget_usd",
    "budget_minutes": "budget_minutes",
    "turns": "turns",
    "context_tokens": "context_tokens",
}


_KEPT: Final = ("model", "model_url", "digest_model", "search", "offline", "memory", "private_addresses")
"""Options that --resume takes from the run before, unless they are given anew."""


def _amount(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no amount above 0")
    return value


def _configure(parser: Parser) -> None:
    parser.add_argument("topic", metavar="TOPIC", nargs="?", help="what the report is about; '-' reads it from standard input")
    parser.add_argument(
        "--workspace", metavar="DIR", help="where it works (default: research/ in the mounted memory, else here)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with the research in --workspace")
    parser.add_argument("--model", metavar="PROVIDER:NAME", help="openai:…, anthropic:…, google:… (default: $MEMDIR_MODEL)")
    parser.add_argument(
        "--model-url", metavar="URL", help="another endpoint that speaks the provider's protocol ($MEMDIR_MODEL_URL)"
    )
    parser.add_argument("--digest-model", metavar="PROVIDER:NAME", help="a cheaper model that reads pages first")
    parser.add_argument(
        "--json-actions", action="store_true", help="for models that call no tools: actions as JSON in the text"
    )
    parser.add_argument("--search", metavar="ENGINE", choices=_ENGINES, help=f"the web, by one of {', '.join(_ENGINES)}")
    parser.add_argument(
        "--offline", metavar="DIR", action="append", help="instead of the web: a folder, or a .zim file; repeatable"
    )
    parser.add_argument(
        "--memory", action="store_true", help="also everything in the mounted memory, which the model then reads"
    )
    parser.add_argument("--rounds", metavar="N", type=bounded_int(1, 50), help="of gathering, at most (default: 3)")
    parser.add_argument(
        "--turns", metavar="N", type=bounded_int(2, 1000), help="answers of the model in one stage (default: 60)"
    )
    parser.add_argument("--budget-tokens", metavar="N", type=bounded_int(1, 10**10), help="stop at so many tokens")
    parser.add_argument("--budget-usd", metavar="X", type=_amount, help="stop at so much money, where the price is known")
    parser.add_argument("--budget-minutes", metavar="M", type=_amount, help="stop after so long")
    parser.add_argument(
        "--context-tokens", metavar="N", type=bounded_int(2000, 10**7), help="what the model takes (default: 100000)"
    )
    parser.add_argument("--private-addresses", action="store_true", help="also fetch from this machine and its network")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before anything is spent")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.research.live import LiveView, lines
    from memdir.research import outline
    from memdir.research.agent import BudgetSpentError, PausedError
    from memdir.research.run import Run, summary
    from memdir.research.web import reader
    from memdir.research.workspace import INDEX, REPORT, Workspace

    topic = sys.stdin.read(20_000) if args.topic == "-" else args.topic
    if args.resume == bool(topic):
        raise UsageError(
            "say what to research, or --resume --workspace DIR", hint='memdir research "how do LSM trees compact?"'
        )
    root, record, inside = _place_of(args, topic)
    workspace = Workspace(root)
    options = _options(args, workspace)

    def todos() -> list[outline.Todo]:
        return outline.todos(workspace.read(INDEX) or "")

    view = LiveView(todos, out.note, out.style)
    means = _means(args, record, inside)
    settings = _settings(args, workspace)
    if not args.yes and not _agreed(args, workspace, means, settings, out):
        out.note("nothing was started")
        return EXIT_NOTHING
    hint = f"memdir research --resume --workspace {workspace.root}"
    with Run(workspace, means, watch=view.update) as run:
        if args.resume:
            run.resume(settings, options)
        else:
            run.start(topic, settings, options)
        why = ""
        try:
            run.go()
        except (BudgetSpentError, PausedError) as stopped:
            why = stopped.message
        except KeyboardInterrupt:
            out.note(f"stopped; `{hint}` goes on")
            return EXIT_INTERRUPTED
        finally:
            reader.close()
        _publish(run.state, workspace, out)
    told = summary(run.state) | {"workspace": str(workspace.root), "stopped": why}
    if out.json:
        out.document(told)
    else:
        for line in [] if is_terminal(sys.stderr) else lines(run.state, todos()):
            out.note(line)
        if why:
            out.note(f"{why}; `{hint}` goes on")
        elif workspace.read(REPORT) is not None:
            out.line(str(workspace.root / REPORT))
    return EXIT_OK if run.state.outcome in ("complete", "flagged") else EXIT_NOTHING


def _publish(state: State, workspace: Workspace, out: Output) -> None:
    """The page of the report, when there is one."""
    from memdir.research.archive import Archive
    from memdir.research.render import html_report
    from memdir.research.run import summary
    from memdir.research.workspace import REPORT, REPORT_HTML

    report = workspace.read(REPORT)
    if report is not None and state.outcome in ("complete", "flagged"):
        workspace.write(REPORT_HTML, html_report(report, Archive(workspace), summary(state)))
    elif state.outcome:
        out.note(f"{state.outcome}: a report is written from evidence only; see index.md and checks/ in {workspace.root}")


def _place_of(args: argparse.Namespace, topic: str | None) -> tuple[Path, MountRecord | None, str]:
    """The workspace, the mount it is in, and its path there."""
    from memdir.cli.targets import current_folder, open_registry
    from memdir.research.workspace import workspace_name

    registry = open_registry()
    alive = [record for record in registry.all() if record.state == "alive"]
    if args.workspace is not None:
        root = Path(args.workspace).absolute()
    elif topic is None:
        raise UsageError("--resume needs --workspace DIR", hint="the folder that the research works in")
    else:
        here = registry.find_by_path(Path(current_folder()))
        record = here[0] if here is not None and here[0] in alive else alive[0] if len(alive) == 1 else None
        base = Path(record.path) / _FOLDER if record is not None else Path.cwd()
        root = _free(base, workspace_name(topic))
    found = registry.find_by_path(root)
    if found is None or found[0].state != "alive":
        return root, None, ""
    return root, found[0], found[1]


def _free(base: Path, name: str) -> Path:
    """A folder that is not there yet: the same topic again is a research of its own."""
    for number in range(1, 1000):
        root = base / (name if number == 1 else f"{name}-{number}")
        if not root.exists():
            return root
    raise UsageError(f"{base} holds a thousand researches of this name", hint="give --workspace DIR")


def _means(args: argparse.Namespace, record: MountRecord | None, inside: str) -> Means:
    from memdir.cli.research.memory_place import MemoryPlace
    from memdir.llm.providers import model
    from memdir.research.render import need_extra
    from memdir.research.run import Means

    need_extra()
    places: list[Place] = []
    if args.search is not None:
        from memdir.core.web import Http
        from memdir.research.web.engines import Web

        places.append(Web(args.search, Http(private_allowed=args.private_addresses)))
    for given in args.offline or []:
        from memdir.research.web.offline import Folder, Zim

        places.append(Zim(Path(given)) if given.endswith(".zim") else Folder(Path(given)))
    if args.memory and record is None:
        raise UsageError("--memory needs a workspace in a mounted memory", hint="memdir mount NAME, then run it there")
    if record is not None and (args.memory or Path(record.path, _FOLDER).is_dir()):
        # Without --memory only earlier research: what else is in a memory is not sent to a model unless that is asked for.
        places.append(MemoryPlace(record, "/" if args.memory else f"/{_FOLDER}", inside))
    if not (args.search or args.offline or args.memory):
        raise UsageError("say where pages come from", hint=f"--search {'|'.join(_ENGINES)}, --offline DIR, or --memory")
    digester = model(args.digest_model) if args.digest_model else None
    return Means(model=model(args.model, url=args.model_url), places=places, digester=digester)


def _options(args: argparse.Namespace, workspace: Workspace) -> dict[str, Any]:
    """What stands for models and places, written back into `args`. Paths are whole, so that they hold in every folder."""
    from memdir.research.journal import entries
    from memdir.research.state import folded

    args.offline = [str(Path(one).absolute()) for one in args.offline or []]
    if args.resume:
        before = folded(entries(workspace.root)).options
        for name in _KEPT:
            if not getattr(args, name) and name in before:
                setattr(args, name, before[name])
    args.model = args.model or os.environ.get("MEMDIR_MODEL")
    args.model_url = args.model_url or os.environ.get("MEMDIR_MODEL_URL")
    return {name: getattr(args, name) for name in _KEPT}


def _settings(args: argparse.Namespace, workspace: Workspace) -> Settings:
    """What is asked for; on --resume what was asked for before, unless it is said anew."""
    from memdir.research.journal import entries
    from memdir.research.state import Settings, folded

    given = folded(entries(workspace.root)).settings.as_json() if args.resume else Settings().as_json()
    given |= {name: value for name in _BUDGETS if (value := getattr(args, name)) is not None}
    if args.json_actions:
        given["json_actions"] = True
    return Settings.of(given)


def _agreed(args: argparse.Namespace, workspace: Workspace, means: Means, settings: Settings, out: Output) -> bool:
    budgets = [
        text
        for value, text in (
            (settings.budget_tokens, f"{settings.budget_tokens:,} tokens"),
            (settings.budget_usd, f"{settings.budget_usd} USD"),
            (settings.budget_minutes, f"{settings.budget_minutes} minutes"),
        )
        if value
    ]
    if not is_terminal(sys.stdin) or args.topic == "-":
        raise UsageError("nobody is there to be asked", hint="--yes starts without asking")
    out.note(f"workspace: {workspace.root}")
    out.note(f"model:     {visible(means.model.name)}, which reads the topic and the pages")
    out.note(f"pages:     {visible(', '.join(place.name for place in means.places))}")
    out.note(f"at most:   {settings.rounds} rounds, {', '.join(budgets) or 'no budget of tokens or money is set'}")
    out.note("Start? [y/N] ")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


COMMAND = Command(
    name="research",
    usage="[TOPIC] [OPTIONS]",
    description=(
        "Research a topic: gather pages into a knowledge base in rounds, then write a report from it alone, section by "
        "section. Both work through the files of one folder, so it can be stopped anywhere and goes on with --resume; nothing "
        "is paid twice. "
        "Every citation names lines of an archived page, and is checked: a sentence that its lines do not bear is left out. "
        "Needs a language model (the extra `research`)."
    ),
    examples=(
        ('memdir research "how do LSM trees compact?" --search brave --model anthropic:claude-sonnet-5-5', "from the web"),
        ('memdir research "what changed in json since 3.8" --offline /usr/share/doc/python3.11/html --yes', "from a folder"),
        ("memdir research --resume --workspace notes/research/lsm --budget-usd 5 --yes", "go on, with more money"),
        ('memdir research note notes/research/lsm "look at RocksDB only"', "steer it while it runs"),
    ),
    exit_codes=(
        (EXIT_OK, "the report is written"),
        (EXIT_NOTHING, "no report: nothing was found, the budget is spent, or it is paused"),
        (EXIT_ERROR, "an error; the message says what to do"),
        (EXIT_INTERRUPTED, "stopped by Ctrl-C; --resume goes on"),
    ),
    configure=_configure,
    run=_run,
)
