"""Two trees and what was agreed on, as plain values: the planner is followed path by path, in any order, until nothing is left.

A pure model of both sides. It refuses what the real sides refuse (a folder with something in it, a parent that is a file),
keeps the work list as the queue does, and stops with a `Violation` at the step that would lose something.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from memdir.sync.model import Action, Below, Fact, Step
from memdir.sync.planner import plan, plan_in_tree

Tree = dict[str, Fact]
Planner = Callable[..., Action]

DEPTH: Final = 3
ROUNDS_MAX: Final = 2 * DEPTH + 4
"""A round looks once at every path that waits. What holds a path up stands above it (a file in place of a folder) or below
(what has to go first, or keeps the folder): a level a round, either way. To that come one round for the modes, one for a kept
folder, and two for a conflict, whose copy is pushed after it was made. Seen in millions of cases: 4."""


class Violation(AssertionError):
    """What a step would have destroyed, or why nothing settles."""


@cache
def fact(kind: str, content: str, mode: int, revision: int) -> Fact:
    """One object for equal facts: making them is most of the cost of a case."""
    return Fact(kind=kind, content_hash=content, mode=mode, revision=revision)


@cache
def above(path: str) -> tuple[str, ...]:
    """Proper ancestors without the root, nearest first."""
    found = []
    while (path := path.rpartition("/")[0]) != "":
        found.append(path)
    return tuple(found)


def is_below(path: str, folder: str) -> bool:
    return path.startswith(folder + "/")


@dataclass(slots=True)
class Case:
    """One case. The work list is in an order that `rng` draws, or the one given."""

    local: Tree
    remote: Tree
    base: Tree
    leftovers: frozenset[str] = frozenset()
    """Folders of the mount with a file in them that never leaves the machine."""
    planner: Planner = plan_in_tree
    seq: int = 9
    work: list[str] = field(default_factory=list)
    copies: int = 0
    rounds: int = 0
    waiting: set[str] = field(default_factory=set)
    """What is still to be looked at in this round."""

    def settle(self, rng: random.Random | None = None, order: Iterable[str] = ()) -> None:
        """Follow the planner until nothing is left to do."""
        paths = list(order) or sorted({*self.local, *self.remote, *self.base})
        begun = dict(self.local), dict(self.remote), dict(self.base)
        if rng is not None:
            rng.shuffle(paths)
        self.work = paths
        while self.work:
            if self.rounds == ROUNDS_MAX:
                raise Violation(f"{self.work} are not settled after {ROUNDS_MAX} rounds")
            self.rounds += 1
            paths, self.work = self.work, []
            self.waiting = set(paths)
            for path in paths:
                self.waiting.discard(path)
                self.look(path)
            if rng is not None:
                rng.shuffle(self.work)
        self.check_equal()
        self.check_outcome(*begun)

    def look(self, path: str) -> None:
        local, remote, base = self.local.get(path), self.remote.get(path), self.base.get(path)
        action = self.planner(local, remote, base, here=lambda: self.here(path), there=lambda: self.there(path))
        _STEPS[action.step](self, path, action)

    # --- what stands below -----------------------------------------------------------------------------------------

    def here(self, path: str) -> Below:
        stays = goes = False
        for below, local in self.local.items():
            if is_below(below, path):
                remote, base = self.remote.get(below), self.base.get(below)
                if plan(local, remote, base).step is Step.DELETE_LOCAL:
                    goes = True
                elif local.kind != "dir" or remote or base or self.is_waiting(below) or not self.has_below(self.local, below):
                    stays = True
        leftover = any(folder == path or is_below(folder, path) for folder in self.leftovers)
        return Below(stays=stays, goes=goes, leftover=leftover)

    def there(self, path: str) -> Below:
        stays = goes = False
        for below, remote in self.remote.items():
            if is_below(below, path):
                if remote.same(self.base.get(below)):
                    goes = True
                else:
                    stays = True
        return Below(stays=stays, goes=goes)

    def has_below(self, tree: Tree, path: str) -> bool:
        return any(is_below(below, path) for below in tree)

    def again(self, path: str) -> None:
        if path not in self.work and path not in self.waiting:
            self.work.append(path)

    def is_waiting(self, path: str) -> bool:
        return path in self.work or path in self.waiting

    def look_below(self, path: str) -> None:
        for below in {*self.remote, *self.base}:
            if is_below(below, path):
                self.again(below)

    # --- the steps, as the real sides carry them out ------------------------------------------------------------------

    def nothing(self, path: str, action: Action) -> None:
        remote, base = self.remote.get(path), self.base.get(path)
        if remote is not base and not (remote is not None and remote.same(base) and base and remote.revision == base.revision):
            raise Violation(f"{path}: is {remote} and was agreed on as {base}, and nothing is noted")
        self.adopt(path, action)

    def adopt(self, path: str, _: Action) -> None:
        self.agree(path, self.remote.get(path))

    def agree(self, path: str, what: Fact | None) -> None:
        if what is None:
            self.base.pop(path, None)
        else:
            self.base[path] = what

    def push(self, path: str, action: Action) -> None:
        local, remote = self.local[path], self.remote.get(path)
        if any(folder in self.remote and self.remote[folder].kind != "dir" for folder in above(path)):
            self.again(path)  # 409: something above is a file there
            return
        self.may_replace(remote, self.base.get(path), local, path)
        if action.recursive and (local.kind == "dir" or not self.has_below(self.remote, path)):
            raise Violation(f"{path}: nothing has to go below it")
        if local.kind != "dir":
            self.empty_there(path, action)
        self.seq += 1
        self.remote[path] = self.base[path] = fact(local.kind, local.content_hash, local.mode, self.seq)

    def delete_remote(self, path: str, action: Action) -> None:
        if path in self.local:
            raise Violation(f"{path} stands in the mount and would be deleted at the server")
        self.may_replace(self.remote.get(path), self.base.get(path), None, path)
        self.empty_there(path, action)
        self.remote.pop(path, None)
        self.base.pop(path, None)

    def empty_there(self, path: str, action: Action) -> None:
        for below in [below for below in self.remote if is_below(below, path)]:
            if not action.recursive:
                raise Violation(f"{below} stands in the way at the server")
            self.may_replace(self.remote[below], self.base.get(below), None, below)
            if below in self.local:
                raise Violation(f"{below} stands in the mount and would go at the server")
            del self.remote[below]
            self.base.pop(below, None)

    def may_replace(self, remote: Fact | None, base: Fact | None, by: Fact | None, path: str) -> None:
        """At the server only what was seen may go; a mode may follow an edit."""
        if remote is not None and not remote.same_content(base) and not remote.same_content(by):
            raise Violation(f"{path}: {remote} was never seen here and would go")

    def pull(self, path: str, action: Action) -> None:
        local, remote = self.local.get(path), self.remote[path]
        if local is not None and not local.same_content(self.base.get(path)) and not local.same_content(remote):
            raise Violation(f"{path}: {local} is not at the server and would be overwritten")
        if any(folder in self.local and self.local[folder].kind != "dir" for folder in above(path)):
            self.again(path)  # ENOTDIR: something above is a file here
            return
        if remote.kind != "dir" and local is not None and local.kind == "dir":
            self.empty_here(path)
        for folder in above(path):
            self.local.setdefault(folder, fact("dir", "", 0o755, 0))
        assert action.mode is not None
        self.local[path] = fact(remote.kind, remote.content_hash, action.mode, 0)
        self.base[path] = remote
        if action.mode != remote.mode and remote.kind != "symlink":
            self.again(path)

    def pull_mode(self, path: str, action: Action) -> None:
        local, remote, base = self.local[path], self.remote[path], self.base.get(path)
        assert action.mode is not None
        if local.kind != remote.kind:
            raise Violation(f"{path}: the mode of a {remote.kind} for a {local.kind}")
        self.local[path] = fact(local.kind, local.content_hash, action.mode, 0)
        if remote.same_content(base):
            self.base[path] = remote
        self.again(path)

    def delete_local(self, path: str, _: Action) -> None:
        if not self.local[path].same(self.base.get(path)):
            raise Violation(f"{path}: {self.local[path]} is not at the server and would be deleted")
        if path in self.remote:
            raise Violation(f"{path} stands at the server and would be deleted here")
        self.empty_here(path)
        del self.local[path]
        self.base.pop(path, None)
        for folder in above(path):  # nobody's folder goes with its last entry
            if {*self.base, *self.remote} & {folder} or folder not in self.local or self.is_waiting(folder):
                return
            if self.has_below(self.local, folder) or folder in self.leftovers:
                return
            del self.local[folder]

    def empty_here(self, path: str) -> None:
        if self.has_below(self.local, path) or any(folder == path or is_below(folder, path) for folder in self.leftovers):
            raise Violation(f"{path}: what stands in it would be in the way")

    def conflict(self, path: str, _: Action) -> None:
        local, remote, base = self.local[path], self.remote.get(path), self.base.get(path)
        if (base is None if remote is None else remote.same(base)) and not self.there(path).stays:
            raise Violation(f"{path}: a conflict, and nobody else changed anything")
        if remote is not None and local.kind == remote.kind and (local.same_content(base) or remote.same_content(base)):
            raise Violation(f"{path}: a conflict of contents, and only one side has other ones")
        if local.same(base) and self.here(path).goes:
            raise Violation(f"{path}: what is to go would move aside, too")
        self.copies += 1
        aside = f"{path} (conflict {self.copies})"
        moved = [below for below in self.local if below == path or is_below(below, path)]
        self.leftovers = frozenset(
            aside + folder[len(path) :] if folder == path or is_below(folder, path) else folder for folder in self.leftovers
        )
        for old in moved:
            self.local[aside + old[len(path) :]] = self.local.pop(old)
            self.again(aside + old[len(path) :])
        self.look_below(path)
        self.base.pop(path, None)
        self.again(path)

    def keep(self, path: str, _: Action) -> None:
        self.look_below(path)
        self.base.pop(path, None)
        self.again(path)

    def wait(self, path: str, _: Action) -> None:
        self.look_below(path)
        self.again(path)

    def release(self, path: str, _: Action) -> None:
        self.base.pop(path, None)

    # --- the end -----------------------------------------------------------------------------------------------------

    def check_equal(self) -> None:
        """Both sides show the same; the server may leave out folders that have something in them."""
        for path, remote in self.remote.items():
            local = self.local.get(path)
            if not remote.same(local):
                raise Violation(f"{path} ends as {local} here and {remote} there")
            if not remote.same(self.base.get(path)) or self.base[path].revision != remote.revision:
                raise Violation(f"{path} is {remote} and was agreed on as {self.base.get(path)}")
        for path, local in self.local.items():
            if path not in self.remote:
                held = self.has_below(self.local, path) or any(f == path or is_below(f, path) for f in self.leftovers)
                if local.kind != "dir" or not held:
                    raise Violation(f"{path} ends as {local} here and as nothing there")
        for path in self.base:
            if path not in self.remote:
                raise Violation(f"{path} is agreed on and nowhere")

    def check_outcome(self, local: Tree, remote: Tree, base: Tree) -> None:
        """Every file is where its history says: what the server changed stands at its path, what was changed here there or in a
        copy, and what one side deleted and the other left alone is gone."""
        for path in {*local, *remote, *base}:
            mine, theirs, agreed, now = local.get(path), remote.get(path), base.get(path), self.local.get(path)
            if theirs is not None and theirs.kind != "dir" and not theirs.same_content(agreed):
                if not theirs.same_content(now):
                    raise Violation(f"{path}: the server's {theirs} ends as {now}")
            elif mine is not None and mine.kind != "dir" and not mine.same_content(agreed):
                if not mine.same_content(now) and not self.is_in_copy(path, mine):
                    raise Violation(f"{path}: {mine} of this side ends as {now}")
            elif agreed is not None and agreed.kind != "dir":
                deleted = (mine is None and agreed.same(theirs)) or (theirs is None and agreed.same(mine))
                if deleted and agreed.same_content(now):
                    raise Violation(f"{path}: was deleted on one side and came back")
                if agreed.same(mine) and agreed.same(theirs) and not agreed.same(now):
                    raise Violation(f"{path}: nobody changed it, and it ends as {now}")
            is_new_folder = mine is not None and mine.kind == "dir" and not mine.same(agreed)
            if is_new_folder and now is not None and now.kind == "dir" and path not in self.remote:
                raise Violation(f"{path}: a new folder of this side, and the server has none")
            if mine is not None and theirs is not None and agreed is not None and not self.copies:
                merged = theirs.mode if theirs.mode != agreed.mode else mine.mode
                if mine.kind == theirs.kind == agreed.kind != "symlink" and (now is None or now.mode != merged):
                    raise Violation(f"{path}: ends as {now}, and its mode should be {merged:o}")
            unsynced = (
                mine is not None and mine.kind != "dir" and not mine.same_content(agreed) and not mine.same_content(theirs)
            )
            if mine is not None and unsynced and not mine.same_content(now) and not self.is_in_copy(path, mine):
                raise Violation(f"{path}: {mine} of this side is nowhere")

    def is_in_copy(self, path: str, what: Fact) -> bool:
        return any(what.same_content(found) and _COPY.sub("", copy) == path for copy, found in self.local.items())


_COPY: Final = re.compile(r" \(conflict \d+\)")
_STEPS: Final[dict[Step, Callable[[Case, str, Action], None]]] = {
    Step.NOTHING: Case.nothing,
    Step.ADOPT: Case.adopt,
    Step.PUSH: Case.push,
    Step.PULL: Case.pull,
    Step.PULL_MODE: Case.pull_mode,
    Step.DELETE_LOCAL: Case.delete_local,
    Step.DELETE_REMOTE: Case.delete_remote,
    Step.CONFLICT: Case.conflict,
    Step.KEEP: Case.keep,
    Step.WAIT: Case.wait,
    Step.RELEASE: Case.release,
}

# --- cases ---------------------------------------------------------------------------------------------------------------

PATHS: Final = ("/a", "/a/x", "/a/x/k", "/a/y", "/b", "/b/z")
_FILES: Final = tuple(fact("file", content, mode, 1) for content in "ab" for mode in (0o644, 0o600))
_LINKS: Final = (fact("symlink", "t", 0o777, 1),)
_FOLDERS: Final = tuple(fact("dir", "", mode, 1) for mode in (0o755, 0o700))
_STATES: Final = (*_FILES, *_LINKS, *_FOLDERS, *_FOLDERS)


def tree(rng: random.Random, *, implicit: bool) -> Tree:
    """A tree; `implicit`: folders may be there without an entry of their own, as at the server."""
    made: Tree = {}
    for path in PATHS:
        folder = above(path)[0] if above(path) else ""
        if folder and not (implicit and folder not in made) and (folder not in made or made[folder].kind != "dir"):
            continue
        if any(up in made and made[up].kind != "dir" for up in above(path)):
            continue
        if rng.random() < 0.65:
            made[path] = _STATES[int(rng.random() * len(_STATES))]
    return made


def perturbed(rng: random.Random, origin: Tree, *, implicit: bool, contents: str) -> Tree:
    """The tree after some changes: paths edited, of another mode or kind, gone with all below, new."""
    made = dict(origin)
    for _ in range(int(rng.random() * 4)):
        path = PATHS[int(rng.random() * len(PATHS))]
        if any(up in made and made[up].kind != "dir" for up in above(path)):
            continue
        if not implicit and any(up not in made for up in above(path)):
            continue
        what = rng.random()
        old = made.get(path)
        if what < 0.3 or (old is not None and old.kind == "dir" and what < 0.6):
            for below in [p for p in made if p == path or is_below(p, path)]:
                del made[below]
            if what < 0.2:
                continue
        if old is not None and 0.6 <= what < 0.75:
            made[path] = fact(old.kind, old.content_hash, 0o640, 1)
        elif what < 0.9 and not any(is_below(p, path) for p in made):
            made[path] = fact("file", contents[int(rng.random() * len(contents))], 0o644, 1)
        elif not any(p == path and made[p].kind != "dir" for p in made):
            made[path] = _FOLDERS[int(rng.random() * 2)]
    return made


_PUT_AGAIN: Final = ("/a/y", "/b/z")
"""Paths where somebody put once more what stood there."""


def stamped(made: Tree, base: Tree) -> Tree:
    """The same tree as the server numbers it: what is as agreed keeps its number."""
    return {
        path: what if what.same(base.get(path)) and path not in _PUT_AGAIN else fact(what.kind, what.content_hash, what.mode, 5)
        for path, what in made.items()
    }


def family() -> Iterator[Case]:
    """Every case of a folder and one name in it: three contents, all kinds, two modes, on either side and as agreed."""
    file, folder = fact("file", "a", 0o644, 1), fact("dir", "", 0o755, 1)
    tops: tuple[Fact | None, ...] = (None, file, fact("file", "b", 0o644, 1), fact("dir", "", 0o700, 1), folder, *_LINKS)
    names: tuple[Fact | None, ...] = (None, file, fact("file", "b", 0o644, 1), fact("file", "a", 0o600, 1), folder)
    trees = [
        {path: what for path, what in (("/a", top), ("/a/x", name)) if what is not None}
        for top in tops for name in names if name is None or top is None or top.kind == "dir"
    ]  # fmt: skip
    held = [made for made in trees if "/a" in made or not made]
    for local, remote, base in itertools.product(held, trees, trees):
        for leftovers in (frozenset[str](), frozenset({"/a"})):
            if not leftovers or ("/a" in local and local["/a"].kind == "dir"):
                yield Case(local=dict(local), remote=stamped(remote, base), base=dict(base), leftovers=leftovers)


def draw(rng: random.Random) -> Case:
    """A case: mostly two descendants of one agreed tree, sometimes three that have nothing to do with each other."""
    if rng.random() < 0.2:
        base = tree(rng, implicit=True)
        local, remote = tree(rng, implicit=False), tree(rng, implicit=True)
    else:
        base = tree(rng, implicit=False)
        local = perturbed(rng, base, implicit=False, contents="acd")
        remote = perturbed(rng, base, implicit=True, contents="ace")
    leftovers = frozenset(p for p in ("/a", "/b") if p in local and local[p].kind == "dir" and rng.random() < 0.1)
    return Case(local=local, remote=stamped(remote, base), base=dict(base), leftovers=leftovers)
