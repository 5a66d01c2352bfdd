"""A store with memories of agents, written as the server writes them but for their files' bytes."""

from __future__ import annotations

from pathlib import Path

from memdir.retrieval.agents.container import AgentIndex
from memdir.retrieval.agents.ranking import AgentQuery
from memdir.store.agents import memories as agent_memories
from memdir.store.agents.files import Draft
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store

CONTAINER = 1
NOW_MS = 1_760_000_000_000
ANIMALS = ("okapi", "tapir", "civet", "ocelot", "pangolin")


def told(store: Store, number: int, content: str, *, tags: tuple[str, ...] = ("zoo",), project: str = "p") -> None:
    """The document of that number says this, new or again."""
    document, path = f"d{number:05d}", f"/memory/{project}/{number}.md"
    created_ms = NOW_MS - number * 3_600_000
    record = Draft(content=content, tags=tags, project=project, metadata={}, created_at_ms=created_ms, updated_at_ms=NOW_MS)
    with store.upkeep().alone() as connection:
        connection.execute(
            "insert into document (id, container_id, path, kind, media_type, status, content_hash, size_bytes, mode, mtime_ns, "
            "revision, created_at_ms, updated_at_ms) values (?, ?, ?, 'file', 'text/markdown', 'done', ?, 1, 420, 0, ?, 0, 0) "
            "on conflict (id) do nothing",
            (document, CONTAINER, path, "0" * 64, number),
        )
        agent_memories.replace(connection, CONTAINER, document, "0" * 64, path, [record])


def forget(store: Store, number: int) -> None:
    """The document of that number goes."""
    with store.upkeep().alone() as connection:
        connection.execute("delete from document where id = ?", (f"d{number:05d}",))


def filled(folder: Path, count: int = 30) -> SqliteStore:
    """A store with the container `agents` and so many memories."""
    store = SqliteStore.open(folder)
    assert store.containers.ensure("local", "agents").id == CONTAINER
    for number in range(count):
        told(store, number, f"Gate {number} of the {ANIMALS[number % 5]} house is opened by keeper {number % 7}")
    return store


def answers(index: AgentIndex) -> list[list[tuple[int, float]]]:
    """What an index finds, and how it scores it."""
    asked = ("okapi gate", "keeper of the tapir house", "civet keeper 3", "gate 7", "opens at seven")
    queries = [AgentQuery(text=text, now_ms=NOW_MS, project="p", limit=10, threshold=0.0) for text in asked]
    return [[(one.number, one.score) for one in index.search(query)] for query in queries]
