"""`memdir restore`: bring a former content of a file back."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int

if TYPE_CHECKING:
    from memdir.cli.output import Output

_NUMBER_MAX = 1 << 62


def _configure(parser: Parser) -> None:
    parser.add_argument("path", metavar="PATH", help="the file in a mount, where it stands or stood last")
    parser.add_argument(
        "--version", metavar="N", type=bounded_int(1, _NUMBER_MAX), help="which one (default: the newest, as after a deletion)"
    )
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not; PATH is then a path in it")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.api import v1
    from memdir.cli.remote import connected, place_of
    from memdir.client.errors import NotFoundError as NothingThereError

    container, path = place_of(args.path, args.container)
    with connected(out.note) as client:
        number = args.version
        try:
            if number is None:
                found = client.versions(container, path, limit=1).versions
                if not found:
                    out.note(f"no version of {path} is kept")
                    return EXIT_NOTHING
                number = found[0].version
            entry = client.restore_version(v1.RestoreRequest(container_tag=container, version=number, path=path))
        except NothingThereError as error:
            out.note(error.message)
            return EXIT_NOTHING
    if out.json:
        out.document({"path": entry.path, "version": number, "revision": entry.revision, "size_bytes": entry.size_bytes})
    else:
        out.line(f"{out.name(entry.path)}: version {number} is the content again, as revision {entry.revision}")
    return EXIT_OK


COMMAND = Command(
    name="restore",
    usage="[OPTIONS] PATH",
    description=(
        "Bring a former content of a file back, also of one that was deleted. It becomes the newest content; what it replaces\n"
        "becomes a version in turn. A mount shows it a moment later; `memdir versions PATH` lists what there is."
    ),
    examples=[
        ("memdir restore notes/plan.md --version 41", "the content of version 41"),
        ("memdir restore notes/gone.md", "undo a deletion, or the last change"),
        ("memdir restore --container notes /plan.md --version 41 --json", "without a mount, for programs"),
    ],
    exit_codes=[(0, "it was restored"), (1, "there is no such version")],
    configure=_configure,
    run=_run,
)
