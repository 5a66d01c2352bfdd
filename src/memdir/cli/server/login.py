"""`memdir login`, `whoami`, `logout`: a server elsewhere, and the key for it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser
from memdir.cli.output import Output
from memdir.cli.server.admin_calls import secret_from_terminal, snake_case
from memdir.core.errors import UsageError

if TYPE_CHECKING:
    from memdir.client.local import ServerInfo

_TIMEOUT_S: Final = 30.0


def _project_option(parser: Parser) -> None:
    parser.add_argument("--project", action="store_true", help="for the folder you are in and all below it, not for everything")


def _configure_login(parser: Parser) -> None:
    parser.add_argument("url", metavar="URL", help="the server's address: https://memory.example.org")
    parser.add_argument("--ca-file", metavar="FILE", help="certificates to believe beside the system's (PEM)")
    parser.add_argument(
        "--insecure-http", action="store_true", help="allow http:// to another machine: the key can be read on the way"
    )
    _project_option(parser)


def _login(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.credentials import Credentials, checked_url, is_plain, save
    from memdir.client.local import ServerInfo
    from memdir.core.paths import app_paths

    url = checked_url(args.url, "URL")
    if is_plain(url) and not args.insecure_http:
        raise UsageError(f"{url} would send the key where it can be read", hint="use https://, or --insecure-http if you must")
    ca_file = str(Path(args.ca_file).resolve()) if args.ca_file else ""
    key = secret_from_terminal(f"API key for {url}: ")
    if not key or not key.isascii() or not key.isprintable():
        raise UsageError("no key was given", hint="type it at the prompt, or send it on standard input")
    session = _session(ServerInfo(url=url, pid=0, data_dir="", version="", api_key=key, ca_file=ca_file))
    credentials = Credentials(url=url, api_key=key, ca_file=ca_file, source="project" if args.project else "user")
    file = save(app_paths(), credentials, project=Path.cwd() if args.project else None)
    if out.json:
        out.document(_described(session, url, credentials.source, str(file)))
    else:
        out.line(f"logged in to {url} as {out.name(session['user']['name'])} of {out.name(session['org']['name'])}")
        out.note(f"the key is in {file}; mounts that run stay with the server they have")
    return EXIT_OK


def _session(server: ServerInfo) -> dict[str, Any]:
    from memdir.client.light import call

    answer: dict[str, Any] = snake_case(call(server, "GET", "/v3/session", timeout_s=_TIMEOUT_S))
    for part in ("org", "user"):
        if not isinstance(answer.get(part), dict) or not isinstance(answer[part].get("name"), str):
            raise UsageError(f"{server.url} does not answer as a memory server does", hint="check the address")
    return answer


def _described(session: dict[str, Any], url: str, source: str, file: str) -> dict[str, Any]:
    return {"url": url, "source": source, "file": file or None, **{n: session.get(n) for n in ("org", "user", "plan", "key")}}


def _no_options(_parser: Parser) -> None:
    """The common ones are enough."""


def _whoami(_args: argparse.Namespace, out: Output) -> int:
    from memdir.client.credentials import configured
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    server = running_server(paths)
    if server is None:
        if out.json:
            out.document({"url": None, "source": "local", "file": None, "org": None, "user": None, "plan": None, "key": None})
        else:
            out.note("no server was chosen, and this user's own does not run; `memdir server start` starts it")
        return EXIT_NOTHING
    chosen = configured(paths)
    source = "local" if chosen is None else chosen.source
    file = str(paths.credentials_file) if chosen is None else chosen.file
    session = _session(server)
    if out.json:
        out.document(_described(session, server.url, source, file))
        return EXIT_OK
    out.line(f"{out.name(session['user']['name'])} of {out.name(session['org']['name'])} at {server.url}")
    key = session.get("key")
    if key:
        below = "" if key["prefix"] == "/" else f" below {key['prefix']}"
        where = "all containers" if key["containers"] == ["*"] else ", ".join(key["containers"])
        out.line(f"  key      {out.name(key['name'])} ({key['id']})")
        out.line(f"  may      {'/'.join(key['actions'])} in {out.name(where + below)}")
        out.line(f"  expires  {key['expires_at'] or 'never'}")
    out.line(f"  from     {source}" + (f": {out.name(file)}" if file else ""))
    return EXIT_OK


def _logout(args: argparse.Namespace, out: Output) -> int:
    from memdir.client.credentials import remove
    from memdir.core.paths import app_paths

    file = remove(app_paths(), project=Path.cwd() if args.project else None)
    if out.json:
        out.document({"removed": None if file is None else str(file)})
    elif file is None:
        out.note("you were not logged in" + (" here" if args.project else ""))
    else:
        out.line(f"removed {out.name(str(file))}; the key itself still works until somebody revokes it")
    return EXIT_OK if file is not None else EXIT_NOTHING


LOGIN = Command(
    name="login",
    usage="URL [OPTIONS]",
    description=(
        "Use a server elsewhere from now on, for mounts and searches. The key is typed at a prompt that does not show it, or\n"
        "read from standard input; it is tried, and kept in a file that only you may read. Which server is used: the file of\n"
        "--credentials, else MEMDIR_SERVER_URL with MEMDIR_API_KEY, else the project's, else yours, else the local one."
    ),
    examples=[
        ("memdir login https://memory.example.org", "asks for the key"),
        ("memdir login https://10.0.0.7:8848 --ca-file ca.pem < key.txt", "an authority of your own, a key from a file"),
        ("memdir login https://memory.example.org --project", "for this folder only"),
    ],
    exit_codes=[(0, "the key works and was kept")],
    configure=_configure_login,
    run=_login,
)
WHOAMI = Command(
    name="whoami",
    usage="[OPTIONS]",
    description="Show which server is used here, as whom, what the key opens, until when, and where it was found.",
    examples=[("memdir whoami --json", "url, source, file, org, user, key")],
    exit_codes=[(0, "the server knows the key"), (1, "no server was chosen and none runs")],
    configure=_no_options,
    run=_whoami,
)
LOGOUT = Command(
    name="logout",
    usage="[OPTIONS]",
    description="Forget the key that `memdir login` kept. Mounts that run go on with it until they are unmounted.",
    examples=[("memdir logout", "back to the local server"), ("memdir logout --project", "in this folder only")],
    exit_codes=[(0, "forgotten"), (1, "you were not logged in")],
    configure=_project_option,
    run=_logout,
)
