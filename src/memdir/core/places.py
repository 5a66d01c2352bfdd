"""Where settings and state are, for those who cannot afford `pathlib`: the hook of agent hosts. `core.paths` says the same."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ENV_HOME = "MEMDIR_HOME"


def xdg(environ: Mapping[str, str], variable: str, default: str) -> str:
    """A base directory. The specification says that a relative value must be ignored."""
    value = environ.get(variable, "")
    return value if value.startswith("/") else default


def config_and_state(environ: Mapping[str, str]) -> tuple[str, str]:
    """The folders of settings and of state. A relative MEMDIR_HOME is not looked at here; `core.paths` refuses it."""
    home = environ.get(ENV_HOME)
    if home:
        return home + "/config", home + "/state"
    user_home = os.path.expanduser("~")
    return (
        xdg(environ, "XDG_CONFIG_HOME", user_home + "/.config") + "/memdir",
        xdg(environ, "XDG_STATE_HOME", user_home + "/.local/state") + "/memdir",
    )
