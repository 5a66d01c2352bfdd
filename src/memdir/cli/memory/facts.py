"""Facts on the command line: those of the memory that is meant, and how one is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memdir.cli.text import visible

if TYPE_CHECKING:
    from datetime import datetime

    from memdir.cli.output import Output
    from memdir.client.local import ServerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsAt:
    """A server and one of its containers."""

    server: ServerInfo
    container: str

    def find(self, *, at: datetime | None = None, **wanted: str | int | None) -> list[dict[str, Any]]:
        """`api.facts.FactsQuery`, by its names on the wire."""
        from memdir.client.light import call

        params = {name: str(value) for name, value in wanted.items() if value is not None}
        if at is not None:
            params["at"] = at.isoformat()
        asked = {"containerTag": self.container, **params}
        found: list[dict[str, Any]] = call(self.server, "GET", "/v1/facts", params=asked, timeout_s=60.0)["facts"]
        return found


def fact_of_id(memory_id: str, container: str | None, fallback: str, server: ServerInfo) -> dict[str, Any] | None:
    """The fact with this id in the memory that is meant, or in the container `fallback`."""
    for name in dict.fromkeys((facts_here(container) or fallback, fallback)):
        found = FactsAt(server=server, container=name).find(id=memory_id)
        if found:
            return found[0]
    return None


def facts_here(container: str | None) -> str | None:
    """The container whose facts are meant: the one named, else that of the mount you are in; None outside of every mount."""
    from pathlib import Path

    from memdir.cli.targets import check_container_name, current_folder, open_registry

    if container is not None:
        return check_container_name(container)
    found = open_registry().find_by_path(Path(current_folder()))
    return None if found is None or not found[0].sync else found[0].name


def span(fact: dict[str, Any]) -> str:
    """Since when, until when."""
    since, until = ((fact[key] or "")[:10] for key in ("validFrom", "validTo"))
    return f"{since} to {until}" if since and until else since or f"until {until}"


def place_of_source(source: dict[str, Any], out: Output) -> str:
    if source["path"] is None:
        return "said by a call"
    lines = f"{source['startLine']}" + (f"-{source['endLine']}" if source["endLine"] > source["startLine"] else "")
    return f"{out.name(source['path'])}:{lines}"


def show_fact(fact: dict[str, Any], out: Output) -> None:
    """All of it: what it says, of whom, since when, how sure, where, and what was so before."""
    out.line(out.style(visible(fact["text"]), "bold"))
    claim = "" if fact["attribute"] is None else f", {fact['attribute']} = {fact['value']}"
    about = f"{fact['kind']}, of {fact['subject']}{claim}, confidence {fact['confidence']}, {span(fact)}  {fact['id']}"
    out.line(f"   {visible(about)}")
    for source in fact["sources"]:
        out.line(f"   {place_of_source(source, out)}" + ("" if source["stands"] else "  (not any more)"))
    for before in fact["versions"]:
        since = f", from {before['validFrom'][:10]}" if before["validFrom"] else ""
        out.line(f"   before{since}: {visible(before['text'])}")
