"""The admin calls of a server: over HTTP when one runs or was chosen, else on its database in this process."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Any, Final, cast

from memdir.cli.command import Parser
from memdir.core.errors import MemdirError, NotFoundError

_TIMEOUT_S: Final = 60.0
_DURATION: Final = re.compile(r"(\d+)\s*([smhdwy]?)")
_UNIT_S: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365 * 86_400}
_LIMIT_S: Final = 100 * 365 * 86_400


class RefusedError(MemdirError):
    """The server said no."""


def add_org(parser: Parser) -> None:
    """The option that every such command has."""
    parser.add_argument("--org", metavar="NAME", help="the organisation (default: the key's own)")


def ask(
    method: str,
    path: str,
    *,
    org: str | None = None,
    params: Mapping[str, str] | None = None,
    body: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The answer with snake_case names. NotFoundError for a 404, RefusedError for every other refusal."""
    from memdir.client.local import running_server
    from memdir.core.paths import app_paths

    paths = app_paths()
    query = dict(params or {}) | ({"org": org} if org is not None else {})
    server = running_server(paths)
    if server is not None:
        from memdir.client.light import LightCallError, call

        try:
            return cast("dict[str, Any]", snake_case(call(server, method, path, params=query, body=body, timeout_s=_TIMEOUT_S)))
        except LightCallError as error:
            if error.status == 404:
                raise NotFoundError(error.message, hint=error.hint) from error
            raise
    from memdir.server import in_process as direct

    status, said = direct.call(paths, method, path, params=query, body=body)
    if status >= 300:
        text = str(said.get("error", "refused"))
        raise NotFoundError(text) if status == 404 else RefusedError(text)
    return cast("dict[str, Any]", snake_case(said))


def duration_s(text: str) -> int:
    """An argparse type: `90`, `15m`, `12h`, `30d`, `4w`, `1y`; at most 100 years."""
    import argparse

    found = _DURATION.fullmatch(text.strip().lower())
    value = int(found[1]) * _UNIT_S[found[2]] if found else 0
    if not 0 < value <= _LIMIT_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 12h, 30d or 1y")
    return value


def moment(text: str | None) -> str:
    """A time of the wire for people: to the second."""
    return "-" if text is None else text[:19].replace("T", " ")


def secret_from_terminal(prompt: str) -> str:
    """A key, from a prompt that does not show it, or the first line of standard input."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass(prompt).strip()
    return sys.stdin.readline(4096).strip()


def snake_case(value: Any) -> Any:
    """JSON of the wire with the names that `--json` uses."""
    if isinstance(value, dict):
        return {_snaked(name) if name.isidentifier() else name: snake_case(item) for name, item in value.items()}
    return [snake_case(item) for item in value] if isinstance(value, list) else value


def _snaked(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)
