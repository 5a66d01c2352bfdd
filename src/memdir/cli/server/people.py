"""`memdir server user add|list|remove`, `memdir server org add|list|remove`."""

from __future__ import annotations

import argparse
from urllib.parse import quote

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int, size_bytes
from memdir.cli.output import Output
from memdir.cli.server.admin_calls import add_org, ask
from memdir.cli.text import plural


def _configure_user_add(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the user's name")
    parser.add_argument("--email", metavar="ADDRESS", default="", help="for people who look for them")
    add_org(parser)


def _user_add(args: argparse.Namespace, out: Output) -> int:
    user = ask("POST", "/v1/users", org=args.org, body={"name": args.name, "email": args.email})
    if out.json:
        out.document(user)
    else:
        out.line(f"added {out.name(user['name'])} ({user['id']}) to {out.name(user['org'])}")
    return EXIT_OK


def _user_list(args: argparse.Namespace, out: Output) -> int:
    users = ask("GET", "/v1/users", org=args.org)["users"]
    if out.json:
        out.document({"users": users})
    for user in users if not out.json else ():
        out.line(f"{user['id']}  {out.name(user['name'])}  {out.name(user['email'])}".rstrip())
    if not users and not out.json:
        out.note("there is no user")
    return EXIT_OK if users else EXIT_NOTHING


def _configure_name(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name or id")
    add_org(parser)


def _user_remove(args: argparse.Namespace, out: Output) -> int:
    gone = ask("DELETE", f"/v1/users/{quote(args.name, safe='')}", org=args.org)
    if out.json:
        out.document(gone)
    else:
        out.line(f"removed {out.name(gone['name'])}; {plural(gone['revoked_keys'], 'key')} ended")
    return EXIT_OK


def _configure_org_add(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the organisation's name")
    parser.add_argument("--max-documents", metavar="N", type=bounded_int(1, 1 << 40), help="what it may hold")
    parser.add_argument("--max-bytes", metavar="SIZE", type=size_bytes, help="such as 500G; what it may hold")


def _org_add(args: argparse.Namespace, out: Output) -> int:
    limits = {"documents": args.max_documents, "bytes": args.max_bytes}
    body = {"name": args.name, "limits": {name: value for name, value in limits.items() if value is not None}}
    org = ask("POST", "/v1/orgs", body=body)
    if out.json:
        out.document(org)
    else:
        out.line(f"added {out.name(org['name'])} ({org['id']})")
    return EXIT_OK


def _no_options(_parser: Parser) -> None:
    """The common ones are enough."""


def _org_list(_args: argparse.Namespace, out: Output) -> int:
    orgs = ask("GET", "/v1/orgs")["orgs"]
    if out.json:
        out.document({"orgs": orgs})
        return EXIT_OK
    for org in orgs:
        out.line(
            f"{org['id']}  {out.name(org['name'])}: {plural(org['documents'], 'document')}, {plural(org['bytes'], 'byte')}"
        )
    return EXIT_OK


def _configure_org_remove(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="name or id")


def _org_remove(args: argparse.Namespace, out: Output) -> int:
    gone = ask("DELETE", f"/v1/orgs/{quote(args.name, safe='')}")
    if out.json:
        out.document(gone)
    else:
        out.line(f"removed {out.name(gone['name'])}")
    return EXIT_OK


USER_ADD = Command(
    name="server user add",
    usage="NAME [OPTIONS]",
    description="Add a user to an organisation, so that keys and the audit log say whose they are.",
    examples=[("memdir server user add Anna --email anna@example.org", "then: memdir server key create --user Anna …")],
    exit_codes=[(0, "added")],
    configure=_configure_user_add,
    run=_user_add,
)
USER_LIST = Command(
    name="server user list",
    usage="[OPTIONS]",
    description="List the users of an organisation.",
    examples=[("memdir server user list --json", "users: id, name, email, org, created_at")],
    exit_codes=[(0, "there are some"), (1, "there is none")],
    configure=add_org,
    run=_user_list,
)
USER_REMOVE = Command(
    name="server user remove",
    usage="NAME [OPTIONS]",
    description="Remove a user. Their keys end at once; what they wrote stays.",
    examples=[("memdir server user remove Anna", "says how many keys ended")],
    exit_codes=[(0, "removed")],
    configure=_configure_name,
    run=_user_remove,
)
ORG_ADD = Command(
    name="server org add",
    usage="NAME [OPTIONS]",
    description="Add an organisation: containers, keys and users of its own, which no other organisation sees.",
    examples=[
        ("memdir server org add Example --max-bytes 50G", "with a quota"),
        ("memdir server key create --org Example --name admin --admin", "its first key"),
    ],
    exit_codes=[(0, "added")],
    configure=_configure_org_add,
    run=_org_add,
)
ORG_LIST = Command(
    name="server org list",
    usage="[OPTIONS]",
    description="List organisations, and how much they hold. For admin keys of the server's own organisation.",
    examples=[("memdir server org list", "id, name, documents, bytes")],
    exit_codes=[(0, "listed")],
    configure=_no_options,
    run=_org_list,
)
ORG_REMOVE = Command(
    name="server org remove",
    usage="NAME [OPTIONS]",
    description="Remove an organisation that holds no container any more, with its keys and users.",
    examples=[("memdir server org remove Example", "refused while it holds something")],
    exit_codes=[(0, "removed")],
    configure=_configure_org_remove,
    run=_org_remove,
)
