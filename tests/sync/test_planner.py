"""The planner: every combination of the three facts, and properties over random ones."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.sync.model import Action, Fact, Step
from memdir.sync.planner import plan


def fact(content: str, *, mode: int = 0o644, kind: str = "file", revision: int = 1) -> Fact:
    return Fact(kind=kind, content_hash=content, mode=mode, revision=revision)


A, B, C = fact("a"), fact("b"), fact("c")

TABLE: list[tuple[Fact | None, Fact | None, Fact | None, Step]] = [
    # local, remote, base
    (None, None, None, Step.NOTHING),
    (A, None, None, Step.PUSH),
    (None, A, None, Step.PULL),
    (A, A, None, Step.ADOPT),
    (A, B, None, Step.CONFLICT),
    (None, None, A, Step.ADOPT),
    (A, None, A, Step.DELETE_LOCAL),
    (None, A, A, Step.DELETE_REMOTE),
    (A, A, A, Step.NOTHING),
    (B, A, A, Step.PUSH),
    (A, B, A, Step.PULL),
    (B, B, A, Step.ADOPT),
    (B, C, A, Step.CONFLICT),
    (B, None, A, Step.PUSH),
    (None, B, A, Step.PULL),
]


@pytest.mark.parametrize(("local", "remote", "base", "step"), TABLE)
@pytest.mark.promise("parts.three-facts")
def test_every_combination_of_present_absent_and_changed(
    local: Fact | None, remote: Fact | None, base: Fact | None, step: Step
) -> None:
    assert plan(local, remote, base).step is step


def test_the_table_has_every_combination() -> None:
    """Each side is absent, as agreed, or changed (one of two ways): up to renaming these are all."""
    seen = {tuple("-" if f is None else f.content_hash for f in row[:3]) for row in TABLE}
    for combination in itertools.product((None, A, B, C), (None, A, B, C), (None, A)):
        names: dict[str, str] = {}
        order = [combination[2], combination[0], combination[1]]
        for item in order:
            if item is not None:
                names.setdefault(item.content_hash, "abc"[len(names)])
        canonical = tuple("-" if f is None else names[f.content_hash] for f in combination)
        assert canonical in seen, canonical


def test_an_equal_put_by_another_is_adopted_with_its_revision() -> None:
    assert plan(A, fact("a", revision=7), fact("a", revision=3)).step is Step.ADOPT


def test_a_chmod_on_one_side_is_carried_over() -> None:
    assert plan(fact("a", mode=0o755), A, A).step is Step.PUSH
    assert plan(A, fact("a", mode=0o755), A) == Action(step=Step.PULL, mode=0o755)


def test_a_chmod_here_and_an_edit_there_merge() -> None:
    assert plan(fact("a", mode=0o600), fact("b"), A) == Action(step=Step.PULL, mode=0o600)


def test_an_edit_here_and_a_chmod_there_merge() -> None:
    assert plan(fact("b"), fact("a", mode=0o600), A) == Action(step=Step.PULL_MODE, mode=0o600)


def test_two_different_chmods_end_in_the_servers() -> None:
    assert plan(fact("a", mode=0o600), fact("a", mode=0o755), A) == Action(step=Step.PULL_MODE, mode=0o755)


def test_a_file_that_became_a_folder_on_one_side_only_is_carried_over() -> None:
    folder = fact("", kind="dir", mode=0o755)
    assert plan(folder, A, A).step is Step.PUSH
    assert plan(A, folder, A).step is Step.PULL


def test_a_folder_here_and_a_file_there_is_a_conflict() -> None:
    assert plan(fact("", kind="dir", mode=0o755), B, A).step is Step.CONFLICT


def test_the_mode_of_a_symlink_never_matters() -> None:
    link = fact("t", kind="symlink", mode=0o777)
    assert plan(link, fact("t", kind="symlink", mode=0o644), link).step is Step.NOTHING


facts = st.none() | st.builds(
    Fact,
    kind=st.sampled_from(["file", "dir", "symlink"]),
    content_hash=st.sampled_from(["a", "b", "c"]),
    mode=st.sampled_from([0o644, 0o755, 0o600]),
    revision=st.integers(1, 4),
)


def step_once(
    local: Fact | None, remote: Fact | None, base: Fact | None, action: Action
) -> tuple[Fact | None, Fact | None, Fact | None]:
    """What the engine does with an action, on three plain values."""
    if action.step is Step.ADOPT:
        return local, remote, remote
    if action.step is Step.PUSH:
        assert local is not None
        put = Fact(kind=local.kind, content_hash=local.content_hash, mode=local.mode, revision=9)
        return local, put, put
    if action.step is Step.PULL:
        assert remote is not None
        assert action.mode is not None
        pulled = Fact(kind=remote.kind, content_hash=remote.content_hash, mode=action.mode)
        return pulled, remote, remote
    if action.step is Step.PULL_MODE:
        assert local is not None
        assert remote is not None
        assert action.mode is not None
        changed = Fact(kind=local.kind, content_hash=local.content_hash, mode=action.mode)
        agreed = Fact(kind=remote.kind, content_hash=(base or remote).content_hash, mode=remote.mode, revision=remote.revision)
        return changed, remote, agreed if base is not None and remote.same_content(base) else remote
    if action.step is Step.DELETE_LOCAL:
        return None, None, None
    if action.step is Step.DELETE_REMOTE:
        return None, None, None
    if action.step is Step.CONFLICT:
        return None, remote, None
    return local, remote, base


@settings(max_examples=2000)
@given(local=facts, remote=facts, base=facts)
def test_following_the_plan_converges_in_a_few_steps(local: Fact | None, remote: Fact | None, base: Fact | None) -> None:
    for _ in range(5):
        action = plan(local, remote, base)
        if action.step is Step.NOTHING:
            break
        local, remote, base = step_once(local, remote, base, action)
    assert plan(local, remote, base).step is Step.NOTHING
    assert (local is None) == (remote is None)
    assert local is None or local.same(remote)


@settings(max_examples=2000)
@given(local=facts, remote=facts, base=facts)
@pytest.mark.promise("parts.three-facts")
def test_no_unsynced_state_is_overwritten_or_deleted(local: Fact | None, remote: Fact | None, base: Fact | None) -> None:
    step = plan(local, remote, base).step
    local_unsynced = local is not None and not local.same_content(base) and not local.same_content(remote)
    remote_unseen = remote is not None and not remote.same_content(base) and not remote.same_content(local)
    if local_unsynced:
        assert step in (Step.PUSH, Step.CONFLICT, Step.PULL_MODE)
    if remote_unseen:
        assert step in (Step.PULL, Step.CONFLICT)


@settings(max_examples=500)
@given(local=facts, remote=facts, base=facts)
def test_the_same_facts_give_the_same_action(local: Fact | None, remote: Fact | None, base: Fact | None) -> None:
    assert plan(local, remote, base) == plan(local, remote, base)
