"""The knowledge graph of the reference MCP memory server (modelcontextprotocol/servers, src/memory).

Its file is JSON Lines: `{"type": "entity", "name", "entityType", "observations": [...]}` and `{"type": "relation", "from",
"to", "relationType"}`; the answer of its tool `read_graph` is an object with `entities` and `relations`. An entity becomes a
memory: its name, its observations, its relations. Relations stand behind the entities, so the file is read twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO, Any, Final

from memdir.agents.portable.item import BadItemError, Item, Left, PortableError, made
from memdir.agents.portable.jsonstream import ENTRY_MAX_CHARS, entries

RELATIONS_MAX: Final = 500_000
"""They are held in memory, unlike entities."""
Records = Iterator[tuple[str, Any]]
"""Place in the file, and a record with its `type`."""


def read_lines(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """The server's own file."""
    return _items(source, left, _line_records)


def read_object(source: IO[str], left: Left) -> Iterator[Item | BadItemError]:
    """The answer of `read_graph`."""
    return _items(source, left, _object_records)


def json_lines(source: IO[str]) -> Records:
    """Each line that is not empty, decoded; a BadItemError for one that is no JSON: a program that died in the middle of a
    line spoils that line alone. PortableError with the line that is no UTF-8."""
    number = 0
    try:
        while line := source.readline(ENTRY_MAX_CHARS):
            number += 1
            if line.strip():
                yield f"line {number}", _decoded(line, number)
    except UnicodeDecodeError as error:
        raise PortableError(f"line {number + 1}: it is no UTF-8: {error.reason}") from None


def _decoded(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadItemError(f"line {number}: it is no JSON: {error}", hint="--skip-bad leaves such lines out")


def _items(source: IO[str], left: Left, records: Callable[[IO[str]], Records]) -> Iterator[Item | BadItemError]:
    relations = _relations(records(source))
    source.seek(0)
    for where, record in records(source):
        if isinstance(record, BadItemError):
            yield record
        elif not isinstance(record, dict) or record.get("type") not in ("entity", "relation"):
            yield BadItemError(f"{where}: it is neither an entity nor a relation", hint="--skip-bad leaves such entries out")
        elif record["type"] == "entity":
            yield _entity(record, relations.pop(str(record.get("name")), []), where)
        elif not all(isinstance(record.get(name), str) for name in ("from", "to", "relationType")):
            yield BadItemError(f"{where}: a relation has from, to and relationType", hint="--skip-bad leaves such entries out")
    left.add("relations of no entity", sum(map(len, relations.values())))


def _relations(records: Records) -> dict[str, list[str]]:
    """What is told of each name."""
    found: dict[str, list[str]] = {}
    count = 0
    for where, record in records:
        if isinstance(record, dict) and record.get("type") == "relation" and isinstance(record.get("from"), str):
            count += 1
            if count > RELATIONS_MAX:
                raise PortableError(f"{where}: the file has more than {RELATIONS_MAX:,} relations", hint="import it in parts")
            found.setdefault(record["from"], []).append(f"{record.get('relationType')} {record.get('to')}")
    return found


def _entity(record: dict[str, Any], relations: list[str], where: str) -> Item | BadItemError:
    name, kind, observations = record.get("name"), record.get("entityType"), record.get("observations")
    if not isinstance(name, str) or not name.strip() or not isinstance(observations, list):
        return BadItemError(f"{where}: an entity has a name and a list of observations", hint="--skip-bad leaves it out")
    said = [text for text in observations if isinstance(text, str) and text.strip()]
    lines = said + [f"{name} {relation}" for relation in relations]
    content = f"{name}: {lines[0]}" if len(lines) == 1 else "\n".join([name, *(f"- {line}" for line in lines)])
    try:
        return made(
            content, where, tags=[kind] if isinstance(kind, str) else [],
            metadata={"importedFrom": "mcp-memory", "entity": name, "entityType": kind},
        )  # fmt: skip
    except BadItemError as error:
        return error


def _line_records(source: IO[str]) -> Records:
    return json_lines(source)


def _object_records(source: IO[str]) -> Records:
    kinds = {"entities": "entity", "relations": "relation"}
    for entry in entries(source):
        if entry.key in kinds and isinstance(entry.value, dict):
            yield f"line {entry.line}", {**entry.value, "type": kinds[entry.key]}
        elif entry.key in kinds:
            yield f"line {entry.line}", entry.value
