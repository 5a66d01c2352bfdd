"""What to do about one path, from three facts: what is here, what the server has, what both last agreed on.

Pure: no clock, no I/O, no randomness. The rules, in order of rank:
1. A local state that the server has not got is never overwritten and never deleted.
2. A remote state that this side has not seen is never overwritten and never deleted.
3. Equal states merge silently; a change on one side only is carried to the other; a delete against an edit keeps the edit.
4. Contents and mode are merged apart: a chmod here and an edit there are no conflict.
5. What remains is a conflict: the server's state keeps the path, the local state is kept beside it.
"""

from __future__ import annotations

from memdir.sync.model import Action, Fact, Step

_NOTHING = Action(step=Step.NOTHING)
_ADOPT = Action(step=Step.ADOPT)
_PUSH = Action(step=Step.PUSH)
_DELETE_LOCAL = Action(step=Step.DELETE_LOCAL)
_DELETE_REMOTE = Action(step=Step.DELETE_REMOTE)
_CONFLICT = Action(step=Step.CONFLICT)


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
        if base is not None and remote.same_content(base) and remote.mode == base.mode:
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
    if left is None or right is None:
        return left is right
    return left.same(right)
