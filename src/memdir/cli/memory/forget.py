"""`memdir forget`: what says something goes for good, and a receipt proves it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_ERROR, EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.text import is_terminal, plural, shortened, visible
from memdir.core.errors import MemdirError, NotFoundError, UsageError

if TYPE_CHECKING:
    from memdir.cli.history.shared import Place
    from memdir.cli.output import Output
    from memdir.client.local import ServerInfo

_SHOWN_MAX: Final = 200
_LINE_CHARS: Final = 160
_WAIT_S: Final = 180.0
_ASK_AGAIN_S: Final = 0.5
_CALL_S: Final = 300.0
_RECEIPT_MAX_BYTES: Final = 16 << 20
_RECEIPT_KEYS: Final = ("id", "containerTag", "at", "lines", "files", "former", "facts", "key", "windows")


def _configure(parser: Parser) -> None:
    parser.add_argument("words", metavar="WORDS", nargs="*", help="words as they stand in the files; case does not count")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--subject", metavar="NAME", help="somebody or something: also what is said of it without the name")
    what.add_argument("--path", metavar="PATH", help="a file or folder, whole, with its history")
    parser.add_argument("--whole-files", action="store_true", help="also delete PDFs, office files and the like that hold it")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would go")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--in", dest="folder", metavar="PATH", help="a path in the mount (default: the folder you are in)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import Place, placed, push_first
    from memdir.client.local import ensure_server
    from memdir.core.paths import app_paths

    words = " ".join(args.words).strip()
    if sum((bool(words), args.subject is not None, args.path is not None)) != 1:
        raise UsageError("say what to forget, one thing", hint="WORDS that stand there, --subject NAME, or --path PATH")
    at = placed(args.path if args.path is not None else args.folder, args.container)
    whole = Place(container=at.container, path="/", record=at.record)
    push_first(whole)
    server = ensure_server(app_paths())
    asked: dict[str, Any] = {"containerTag": at.container, "wholeFiles": args.whole_files, "dryRun": True}
    asked |= {"path": at.path} if args.path is not None else {"subject": args.subject} if args.subject else {"text": words}
    plan = _call(server, "/v1/forget", asked)
    going = bool(plan["lines"] or plan["former"] or plan["facts"] or any(not one["kept"] for one in plan["files"]))
    if not out.json:
        _show(plan, at.container, out)
    if not going or args.dry_run:
        if out.json:
            out.document(plan)
        return EXIT_OK if going else EXIT_NOTHING
    if not args.yes and not _agreed(out):
        out.note("nothing was changed")
        return EXIT_NOTHING
    done = _call(server, "/v1/forget", asked | {"dryRun": False})
    receipt = done["receipt"]
    path = _kept(receipt)
    left = _settled(server, whole, receipt, out)
    if out.json:
        out.document(done | {"receiptFile": str(path), "found": left})
    else:
        out.line(f"forgotten: {_counts(receipt)}")
        out.line(f"receipt: {out.name(str(path))}")
        _show_left(left, out)
    return EXIT_OK if not left else EXIT_ERROR


def _call(server: ServerInfo, path: str, body: dict[str, Any]) -> dict[str, Any]:
    from memdir.client.light import call

    answer: dict[str, Any] = call(server, "POST", path, body=body, timeout_s=_CALL_S)
    return answer


def _show(plan: dict[str, Any], container: str, out: Output) -> None:
    for one in plan["lines"][:_SHOWN_MAX]:
        out.line(f"{out.name(one['path'])}:{one['line']}: {visible(shortened(' '.join(one['text'].split()), _LINE_CHARS))}")
    if len(plan["lines"]) > _SHOWN_MAX:
        out.note(f"{len(plan['lines']) - _SHOWN_MAX} lines more")
    for one in plan["files"]:
        if one["kept"]:
            out.note(f"{out.name(one['path'])} holds it and stays: --whole-files deletes it")
        else:
            out.line(f"{out.name(one['path'])}: the whole file")
    lines = {" ".join(one["text"].split()) for one in plan["lines"]}
    for fact in [fact for fact in plan["facts"] if fact not in lines][:_SHOWN_MAX]:
        out.line(f"remembered: {visible(fact)}")
    if plan["former"]:
        out.line(f"history: {plural(plan['former'], 'former content')} that hold it, and those of the files above")
    if not (plan["lines"] or plan["files"] or plan["facts"] or plan["former"]):
        out.note(f"nothing in {container} says this in these words; `memdir grep` finds other words for it")


def _agreed(out: Output) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError("nobody is there to be asked", hint="--yes forgets without asking, --dry-run only shows")
    out.note("This cannot be undone. Forget it? [y/N] ")
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _counts(receipt: dict[str, Any]) -> str:
    parts = (("lines", "line"), ("files", "file"), ("former", "former content"), ("facts", "fact"))
    return ", ".join(plural(receipt[name], noun) for name, noun in parts if receipt[name]) or "nothing"


def _kept(receipt: dict[str, Any]) -> Path:
    from memdir.core.paths import app_paths, write_private

    folder = app_paths().state_dir / "forgotten"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{receipt['id']}.json"
    write_private(path, json.dumps(receipt, indent=1).encode())
    return path


def _settled(server: ServerInfo, place: Place, receipt: dict[str, Any], out: Output) -> list[str]:
    """Wait until the server has made everything anew without it and the mounts of this machine show that. Returns where it
    still stands."""
    from memdir.cli.output import Progress

    deadline = time.monotonic() + _WAIT_S
    with Progress("forgetting:", noun="document") as progress:
        while True:
            answer = _call(server, "/v1/forget/verify", _question(receipt) | {"onlyProgress": True})
            settled = not answer["waiting"] and not answer["building"] and answer["logEmptied"]
            if settled or time.monotonic() > deadline:
                break
            progress.update(0, int(answer["waiting"]), "made anew without it")
            time.sleep(_ASK_AGAIN_S)
    if not settled:
        out.note("the server is still at work: `memdir forget verify` later")
    _clear_mounts(place, out)
    found: list[str] = _call(server, "/v1/forget/verify", _question(receipt))["found"]
    return found


def _question(receipt: dict[str, Any]) -> dict[str, Any]:
    return {"containerTag": receipt["containerTag"], "key": receipt["key"], "windows": receipt["windows"]}


def _clear_mounts(place: Place, out: Output) -> None:
    """The copies on this machine."""
    from memdir.cli.targets import control, open_registry

    for record in open_registry().all():
        if record.name != place.container or not record.sync:
            continue
        if record.state != "alive":
            out.note(f"{record.path} is not mounted: its copy is brought up to date when it is")
            continue
        try:
            control(record).call("sync", _WAIT_S, wait=True, timeout_s=30.0)
            control(record).call("clear_free_space", _WAIT_S)
        except MemdirError as error:
            out.note(f"the copy of {record.path} was not cleared: {error.message}")


def _show_left(found: list[str], out: Output) -> None:
    if not found:
        out.line("verified: it stands nowhere any more")
    for where in found:
        out.note(f"still there: {visible(where)}")


def _configure_verify(parser: Parser) -> None:
    parser.add_argument("receipt", metavar="RECEIPT", nargs="?", help="the file, or its id (default: the latest)")


def _verify(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.local import ensure_server
    from memdir.core.paths import app_paths

    receipt = _read(args.receipt)
    answer = _call(ensure_server(app_paths()), "/v1/forget/verify", _question(receipt))
    if out.json:
        out.document({"receipt": receipt["id"], **answer})
    else:
        out.line(f"{receipt['at'][:16].replace('T', ' ')}, {visible(receipt['containerTag'])}: {_counts(receipt)} forgotten")
        if answer["waiting"] or answer["building"]:
            out.note("the server is still at work; what it makes anew may hold it for a moment")
        _show_left(answer["found"], out)
    return EXIT_NOTHING if answer["found"] else EXIT_OK


def _read(name: str | None) -> dict[str, Any]:
    from memdir.core.paths import app_paths

    folder = app_paths().state_dir / "forgotten"
    if name is None:
        known = sorted(folder.glob("*.json"))
        if not known:
            raise NotFoundError("nothing was forgotten from this machine yet", hint="give the file of a receipt")
        path = known[-1]
    else:
        path = Path(name) if Path(name).is_file() else folder / f"{Path(name).stem}.json"
    try:
        with open(path, "rb") as handle:
            receipt = json.loads(handle.read(_RECEIPT_MAX_BYTES))
        return {key: receipt[key] for key in _RECEIPT_KEYS}
    except FileNotFoundError:
        raise NotFoundError(f"there is no receipt {name}", hint=f"they are in {folder}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no receipt: {error}") from None


COMMAND = Command(
    name="forget",
    usage="[OPTIONS] WORDS ... | --subject NAME | --path PATH",
    description=(
        "Forget for good: the sentences that say it go from the files, with their history, what was remembered of them,\n"
        "passages, indexes, the profile, and the copies in the mounts of this machine. First shows what would go, and asks.\n"
        "The receipt says nothing of it, and `memdir forget verify` finds with it whether it came back. Other machines follow\n"
        "when they sync; backups, exports and what agents' hosts keep of their sessions are not reached."
    ),
    examples=[
        ("memdir forget --dry-run 4111 1111 1111 1111", "in a mount: what would go"),
        ("memdir forget --subject 'Ana Ruiz'", "everything about somebody"),
        ("memdir forget --path notes/old-job --yes", "a folder with its history, without asking"),
    ],
    exit_codes=[(0, "it is forgotten"), (1, "nothing says it, or you said no"), (2, "some of it is still there, or an error")],
    configure=_configure,
    run=_run,
)
VERIFY = Command(
    name="forget verify",
    usage="[OPTIONS] [RECEIPT]",
    description=(
        "Look whether what a receipt is about stands anywhere: in files, their names and their history, facts, memories,\n"
        "passages. Also what came back since, from a backup or another machine."
    ),
    examples=[
        ("memdir forget verify", "the latest receipt"),
        ("memdir forget verify 01JD3Y6T0V8Q9W3N5K7M1P2R4S --json", "another"),
    ],
    exit_codes=[(0, "it is nowhere"), (1, "it is still, or again, there")],
    configure=_configure_verify,
    run=_verify,
)
