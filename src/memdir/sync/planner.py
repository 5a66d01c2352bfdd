"""What to do about one path, from three facts: what is here, what the server has, what both last agreed on.

Pure: no clock, no I/O, no randomness. The rules, in order of rank:
1. A local state that the server has not got is never overwritten and never deleted.
2. A remote state that this side has not seen is never overwritten and never deleted.
3. Equal states merge silently; a change on one side only is carried to the other; a delete against an edit keeps the edit.
4. Contents and mode are merged apart: a chmod here and an edit there are no conflict.
5. What remains is a conflict: the server's state keeps the path, the local state is kept beside it.
6. A folder goes, or gives its place to a file, only with everything in it: what is to go goes first (at the server in the same
   step), and something that is to stay keeps the folder, or moves aside with it.
"""

from __future__ import annotations

from collections.abc import Callable

from memdir.sync.model import Action, Below, Fact, Step

_NOTHING = Action(step=Step.NOTHING)
_ADOPT = Action(step=Step.ADOPT)
_PUSH = Action(step=Step.PUSH)
_DELETE_LOCAL = Action(step=Step.DELETE_LOCAL)
_DELETE_REMOTE = Action(step=Step.DELETE_REMOTE)
_CONFLICT = Action(step=Step.CONFLICT)
_KEEP = Action(step=Step.KEEP)
_WAIT = Action(step=Step.WAIT)
_RELEASE = Action(step=Step.RELEASE)
_PUSH_ALL = Action(step=Step.PUSH, recursive=True)
_DELETE_ALL = Action(step=Step.DELETE_REMOTE, recursive=True)


def plan_in_tree(
    local: Fact | None, remote: Fact | None, base: Fact | None, *, here: Callable[[], Below], there: Callable[[], Below]
) -> Action:
    """The next action for a path, with what stands below it: `here` in the mount, `there` at the server. Each is asked for at
    most once, and only when the step depends on it."""
    action = plan(local, remote, base)
    if local is not None and local.kind == "dir":
        if action.step is Step.DELETE_LOCAL:
            return _empty_here(action, here(), _KEEP, _RELEASE)
        if action.step is Step.PULL:
            assert remote is not None
            return action if remote.kind == "dir" else _empty_here(action, here(), _CONFLICT, _CONFLICT)
        return action
    if remote is not None and remote.kind != "dir":
        return action
    # Now nothing of it stands in the mount below, and folders of the server may stand below without one at the path itself.
    if action.step is Step.PUSH:
        return _empty_there(action, there(), _CONFLICT, _PUSH_ALL)
    if action.step is Step.DELETE_REMOTE:
        return _empty_there(action, there(), _KEEP, _DELETE_ALL)
    if local is None and remote is None:
        return _empty_there(action, there(), action, _DELETE_ALL)
    return action


def _empty_here(action: Action, below: Below, when_full: Action, when_left: Action) -> Action:
    """`action` once nothing stands in the folder. What is to go goes first: as little as possible is kept or moved aside."""
    if below.goes:
        return _WAIT
    if below.stays:
        return when_full
    return when_left if below.leftover else action


def _empty_there(action: Action, below: Below, when_full: Action, when_empty: Action) -> Action:
    if below.stays:
        return when_full
    return when_empty if below.goes else action


def plan(local: Fact | None, remote: Fact | None, base: Fact | None) -> Action:
    """The next action for a path. Each fact is None when nothing stands there."""
    if _equal(local, remote):
        agreed = _equal(local, base) and (remote is None or base is None or remote.revision == base.revision)
        return _NOTHING if agreed else _ADOPT
    if _equal(remote, base):
        return _DELETE_REMOTE if local is None else _PUSH
    if _equal(local, base):
        return _DELETE_LOCAL if remote is None else _pull(remote, remote.mode)
    if local is None:
        assert remote is not None
        return _pull(remote, remote.mode)
    if remote is None:
        return _PUSH
    return _both_changed(local, remote, base)


def _both_changed(local: Fact, remote: Fact, base: Fact | None) -> Action:
    """Both exist, differ from each other, and each differs from what was agreed on."""
    if local.same_content(remote):
        # Only the modes differ. Whoever kept the agreed mode follows the other; when both changed it, the server's stands.
        if base is not None and remote.kind == base.kind and remote.mode == base.mode:
            return _PUSH
        return Action(step=Step.PULL_MODE, mode=remote.mode)
    if base is not None and local.same_content(base):
        # Here only the mode changed, there the contents did: take those, and keep our mode if theirs did not change.
        return _pull(remote, local.mode if remote.mode == base.mode else remote.mode)
    if base is not None and remote.same_content(base) and local.kind == remote.kind:
        # There only the mode changed: take it, then the contents are a change of one side only.
        return Action(step=Step.PULL_MODE, mode=remote.mode)
    return _CONFLICT


def _pull(remote: Fact, mode: int) -> Action:
    return Action(step=Step.PULL, mode=remote.mode if remote.kind == "symlink" else mode)


def _equal(left: Fact | None, right: Fact | None) -> bool:
    return right is None if left is None else left.same(right)
