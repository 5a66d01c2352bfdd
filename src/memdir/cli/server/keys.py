"""`memdir server key create|list|revoke|rotate`."""

from __future__ import annotations

import argparse
from typing import Any
from urllib.parse import quote

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int, size_bytes
from memdir.cli.output import Output
from memdir.cli.server.admin_calls import add_org, ask, duration_s, moment

_COUNT_MAX = 1 << 40


def _configure_create(parser: Parser) -> None:
    parser.add_argument("--name", metavar="NAME", required=True, help="what it is for; also the name to revoke it by")
    parser.add_argument(
        "--container", metavar="TAG", action="append", help="a container it opens; 'team-*' for all that begin so; repeatable"
    )
    parser.add_argument("--prefix", metavar="FOLDER", default="/", help="the folder it opens, with all below it (default: /)")
    parser.add_argument("--read-only", action="store_true", help="it changes nothing")
    parser.add_argument("--admin", action="store_true", help="it also manages keys, users and the audit log")
    parser.add_argument("--expires", metavar="TIME", type=duration_s, help="when it ends: 12h, 30d, 1y from now")
    parser.add_argument("--user", metavar="NAME", help="whose key it is")
    parser.add_argument("--rate", metavar="N", type=bounded_int(1, 10**9), help="requests a minute")
    parser.add_argument("--max-documents", metavar="N", type=bounded_int(1, _COUNT_MAX), help="what its containers may hold")
    parser.add_argument("--max-bytes", metavar="SIZE", type=size_bytes, help="such as 500M; what its containers may hold")
    add_org(parser)


def _create(args: argparse.Namespace, out: Output) -> int:
    actions = ["read"] if args.read_only else ["read", "write"]
    limits = {"requestsPerMinute": args.rate, "documents": args.max_documents, "bytes": args.max_bytes}
    body: dict[str, Any] = {
        "name": args.name,
        "containers": args.container or ["*"],
        "prefix": args.prefix,
        "actions": actions + (["admin"] if args.admin else []),
        "user": args.user,
        "expiresInS": args.expires,
        "limits": {name: value for name, value in limits.items() if value is not None},
    }
    _show_new(ask("POST", "/v1/keys", org=args.org, body=body), out)
    return EXIT_OK


def _show_new(made: dict[str, Any], out: Output) -> None:
    if out.json:
        out.document(made)
        return
    out.line(made["key"])
    out.note(f"this is the key {made['name']!r} ({_scope(made)}); it cannot be shown again")


def _scope(key: dict[str, Any]) -> str:
    where = ", ".join(key["containers"]) if key["containers"] != ["*"] else "all containers"
    below = "" if key["prefix"] == "/" else f" below {key['prefix']}"
    return f"{'/'.join(key['actions'])} in {where}{below}"


def _configure_list(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also keys that have ended")
    add_org(parser)


def _list(args: argparse.Namespace, out: Output) -> int:
    keys = [key for key in ask("GET", "/v1/keys", org=args.org)["keys"] if args.all or key["state"] == "active"]
    if out.json:
        out.document({"keys": keys})
        return EXIT_OK if keys else EXIT_NOTHING
    for key in keys:
        ends = f"until {moment(key['expires_at'])}" if key["expires_at"] else "for ever"
        state = ends if key["state"] == "active" else key["state"]
        owner = f", {out.name(key['user'])}" if key["user"] else ""
        out.line(
            f"{key['id']}  {out.name(key['name'])}{owner}: {out.name(_scope(key))}, {state}, "
            f"last used {moment(key['last_used_at'])}"
        )
    if not keys:
        out.note("there is no key")
    return EXIT_OK if keys else EXIT_NOTHING


def _configure_one(parser: Parser) -> None:
    parser.add_argument("key", metavar="KEY", help="its name or id (never the key itself)")
    add_org(parser)


def _refuse_secrets(name: str) -> None:
    """A key on a command line is in the shell's history and in `ps`."""
    from memdir.core.errors import UsageError

    if name.startswith("md_") and len(name) > 20:
        raise UsageError("that is the key itself, which does not belong on a command line", hint="name it by its name or id")


def _revoke(args: argparse.Namespace, out: Output) -> int:
    _refuse_secrets(args.key)
    ended = ask("DELETE", f"/v1/keys/{quote(args.key, safe='')}", org=args.org)
    if out.json:
        out.document(ended)
    else:
        out.line(f"revoked {out.name(ended['name'])} ({ended['id']})")
    return EXIT_OK


def _configure_rotate(parser: Parser) -> None:
    _configure_one(parser)
    parser.add_argument("--keep", metavar="TIME", type=duration_s, default=0, help="how long the old one goes on: 1h, 7d")


def _rotate(args: argparse.Namespace, out: Output) -> int:
    _refuse_secrets(args.key)
    path = f"/v1/keys/{quote(args.key, safe='')}/rotate"
    _show_new(ask("POST", path, org=args.org, body={"keepS": args.keep}), out)
    return EXIT_OK


CREATE = Command(
    name="server key create",
    usage="--name NAME [OPTIONS]",
    description=(
        "Make an API key. It is printed once, and kept as a hash only. Works on the server that runs or was chosen, with a\n"
        "key that may administer, or, while none runs, on this user's database."
    ),
    examples=[
        ("memdir server key create --name laptop", "for reading and writing everything"),
        ("memdir server key create --name ci --container docs --read-only --expires 30d", "for reading one container"),
        ("memdir server key create --name bot --prefix /inbox --json", "one folder; the key is in the field 'key'"),
    ],
    exit_codes=[(0, "made, and printed")],
    configure=_configure_create,
    run=_create,
)
LIST = Command(
    name="server key list",
    usage="[OPTIONS]",
    description="List API keys: what they open, until when, when they were last used (to a few minutes).",
    examples=[("memdir server key list --all", "also those that have ended")],
    exit_codes=[(0, "there are some"), (1, "there is none")],
    configure=_configure_list,
    run=_list,
)
REVOKE = Command(
    name="server key revoke",
    usage="KEY [OPTIONS]",
    description="End an API key. The server refuses it at once; other servers on the same database within two seconds.",
    examples=[("memdir server key revoke laptop", "by name; the id goes as well")],
    exit_codes=[(0, "revoked")],
    configure=_configure_one,
    run=_revoke,
)
ROTATE = Command(
    name="server key rotate",
    usage="KEY [OPTIONS]",
    description="Make a new API key with the name and scope of an old one, which ends now or after a while.",
    examples=[("memdir server key rotate ci --keep 7d", "both work for a week")],
    exit_codes=[(0, "made, and printed")],
    configure=_configure_rotate,
    run=_rotate,
)
