"""Which project a folder belongs to: that of the repository around it, the same for its clones, worktrees and subfolders,
also when it is moved, and another than that of a repository which is called alike.

A project is known by the remote of its repository, else by its first commit, else by the folder itself; a part of a
repository may be named by a `.memdir.toml` in its folder (`project = "payments"`). Read from the files that git keeps; no
process is started, so that the hook can afford it on every prompt. Formats: `gitfile` in gitglossary(7), `commondir` and
`worktrees` in gitrepository-layout(5), git-config(1), the reflog as in git-reflog(1). Standard library only, and little of
that.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` takes longer to import than all that is done here
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Final

ENV_PROJECT: Final = "MEMDIR_PROJECT"
NAMING_FILE: Final = ".memdir.toml"
NAME_MAX_CHARS: Final = 100
"""As `core.limits.MEMORY_PROJECT_MAX_CHARS`; that module imports `typing`."""
_KEY_MAX_CHARS: Final = 500
_LEVELS_MAX: Final = 256
_FILE_MAX_BYTES: Final = 1 << 16
_CLONES_MAX: Final = 4
"""Of a clone of a clone of … on one machine."""


class Project:
    """`name`: what its folder of memories is called unless that is taken. `keys`: what it is known by, strongest first:
    `remote:github.com/acme/api`, `root:COMMIT`, `folder:DIGEST`, `name:NAME`; none for one that was named by hand.
    `parent`: of the repository, where this is a part of one."""

    __slots__ = ("keys", "name", "parent")

    def __init__(self, name: str, keys: tuple[str, ...] = (), parent: Project | None = None) -> None:
        self.name = name
        self.keys = keys
        self.parent = parent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Project) and (self.name, self.keys, self.parent) == (other.name, other.keys, other.parent)

    __hash__ = None  # type: ignore[assignment]  # nobody keeps them in sets

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {self.keys!r}, {self.parent!r})"


class _Repository:
    """`root`: where the working tree begins; `git`: where git keeps what is of it alone. `main`: the folder that names it;
    `data`: where git keeps what all working trees share."""

    __slots__ = ("data", "git", "main", "root")

    def __init__(self, root: str, main: str, data: str, git: str) -> None:
        self.root = root
        self.main = main
        self.data = data
        self.git = git


def current_project(cwd: str | None = None) -> Project | None:
    """The project of a session: that of the folder its host names, else `MEMDIR_PROJECT`, else that of the process's own folder
    (only when the host names none). None where there is no project: in the home folder, at the root. ValueError for a
    `.memdir.toml` that cannot be read."""
    told = cwd is not None and cwd.startswith("/")
    found = project_of(cwd) if told and cwd is not None else None
    if found is None:
        named = _clean(os.environ.get(ENV_PROJECT, ""))
        found = None if named is None else Project(named)
    if found is None and not told:
        try:
            found = project_of(os.getcwd())
        except OSError:  # the folder was deleted
            return None
    return found


def project_of(folder: str) -> Project | None:
    """The project of an absolute path, which need not exist: that of the repository, else of the folder itself. None for
    the home folder, what is above it, and the root. ValueError for a `.memdir.toml` that cannot be read."""
    here = os.path.normpath(folder)
    home = os.path.normpath(os.path.expanduser("~"))
    if _is_around(here, home):
        return None
    repository = named = named_at = None
    for level in _levels(here, home):
        if named is None:
            named, named_at = _named_in(level), level
        repository = _repository(level)
        if repository is not None:
            break
    if repository is None:
        if named is not None:
            return Project(named, (f"name:{named}",))
        name = _name(here)
        return None if name is None else Project(name, (_folder_key(here),))
    name = _name(repository.main)
    keys = _keys_of(repository, _CLONES_MAX)
    if named is None or named_at == repository.root:
        name = named or name
        return None if name is None else Project(name, keys)
    parent = None if name is None else Project(name, keys)
    return Project(named, tuple(f"{key}#{named}" for key in keys), parent)


def repository_around(folder: str) -> _Repository | None:
    """Of an absolute path; a repository of the whole home folder is none."""
    levels = _levels(os.path.normpath(folder), os.path.normpath(os.path.expanduser("~")))
    return next(filter(None, map(_repository, levels)), None)


def _levels(folder: str, home: str) -> Iterator[str]:
    """A folder and those around it, below the home folder: a repository of all that (dotfiles) is no project."""
    for _ in range(_LEVELS_MAX):
        if _is_around(folder, home):
            return
        yield folder
        folder = os.path.dirname(folder)


def _is_around(folder: str, home: str) -> bool:
    return folder in ("/", "//") or folder == home or home.startswith(folder + "/")


def _named_in(folder: str) -> str | None:
    """What the `.memdir.toml` of a folder calls its project."""
    file = f"{folder}/{NAMING_FILE}"
    text = _read(file)
    if text is None:
        return None
    import tomllib

    try:
        name = tomllib.loads(text).get("project")
    except ValueError as error:
        raise ValueError(f"{file} is no TOML: {error}") from None
    if name is None:
        return None
    cleaned = _clean(name) if isinstance(name, str) else None
    if cleaned is None:
        raise ValueError(f'{file}: `project` is not the name of one, as in project = "payments"')
    return cleaned


# --- repositories ------------------------------------------------------------------------------------------------------


def _repository(folder: str) -> _Repository | None:
    """The repository whose working tree begins at `folder`; None when none begins there."""
    git = folder + "/.git"
    try:
        os.stat(git + "/HEAD")
        return _Repository(folder, folder, git, git)
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
        return _Repository(folder, folder, directory, directory)  # a submodule, or a repository whose data was put elsewhere
    data = os.path.normpath(os.path.join(directory, common.strip()))
    return _Repository(folder, _main_folder(data), data, directory)


def _main_folder(common: str) -> str:
    """Where the main working tree of the repository with the data in `common` is; for a bare one the folder that names it."""
    worktree = _settings(common).get(("core", "worktree"))
    if worktree:  # of a submodule: its data is below that of the repository around it
        return os.path.normpath(os.path.join(common, worktree))
    parent, name = os.path.split(common)
    return parent if name.startswith(".") else common


def _settings(data: str) -> dict[tuple[str, str], str]:
    """Of a repository's own configuration file, by section (with its subsection) and name; of several the last counts."""
    found = {}
    section = ""
    for line in (_read(data + "/config") or "").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text.strip("[]").replace('"', "")
            continue
        key, equals, value = text.partition("=")
        if equals:
            found[section, key.strip().lower()] = value.strip().strip('"')
    return found


