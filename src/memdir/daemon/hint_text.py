"""What an agent is told about a mount."""

from __future__ import annotations

import shlex


def hint_lines(name: str, shown: str) -> tuple[str, ...]:
    """What an agent has to know of a mount at `shown`: that it is there, what finds things by meaning and what by letters."""
    folder = shown.rstrip("/") + "/"
    typed = shlex.quote(folder)
    return (
        f"## Memory: `{folder}`",
        "",
        f"`{folder}` is a memory ({name}) mounted as a directory by memdir. Read and write its files as any others.",
        "",
        f"- By meaning, when you do not know the words: `memdir grep 'why were retries turned off' {typed}`.",
        "  Give a folder or file in it to search only there. It prints `path:first-last: text`, best first.",
        f"- About somebody or something by name: `memdir grep 'when did she join' --containing 'Ana Ruiz' {typed}` prints only",
        "  lines that hold the name, what answers the question first.",
        f"- By exact letters (a name, an error code): plain `grep -rn TEXT {typed}`.",
        f"- `{folder}profile.md` sums up what is known; read it first. It is made from the files and cannot be written.",
    )
