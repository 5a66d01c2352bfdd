"""`memdir memory graph`: how what is known hangs together, from one subject on."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.text import visible
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.cli.output import Output

_HOPS_MAX = 5


def _configure(parser: Parser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", nargs="+", help="a name: 'Ana Ruiz', Heron; user: you")
    parser.add_argument(
        "--hops", metavar="N", type=bounded_int(1, _HOPS_MAX), default=2, help="how far links are followed (default: 2)"
    )
    parser.add_argument("--dot", action="store_true", help="write the graph for Graphviz")
    parser.add_argument("--in", dest="path", metavar="PATH", help="a path in the mount (default: the folder you are in)")
    parser.add_argument("--container", metavar="NAME", help="a memory on the server, mounted or not")


def _run(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.history.shared import placed
    from memdir.cli.memory.facts import place_of_source
    from memdir.client.light import call
    from memdir.client.local import ensure_server
    from memdir.core.paths import app_paths

    subject = " ".join(args.subject).strip()
    if not subject:
        raise UsageError("there is no subject", hint="give a name, or user for yourself")
    place = placed(args.path, args.container)
    params = {"containerTag": place.container, "subject": subject, "hops": str(args.hops)}
    found = call(ensure_server(app_paths()), "GET", "/v1/facts/graph", params=params, timeout_s=60.0)
    links = found["links"]
    if out.json:
        out.document(found)
    elif args.dot:
        for line in _dot(links):
            out.line(line)
    else:
        for link in links:
            where = place_of_source({"path": link["path"], "startLine": link["line"], "endLine": link["line"]}, out)
            ends = f"{out.style(visible(link['subject']), 'bold')} --{visible(link['relation'])}--> {visible(link['object'])}"
            out.line(f"{ends}  {where}")
        if not links:
            out.note(f"nothing links {visible(found['subject'])} to anything")
    return EXIT_OK if links else EXIT_NOTHING


def _dot(links: list[dict[str, Any]]) -> list[str]:
    """graphviz.org/doc/info/lang.html; a JSON string of one line is a quoted ID there, too."""
    quoted = [[json.dumps(link[end], ensure_ascii=False) for end in ("subject", "object", "relation")] for link in links]
    lines = (f"  {start} -> {end} [label={label}];" for start, end, label in quoted)
    return ["digraph memory {", *dict.fromkeys(lines), "}"]


COMMAND = Command(
    name="memory graph",
    usage="[OPTIONS] SUBJECT ...",
    description=(
        "Show what links a person, a project or you to others: who works where, what uses what, who is whose. Each link is a\n"
        "fact that holds, with the line that says it."
    ),
    examples=[
        ("memdir memory graph Ana Ruiz", "in a mount: two links far"),
        ("memdir memory graph --dot user | dot -Tsvg > me.svg", "as a picture, with Graphviz"),
    ],
    exit_codes=[(0, "there are links"), (1, "there are none")],
    configure=_configure,
    run=_run,
)
