"""Whether what updates a memory is told from what is about something else: pairs in `updates/`, `= OLDER > NEWER` for an
update, `! OLDER > NEWER` for two statements that both hold. Nothing was made for those of `held.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from memdir.retrieval.agents.updates import Relation, relation
from memdir_bench.agents.goals import figure
from memdir_bench.figures import Figure
from memdir_bench.retrieval.metrics import wilson


def pairs(half: str) -> list[tuple[bool, str, str]]:
    """Of `tuned` or `held`: whether it is an update, the older statement, the newer one."""
    found = []
    for line in files("memdir_bench.agents").joinpath("updates", f"{half}.txt").read_text(encoding="utf-8").splitlines():
        older, newer = line[2:].split(" > ")
        found.append((line[0] == "=", older, newer))
    return found


def update_figures() -> Iterator[Figure]:
    """Of what is replaced how much is rightly so; of the updates how many are replaced, and how many at least asked about."""
    for half in ("tuned", "held"):
        told = [(is_update, relation(newer, older)) for is_update, older, newer in pairs(half)]
        replaced = [is_update for is_update, how in told if how is Relation.UPDATES]
        updates = [how for is_update, how in told if is_update]
        for name, some, of in (
            ("updates_right", sum(replaced), len(replaced)),
            ("updates_replaced", updates.count(Relation.UPDATES), len(updates)),
            ("updates_noticed", len(updates) - updates.count(None), len(updates)),
        ):
            spread = wilson(some, of)
            yield figure(f"{half}_{name}", some / of, "share", samples=of, spread=spread, better="higher")