def _keys_of(repository: _Repository, clones: int) -> tuple[str, ...]:
    """The remote, the first commit, the folder. Of a clone of another one on this machine: that one's."""
    urls = {section: value for (section, key), value in _settings(repository.data).items() if key == "url"}
    remotes = {section: url for section, url in urls.items() if section.startswith("remote ")}
    url = remotes.get("remote origin") or next(iter(remotes.values()), "")
    place = _local_path(url, repository.main)
    if place is not None and clones:
        origin = _repository(place) or (_Repository(place, place, place, place) if os.path.isfile(place + "/HEAD") else None)
        if origin is not None:
            return _keys_of(origin, clones - 1)
    keys = [_remote_key(url), _root_key(repository.data), _folder_key(repository.main)]
    return tuple(key for key in keys if key is not None and len(key) <= _KEY_MAX_CHARS)


def _local_path(url: str, base: str) -> str | None:
    """Where a remote lies on this machine; None for one that is elsewhere."""
    path = url.removeprefix("file://")
    if path == url and not path.startswith(("/", "./", "../")):
        return None
    return os.path.normpath(os.path.join(base, path))


def _remote_key(url: str) -> str | None:
    """`git@github.com:Acme/api.git`, `https://user@github.com/acme/api` and `ssh://git@github.com:22/acme/api/` are one."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        host, colon, path = url.partition(":")
        if not colon or "/" in host or url.startswith("/"):
            return None
    elif scheme == "file":
        return None
    else:
        host, _, path = rest.partition("/")
    host = host.rpartition("@")[2]
    if separator:
        host = host.partition(":")[0]
    path = path.strip("/").removesuffix(".git").strip("/")
    key = f"remote:{host}/{path}".casefold()
    return key if host and path and key.isprintable() and " " not in key else None


def _root_key(data: str) -> str | None:
    """The first commit of a repository that was begun here, as the reflog tells it: the commits themselves would have to be
    unpacked. None for a clone (it has a remote), and where the reflog was cut."""
    first = (_read(data + "/logs/HEAD") or "").partition("\n")[0]
    told, _, what = first.partition("\t")
    former, _, rest = told.partition(" ")
    commit = rest.partition(" ")[0]
    if what.startswith("commit (initial)") and not former.strip("0") and len(commit) >= 40 and commit.isalnum():
        return f"root:{commit}"
    return None


def _folder_key(folder: str) -> str:
    """A folder of this machine. A digest: machine-id(5) says that it must not be told, and paths are nobody's business."""
    from _blake2 import blake2b

    machine = (_read("/etc/machine-id") or os.uname().nodename).strip()
    return "folder:" + blake2b(os.fsencode(f"{machine}\0{folder}"), digest_size=16).hexdigest()


# --- files and names ---------------------------------------------------------------------------------------------------


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
