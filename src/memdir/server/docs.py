"""`python -m memdir.server.docs`: the list of calls, docs/api.md, from the OpenAPI document; a test compares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from memdir.server.app import routed
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.server.openapi import METHODS, OPEN_PATHS, document
from memdir.store.store import Store

DEFAULT_FILE: Final = Path("docs/api.md")
_HEAD: Final = """# Every call of the server

Made by `make docs` from the OpenAPI document, which a running server gives to anybody at `GET /openapi.json`: shapes of
requests and answers, examples, headers, statuses. [server.md](server.md) says what the calls mean. A `*` marks what must
be sent.

Every call needs `Authorization: Bearer KEY`, except {open}. Every error is `{{"error": "…", "details": …}}`. What any
call may answer beside its own: {everywhere}. Calls that change something take `Idempotency-Key`.
"""


@cache
def described() -> dict[str, Any]:
    """The document, without a server."""
    dispatcher = Dispatcher()
    try:
        return document(routed(cast(Store, None), dispatcher, cast(Engine, None)))
    finally:
        dispatcher.shutdown()


def render() -> str:
    """The page."""
    made = described()
    calls = [(method, path, found[method]) for path, found in made["paths"].items() for method in METHODS if method in found]
    everywhere = set.intersection(*(set(call["responses"]) for _, path, call in calls if path not in OPEN_PATHS))
    shared = ", ".join(sorted(status for status in everywhere if status >= "400"))
    lines = [_HEAD.format(open=" and ".join(f"`{path}`" for path in sorted(OPEN_PATHS)), everywhere=shared)]
    for room in sorted({path.split("/", 2)[1].split("{", 1)[0] for _, path, _ in calls}):
        lines += [f"## /{room}", "", "| call | sends | answers |", "|---|---|---|"]
        for method, path, call in sorted(calls, key=lambda call: (call[1], METHODS.index(call[0]))):
            if path.split("/", 2)[1].split("{", 1)[0] == room:
                own = sorted(status for status in call["responses"] if status not in everywhere)
                answer = ", ".join(_named(status, call["responses"][status]) for status in own)
                lines.append(f"| `{method.upper()} {path}` | {_sent(call)} | {answer} |")
        lines.append("")
    return "\n".join(lines)


def _sent(call: dict[str, Any]) -> str:
    names = [
        f"`{parameter['name']}`{'*' if parameter.get('required') else ''}"
        for parameter in call["parameters"]
        if parameter["in"] != "path" and parameter["name"] != "Idempotency-Key"
    ]
    body = call.get("requestBody")
    if body is not None:
        kind, content = next(iter(body["content"].items()))
        names.append(_schema_name(content["schema"]) or kind)
    return ", ".join(names)


def _named(status: str, answer: dict[str, Any]) -> str:
    content = answer.get("content", {}).get("application/json")
    name = None if content is None or status >= "400" else _schema_name(content["schema"])
    return f"{status} {name}" if name else status


def _schema_name(schema: dict[str, Any]) -> str | None:
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
    return reference.rpartition("/")[2] if reference else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, to docs/api.md or the file named."""
    given = sys.argv[1:] if arguments is None else arguments
    (Path(given[0]) if given else DEFAULT_FILE).write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
