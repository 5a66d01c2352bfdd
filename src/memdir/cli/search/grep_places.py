"""Where `memdir grep` looks: from the paths that were typed to mounts and scopes in them, and back to names that are shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memdir.core.errors import NotFoundError, UsageError
from memdir.core.limits import SEARCH_PATHS_MAX

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord, MountRegistry


@dataclass(slots=True)
class Place:
    """One mount, and where in it to look: the scopes in their order, each with the path that was typed for it."""

    record: MountRecord
    here: str
    """The current directory, its links outside of mounts resolved."""
    scopes: dict[str, str | None] = field(default_factory=dict)

    def shown(self, path: str, *, as_given: bool) -> str:
        """How a path in the mount is printed: below what was typed, or beside it. Unless `as_given`, or when nothing was typed,
        relative to the current directory if that is in the mount."""
        from memdir.core.siblings import sibling_of
        from memdir.fs.path import is_within

        root = self.record.path.rstrip("/")
        holders = (one for one in self.scopes if is_within(path, one) or path == sibling_of(one))
        scope = path if path in self.scopes else next(holders, "/")
        given = self.scopes.get(scope)
        if (given is None or not as_given) and is_within(self.here, root or "/"):
            return os.path.relpath(root + path, self.here)
        if given is None:
            return root + path
        below = path[len(scope.rstrip("/")) :]
        return given.rstrip("/") + below if below else given

    def followed(self, registry: MountRegistry, scope: str) -> Place:
        """Where a scope leads that is neither file nor folder in the mount: symlinks in its path are followed. NotFoundError
        when nothing is there."""
        from pathlib import Path

        given = self.scopes[scope] or scope
        try:
            resolved = os.path.realpath(self.record.path.rstrip("/") + scope, strict=True)
        except FileNotFoundError:
            raise NotFoundError(f"{given}: no such file or folder") from None
        except OSError as error:
            raise UsageError(f"{given}: {error.strerror}") from error
        found = registry.find_by_path(Path(resolved))
        if found is None or found[0].id != self.record.id:
            reason = f"{given} is a link that leads out of the mount, to {resolved}"
            raise UsageError(reason, hint="search the folder it leads to")
        return Place(self.record, self.here, {found[1]: given})


def places_of(registry: MountRegistry, paths: list[str]) -> list[Place]:
    """The running mounts that the paths are in, in their order; paths of one mount that stand together are one place."""
    from pathlib import Path

    from memdir.cli.targets import current_folder, describe_mounts, find_mount, require_running
    from memdir.daemon.registry import resolve_outside

    if len(paths) > SEARCH_PATHS_MAX:
        raise UsageError(f"{len(paths):,} paths were given, at most {SEARCH_PATHS_MAX:,} are allowed", hint="give their folder")
    here = resolve_outside(Path(current_folder()), {record.path for record in registry.all()})
    if not paths:
        return [Place(require_running(find_mount(registry, None)), here, {"/": None})]
    made: list[Place] = []
    for path in paths:
        if path in ("", "-"):
            said = "the path is empty" if not path else "standard input is not searched"
            raise UsageError(
                said, hint="leave the path out to search the whole memory, or give one in a mount (./- for a file -)"
            )
        found = registry.find_by_path(Path(path) if path.startswith("/") else Path(here, path))
        if found is None:
            raise UsageError(
                f"{path} is not inside a mounted memory",
                hint=f"give a path in a mount, or use --container NAME; {describe_mounts(registry)}",
            )
        if not made or made[-1].record.id != found[0].id:
            made.append(Place(require_running(found[0]), here))
        made[-1].scopes.setdefault(found[1], path)
    return made
