"""The in-process shell: bash over a memory, without a mount, a kernel module or another process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memdir.shell.interpreter import ShellLimits, ShellMissingError, ShellResult
    from memdir.shell.shell import Shell

__all__ = ["Shell", "ShellLimits", "ShellMissingError", "ShellResult"]


def __getattr__(name: str) -> Any:
    """Public names, imported when they are asked for."""
    if name not in __all__:
        raise AttributeError(name)
    from memdir.shell import interpreter, shell

    return getattr(shell if name == "Shell" else interpreter, name)
