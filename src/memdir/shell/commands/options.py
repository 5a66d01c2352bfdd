"""Options of a command as GNU's getopt_long reads them: anywhere among operands, short ones together, long ones shortened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memdir.core.errors import UsageError


def parsed(
    args: Sequence[str], flags: str = "", values: str = "", long: Mapping[str, str] | None = None
) -> tuple[list[tuple[str, str]], list[str]]:
    """The options with their values ("" for flags) in order, and the operands.

    `flags` are short options without a value, `values` those with one. `long` names the long ones: to the short option that
    it means, or to itself; with "=" at its end it takes a value, with "?" it may (after "=" only). UsageError for others.
    """
    names = {name.rstrip("=?"): (name, meaning) for name, meaning in (long or {}).items()}
    found: list[tuple[str, str]] = []
    operands: list[str] = []
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            operands += rest
            break
        if arg.startswith("--"):
            found.append(_long(arg, rest, names))
        elif arg.startswith("-") and arg != "-":
            found += _short(arg[1:], rest, flags, values)
        else:
            operands.append(arg)
    return found, operands


def _long(arg: str, rest: list[str], names: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    given, equals, value = arg[2:].partition("=")
    fitting = [given] if given in names else [name for name in names if name.startswith(given)]
    if len(fitting) != 1:
        raise UsageError(f"option '{arg}' is ambiguous" if fitting else f"unrecognized option '{arg}'")
    name, meaning = names[fitting[0]]
    if name.endswith("=") and not equals:
        if not rest:
            raise UsageError(f"option '--{fitting[0]}' requires an argument")
        value = rest.pop(0)
    if equals and not name.endswith(("=", "?")):
        raise UsageError(f"option '--{fitting[0]}' doesn't allow an argument")
    return meaning, value


def _short(letters: str, rest: list[str], flags: str, values: str) -> list[tuple[str, str]]:
    found = []
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter in flags:
            found.append((letter, ""))
        elif letter in values:
            if not letters and not rest:
                raise UsageError(f"option requires an argument -- '{letter}'")
            found.append((letter, letters or rest.pop(0)))
            break
        else:
            raise UsageError(f"invalid option -- '{letter}'")
    return found
