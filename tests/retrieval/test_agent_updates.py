"""Which new statement takes the place of which older one: pairs written by hand, one half of which no rule was made for, and
memories of the agents' bench, of which none replaces another."""

from __future__ import annotations

from itertools import permutations

import pytest

from memdir.retrieval.agents.updates import Relation, relation
from memdir_bench.agents.projects import projects
from memdir_bench.agents.updated import pairs

RIGHT_MIN = {"tuned": 0.85, "held": 0.85}


@pytest.mark.promise("agent.superseded-rightly")
@pytest.mark.parametrize("half", ["tuned", "held"])
def test_updates_are_told_from_statements_about_something_else(half: str) -> None:
    told = [(is_update, relation(newer, older)) for is_update, older, newer in pairs(half)]
    assert len(told) == 60
    replaced = [is_update for is_update, how in told if how is Relation.UPDATES]
    assert replaced.count(False) <= 1
    assert replaced.count(True) >= RIGHT_MIN[half] * 30


@pytest.mark.promise("agent.superseded-rightly")
def test_of_the_memories_of_a_project_none_replaces_another() -> None:
    for project in projects():
        texts = [text for _, text in project.memories.values()]
        assert [pair for pair in permutations(texts, 2) if relation(*pair) is Relation.UPDATES] == []


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("", "x"), ("one", "one"), ("Deploys run on Fridays.", ""), ("\0", "\0 now"), ("no longer", "no longer instead of"),
        ("a " * 5_000, "a " * 5_000 + "now b"), ("部署在周五运行", "部署在周二运行"),
    ],
)  # fmt: skip
def test_no_text_is_too_odd(older: str, newer: str) -> None:
    assert relation(newer, older) is not Relation.UPDATES


def test_an_older_memory_that_says_more_is_not_replaced_but_asked_about() -> None:
    older = "Jobs on gpu-long are killed after 48 hours. Checkpoint every 30 minutes and requeue with USR1."
    assert relation("Jobs on gpu-long are killed after 72 hours.", older) is Relation.MAY_UPDATE
    assert (
        relation("Jobs on gpu-long are killed after 72 hours.", "Jobs on gpu-long are killed after 48 hours.")
        is Relation.UPDATES
    )
