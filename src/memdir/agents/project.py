"""Which project a folder belongs to: the name of the repository around it, the same for its worktrees and subfolders.

Read from the files that git keeps; no process is started, so that the hook can afford it on every prompt. Formats: `gitfile`
in gitglossary(7), `commondir` and `worktrees` in gitrepository-layout(5). Standard library only, and little of that.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` takes longer to import than all that is done here
if TYPE_CHECKING:
    from typing import Final

ENV_PROJECT: Final = "MEMDIR_PROJECT"
NAME_MAX_CHARS: Final = 100
"""As `core.limits.MEMORY_PROJECT_MAX_CHARS`; that module imports `typing`."""
_LEVELS_MAX: Final = 256
_FILE_MAX_BYTES: Final = 1 << 16


def current_project(cwd: str | None = None) -> str | None:
    """The project of a session: that of the folder its host names, else `MEMDIR_PROJECT`, else that of the process's own folder
    (only when the host names none). None where there is no project: in the home folder, at the root."""
    told = cwd is not None and cwd.startswith("/")
    found = project_of(cwd) if told and cwd is not None else None
    if found is None:
        found = _clean(os.environ.get(ENV_PROJECT, ""))
    if found is None and not told:
        try:
            found = project_of(os.getcwd())
        except OSError:  # the folder was deleted
            return None
    return found


def project_of(folder: str) -> str | None:
    """The project of an absolute path, which need not exist: the repository's name, else the folder's own. None for the home
    folder, what is above it, and the root."""
    here = os.path.normpath(folder)
    home = os.path.normpath(os.path.expanduser("~"))
    if _is_around(here, home):
        return None
    level = here
    for _ in range(_LEVELS_MAX):
        if _is_around(level, home):  # a repository of the whole home folder (dotfiles) is no project
            break
        root = _repository(level)
        if root is not None:
            return _name(root)
        level = os.path.dirname(level)
    return _name(here)


def _is_around(folder: str, home: str) -> bool:
    return folder in ("/", "//") or folder == home or home.startswith(folder + "/")


def _repository(folder: str) -> str | None:
    """The folder that names the repository whose working tree begins at `folder`; None when none begins there."""
    git = folder + "/.git"
    try:
        os.stat(git + "/HEAD")
        return folder
    except NotADirectoryError:
        pass  # a file that leads elsewhere
    except OSError:
        return None  # no `.git`, one that nobody may look into, or an empty folder of that name
    text = _read(git)
    if text is None or not text.startswith("gitdir:"):
        return None
    directory = os.path.normpath(os.path.join(folder, text[len("gitdir:") :].strip()))
    common = _read(directory + "/commondir")
    if common is None:
        return folder  # a submodule, or a repository whose data was put elsewhere
    return _main_folder(os.path.normpath(os.path.join(directory, common.strip())))


def _main_folder(common: str) -> str:
    """Where the main working tree of the repository with the data in `common` is; for a bare one the folder that names it."""
    for line in (_read(common + "/config") or "").splitlines():
        key, _, value = line.partition("=")
        if key.strip().lower() == "worktree":  # of a submodule: its data is below that of the repository around it
            return os.path.normpath(os.path.join(common, value.strip().strip('"')))
    parent, name = os.path.split(common)
    return parent if name.startswith(".") else common


def _read(path: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.fsdecode(os.read(descriptor, _FILE_MAX_BYTES))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _name(folder: str) -> str | None:
    return _clean(os.path.basename(folder).removesuffix(".git"))


def _clean(name: str) -> str | None:
    """What a name may hold on the wire and in a path: printable characters, no slash; None when nothing is left."""
    kept = "".join(character for character in name if character.isprintable() and character != "/").strip()
    return None if kept in ("", ".", "..") else kept[:NAME_MAX_CHARS]
