"""`memdir mcp`: agent memories for every host that speaks the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final

from memdir.cli.command import EXIT_OK, Command, Parser, bounded_int
from memdir.cli.memory.options import add_container
from memdir.cli.output import Output
from memdir.cli.text import is_terminal
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memdir.agents.mcp.tools import Around, Tool
    from memdir.agents.project import Project
    from memdir.core.paths import AppPaths

PORT_DEFAULT: Final = 8849


def _configure(parser: Parser) -> None:
    parser.add_argument("--stdio", action="store_true", help="serve standard input and output, as without any option")
    parser.add_argument(
        "--http", action="store_true", help="serve Streamable HTTP on 127.0.0.1 instead of standard input and output"
    )
    parser.add_argument(
        "--port", metavar="N", type=bounded_int(0, 65535), help=f"the port of --http (default: {PORT_DEFAULT}; 0: a free one)"
    )
    parser.add_argument(
        "--project",
        metavar="NAME",
        help="the current project (default: MEMDIR_PROJECT, or the repository of this folder; '-' for none)",
    )
    parser.add_argument(
        "--shell", metavar="NAME", help="also a tool `bash`, a shell in this memory, in this process; see `memdir sh --help`"
    )
    add_container(parser)


def _project(named: str | None) -> Project | None:
    """The current project for the life of the server; '-' is none, as in `memdir memory`."""
    from memdir.agents.project import Project, current_project

    if named is not None:
        return None if named == "-" else Project(named)
    try:
        return current_project()
    except ValueError as error:
        raise UsageError(str(error), hint="mend that file, or name the project with --project") from None


def _run(args: argparse.Namespace, out: Output) -> int:
    if args.stdio and args.http:
        raise UsageError("--stdio and --http exclude each other", hint="start two of them, they share the memory")
    if args.port is not None and not args.http:
        raise UsageError("--port goes with --http", hint="without it, the protocol runs on standard input and output")
    if not args.http:  # before the imports that take a second: the host may be gone by then
        from memdir.agents.mcp.parent import end_with_parent

        end_with_parent()
    from memdir.agents.mcp.link import MemoryLink
    from memdir.agents.mcp.tools import Around
    from memdir.agents.service import agent_container
    from memdir.core.log import log_to_stderr
    from memdir.core.paths import app_paths

    paths = app_paths()
    tools, close = _shell_tool(args.shell)
    around = Around(
        link=MemoryLink(paths, container=agent_container(args.container)), project=_project(args.project), more_tools=tools
    )
    log_to_stderr()
    try:
        return _serve(args, out, around, paths)
    finally:
        close()


def _shell_tool(name: str | None) -> tuple[tuple[Tool, ...], Callable[[], None]]:
    """The tool `bash` over the memory `name`, and what ends its shell."""
    if name is None:
        return (), lambda: None
    from memdir.cli.targets import check_container_name
    from memdir.shell.interpreter import check_installed
    from memdir.shell.shell import Shell
    from memdir.shell.tool import mcp_tool

    check_container_name(name)
    check_installed()
    tool, close = mcp_tool(name, lambda: Shell(name))
    return (tool,), close


def _serve(args: argparse.Namespace, out: Output, around: Around, paths: AppPaths) -> int:
    if not args.http:
        from memdir.agents.mcp.serve import serve_stdio

        if is_terminal(sys.stdin):
            out.note("this speaks the Model Context Protocol on standard input and output; a host starts it. Ctrl-C ends it")
        serve_stdio(around)
        return EXIT_OK
    from memdir.agents.mcp.http import serve_http, token_for

    token, file = token_for(paths)

    def announce(url: str) -> None:
        if out.json:
            project = None if around.project is None else around.project.name
            out.document({"url": url, "token_file": str(file) if file else None, "pid": os.getpid(), "project": project})
        else:
            out.line(url)
            out.note(f"clients send `Authorization: Bearer TOKEN`; the token is in {file or 'MEMDIR_MCP_TOKEN'}")
        out.flush()

    serve_http(around, port=PORT_DEFAULT if args.port is None else args.port, token=token, announce=announce)
    return EXIT_OK


COMMAND = Command(
    name="mcp",
    usage="[OPTIONS]",
    description=(
        "Serve agent memories over the Model Context Protocol: the tools memory_store, memory_search, memory_list,\n"
        "memory_get, memory_delete, memory_profile, memory_update, memory_confirm, memory_review and\n"
        "memory_habits. A host starts it and\n"
        "talks to it over standard input and output; it ends with its host. The memory server is started when it does not\n"
        "run. See docs/mcp.md."
    ),
    examples=[
        ("memdir mcp --project shop", "when the project is not the folder's"),
        ("claude mcp add memdir -- memdir mcp", "for Claude Code"),
        ("memdir mcp --http --port 8849", "for hosts that connect by HTTP; prints the address"),
    ],
    exit_codes=[(0, "the client is done")],
    configure=_configure,
    run=_run,
)
