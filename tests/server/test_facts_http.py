"""Why a fact is in the profile, through a real server over both engines; and facts that former rules made."""

from __future__ import annotations

import io
import time

import docx
import httpx
import pytest

from tests.servers import ON_BOTH, ServerProcess

from .conftest import answered
from .test_search_http import done

pytestmark = ON_BOTH


def note(client: httpx.Client, tag: str, path: str, text: str, *, written_s: int) -> None:
    """A file among the memories, written at a time; waits for its facts."""
    of_file = {"containerTag": tag, "mtimeNs": str(written_s * 10**9)}
    client.put(f"/v1/files/memory/{path}", params=of_file, content=text.encode()).raise_for_status()
    done(client, tag)


@pytest.mark.promise("facts.why")
def test_a_fact_says_its_lines_and_what_it_said_before(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    client.put(
        "/v1/files/memory/a.md", params=at, content=b"# Notes\n\nRain. I live in Porto. Lunch was good.\n"
    ).raise_for_status()
    done(client, tag)
    client.put("/v1/files/memory/b.md", params=at, content=b"We moved to Lisbon.\n").raise_for_status()
    done(client, tag)
    (fact,) = client.get("/v1/facts", params={**at, "words": "lisbon moved"}).json()["facts"]
    assert (fact["text"], fact["subject"], fact["kind"]) == ("We moved to Lisbon.", "user", "static")
    assert [(one["path"], one["startLine"], one["stands"]) for one in fact["sources"]] == [("/memory/b.md", 1, True)]
    assert [one["text"] for one in fact["versions"]] == ["I live in Porto."]
    for nothing in ("porto", "lunch", "oslo"):
        assert client.get("/v1/facts", params={**at, "words": nothing}).json() == {"facts": []}
    client.delete("/v1/files/memory/b.md", params=at).raise_for_status()
    done(client, tag)
    (back,) = client.get("/v1/facts", params={**at, "words": "porto"}).json()["facts"]
    assert [(one["path"], one["startLine"]) for one in back["sources"]] == [("/memory/a.md", 3)]


@pytest.mark.promise("facts.prose")
def test_what_others_wrote_and_what_waits_brings_no_facts(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    mail = b"From: a@b.org\r\nTo: c@d.org\r\nSubject: Hi\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n\r\nI live in Ghent.\r\n"
    for path, content in (
        ("memory/mail.eml", mail), ("memory/page.html", b"<html><body><p>I live in Graz.</p></body></html>"),
        ("memory/.trash/old.md", b"I live in Perth.\n"), ("memory/api/inbox/x.md", b"I live in Turku.\n"),
        ("memory/web.md", b"---\ntrust: untrusted\n---\nI live in Leeds.\n"),
    ):  # fmt: skip
        client.put(f"/v1/files/{path}", params=at, content=content).raise_for_status()
    done(client, tag)
    assert client.get("/v1/facts", params={**at, "words": "live"}).json() == {"facts": []}
    kept = [{"op": "move", "fromPath": "/memory/api/inbox/x.md", "path": "/memory/api/x.md"}]
    client.post("/v1/files:batch", json={"containerTag": tag, "operations": kept}).raise_for_status()

    def found() -> list[str]:
        return [one["text"] for one in client.get("/v1/facts", params={**at, "words": "live"}).json()["facts"]]

    answered(found, lambda found: found == ["I live in Turku."])
    away = [{"op": "move", "fromPath": "/memory/api/x.md", "path": "/memory/.trash/x.md"}]
    client.post("/v1/files:batch", json={"containerTag": tag, "operations": away}).raise_for_status()
    answered(found, lambda found: not found)


def test_cards_and_pages_of_ones_own_say_what_stands_in_them_and_nothing_of_the_file(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    del server
    at = {"containerTag": tag}
    card = b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ana Ruiz\r\nBDAY:1990-05-03\r\nEND:VCARD\r\n"
    page = io.BytesIO()
    document = docx.Document()
    document.add_heading("Marit Solberg", 0)
    document.add_heading("Experience", 1)
    document.add_paragraph("Head of Finance, Fjordkraft AS (2020 – present)")
    document.save(page)
    for path, content in (("memory/friends.vcf", card), ("memory/cv.docx", page.getvalue())):
        client.put(f"/v1/files/{path}", params=at, content=content).raise_for_status()
    wanted = {
        ("ana ruiz", "Ana Ruiz – Birthday: 1990-05-03"), ("user", "Name: Marit Solberg"),
        ("user", "Job: Head of Finance at Fjordkraft AS (2020 – present)"),
    }  # fmt: skip

    def found() -> set[tuple[str, str]]:
        return {(one["subject"], one["text"]) for one in client.get("/v1/facts", params=at).json()["facts"]}

    answered(found, lambda found: found == wanted)


@pytest.mark.promise("facts.when")
def test_notes_of_former_days_that_come_later_do_not_change_what_holds(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    del server
    at = {"containerTag": tag}
    for path, content in (
        ("diary/2026-05-20.md", "I moved to Lisbon last week. Ana moved to Basel."),
        ("diary/2025-03-02.md", "I live in Coimbra."),
        ("diary/2026-01-10.md", "I live in Porto. Ana Ruiz works at Tessera. She lives in Ghent."),
    ):
        client.put(f"/v1/files/memory/{path}", params=at, content=content.encode()).raise_for_status()
        done(client, tag)

    def answer(question: str, **more: str) -> tuple[str, str, str | None]:
        fact = client.get("/v1/facts", params={**at, "q": question, **more}).json()["facts"][0]
        return fact["text"], fact["validFrom"][:10], fact["validTo"] and fact["validTo"][:10]

    assert answer("where do I live") == ("I moved to Lisbon last week.", "2026-05-11", None)
    assert answer("where do I live", at="2026-02-01") == ("I live in Porto.", "2026-01-10", "2026-05-11")
    assert answer("where do I live", at="2025-12-31T23:00:00+01:00") == ("I live in Coimbra.", "2025-03-02", "2026-01-10")
    assert answer("where does Ana live", at="2026-02-01")[:2] == ("Ana Ruiz lives in Ghent.", "2026-01-10")
    assert client.get("/v1/facts", params={**at, "q": "where do I live", "at": "2024-01-01"}).json() == {"facts": []}
    (lisbon,) = client.get("/v1/facts", params={**at, "words": "lisbon"}).json()["facts"]
    assert [one["text"] for one in lisbon["versions"]] == ["I live in Porto.", "I live in Coimbra."]
    assert client.get("/v1/facts", params={**at, "id": lisbon["id"]}).json()["facts"] == [lisbon]
    assert client.get("/v1/facts", params={**at, "path": "/memory/diary/2026-05-20.md", "line": 2}).json() == {"facts": []}
    about = client.get("/v1/facts", params={**at, "subject": "Ana"}).json()["facts"]
    assert {one["text"] for one in about} == {"Ana moved to Basel.", "Ana Ruiz works at Tessera."}
    client.delete("/v1/files/memory/diary/2026-05-20.md", params=at).raise_for_status()
    done(client, tag)
    assert answer("where do I live") == ("I live in Porto.", "2026-01-10", None)


@pytest.mark.promise("facts.when")
def test_what_was_written_down_only_after_it_had_ended_was_so_before(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    """Both notes are of today: since when somebody lived in Porto nobody knows, until when the second one says."""
    del server
    at = {"containerTag": tag}
    for path, content in (("me.md", "I live in Porto. My laptop is slow."), ("news.md", "I moved to Lisbon in May 2020.")):
        client.put(f"/v1/files/memory/{path}", params=at, content=content.encode()).raise_for_status()
        done(client, tag)

    def facts(**more: str) -> list[tuple[str, str | None, str | None]]:
        found = client.get("/v1/facts", params={**at, **more}).json()["facts"]
        return [(one["text"], *(one[key] and one[key][:10] for key in ("validFrom", "validTo"))) for one in found]

    porto = ("I live in Porto.", None, "2020-05-01")
    lisbon = ("I moved to Lisbon in May 2020.", "2020-05-01", None)
    assert facts(q="where do I live", at="2020-03-01")[:1] == facts(at="2020-03-01") == [porto]
    assert facts(q="where do I live", at="2020-06-01") == [lisbon]
    assert facts(q="where do I live")[0] == lisbon
    (now,) = client.get("/v1/facts", params={**at, "words": "lisbon"}).json()["facts"]
    assert [(one["text"], one["validFrom"]) for one in now["versions"]] == [("I live in Porto.", None)]
    client.delete("/v1/files/memory/news.md", params=at).raise_for_status()
    done(client, tag)
    assert facts(at="2020-03-01") == []
    assert facts(q="where do I live")[0][2] is None


@pytest.mark.promise("facts.when")
@pytest.mark.parametrize("first", ["me.md", "news.md"])
def test_of_two_notes_of_one_day_the_one_that_was_written_later_counts(
    server: ServerProcess, client: httpx.Client, tag: str, first: str
) -> None:
    """Whichever reaches the server first: a mount sends small files before large ones."""
    del server
    at = {"containerTag": tag}
    notes = {"me.md": ("I live in Porto.", 20_000_000), "news.md": ("I moved to Lisbon in May 2020.", 20_000_003)}
    for path in sorted(notes, key=lambda path: path != first):
        text, written_s = notes[path]
        note(client, tag, path, text, written_s=written_s + 36_000)
    (lisbon,) = client.get("/v1/facts", params=at).json()["facts"]
    assert lisbon["text"] == "I moved to Lisbon in May 2020."
    assert [one["text"] for one in lisbon["versions"]] == ["I live in Porto."]


def test_what_a_file_says_of_its_day_counts_when_it_is_new(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    """Its head is of the day when it was written first; what is added later is of its own day. A file's revision, which is the
    container's count, told only of the very first file."""
    del server
    at = {"containerTag": tag}
    note(client, tag, "other.md", "The ferry leaves at nine.", written_s=1_700_000_000)
    note(client, tag, "2023-03-01.md", "Sold the Brompton.", written_s=1_700_000_000)
    head = "---\ndate: 2023-01-10\n---\n"
    note(client, tag, "me.md", f"{head}Rides a Brompton.\nI live in Porto.\n", written_s=1_700_000_000)
    facts = client.get("/v1/facts", params=at).json()["facts"]
    assert {one["text"]: one["validFrom"][:10] for one in facts if one["sources"][0]["path"] == "/memory/me.md"} == {
        "I live in Porto.": "2023-01-10"
    }
    note(client, tag, "me.md", f"{head}I live in Porto.\nI work at Nexia.\n", written_s=1_700_000_000)
    facts = client.get("/v1/facts", params=at).json()["facts"]
    assert {one["text"]: one["validFrom"][:10] for one in facts if one["sources"][0]["path"] == "/memory/me.md"} == {
        "I live in Porto.": "2023-01-10", "I work at Nexia.": "2023-11-14",
    }  # fmt: skip


def test_a_plan_whose_day_has_come_takes_the_place_of_what_was_so(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    """Where its day is still to come both are found: the one is so, the other will be."""
    del server
    now_s, day_s = int(time.time()), 86_400

    def day(after: int, form: str = "%d %B %Y") -> str:
        return time.strftime(form, time.gmtime(now_s + after * day_s))

    def said(question: str, **more: str) -> set[str]:
        found = client.get("/v1/facts", params={"containerTag": tag, "q": question, **more}).json()["facts"]
        return {one["text"] for one in found}

    braga, outsystems = f"I'm moving to Braga on {day(-20)}.", f"I'm starting at Outsystems on {day(20)}."
    note(client, tag, "me.md", "I live in Porto.\n\nI work at Critical.\n", written_s=now_s - 300 * day_s)
    note(client, tag, "plans.md", f"{braga}\n\n{outsystems}\n", written_s=now_s - 60 * day_s)
    assert said("where do I live") & {braga, "I live in Porto."} == {braga}
    assert said("where do I work") >= {outsystems, "I work at Critical."}
    assert "I live in Porto." in said("where do I live", at=day(-40, "%Y-%m-%d"))
    asked = {"containerTag": tag, "q": "I live in", "searchMode": "memories", "limit": 10}
    found = {one["memory"] for one in client.post("/v4/search", json=asked).json()["results"]}
    assert braga in found
    assert "I live in Porto." not in found


@pytest.mark.promise("facts.own-name")
@pytest.mark.parametrize("first", ["profile", "session"])
def test_the_user_is_known_by_name_whichever_note_comes_first(
    server: ServerProcess, client: httpx.Client, tag: str, first: str
) -> None:
    del server
    at = {"containerTag": tag}
    notes = {
        "profile": ("USER.md", "- Name: Tobias Renner (goes by Tobi)\n- Lives in Leipzig\n", 20_000),
        "session": ("2026-11-27.md", "- Tobi told me they moved to Halle.\n- Tobi's wife is Henrike.\n", 20_500),
    }
    for name in sorted(notes, key=lambda name: name != first):
        path, text, day = notes[name]
        note(client, tag, path, text, written_s=day * 86_400)
    wanted = {"Name: Tobias Renner (goes by Tobi)", "The user moved to Halle.", "The user's wife is Henrike."}

    def found() -> dict[str, str]:
        return {one["text"]: one["subject"] for one in client.get("/v1/facts", params=at).json()["facts"]}

    assert set(answered(found, lambda found: set(found) == wanted).values()) == {"user"}


@pytest.mark.promise("facts.own-name")
def test_files_that_give_the_user_other_names_are_read_once_each(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    """Short names hold beside the whole one; of two others the later one does, and no file asks for the other for ever."""
    del server
    at = {"containerTag": tag}
    notes = {
        "USER.md": "- Name: Tobias Renner\n- Bo is a friend.\n", "human.md": "Name: Tobi\n",
        "me.md": "- My name is Bo Ek.\n- Tobi is a friend.\n",
    }  # fmt: skip
    for day, (path, text) in enumerate(notes.items()):
        note(client, tag, path, text, written_s=(20_000 + day) * 86_400)
    found = {one["text"] for one in client.get("/v1/facts", params=at).json()["facts"]}
    assert "My name is Bo Ek." in found
    client.delete("/v1/files/memory/me.md", params=at).raise_for_status()
    done(client, tag)
    found = {one["text"] for one in client.get("/v1/facts", params=at).json()["facts"]}
    assert {"Name: Tobias Renner", "Name: Tobi"} <= found


@pytest.mark.promise("facts.several")
def test_all_that_a_note_ends_is_told_as_its_change(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    for path, content in (("USER.md", "- Car: Golf\n"), ("log.md", "I drive a Golf.\n"), ("news.md", "Sold the Golf.\n")):
        client.put(f"/v1/files/memory/{path}", params=at, content=content.encode()).raise_for_status()
        done(client, tag)
    (sold,) = client.get("/v1/facts", params=at).json()["facts"]
    assert {one["text"] for one in sold["versions"]} == {"Car: Golf", "I drive a Golf."}
    pages = {page["name"]: page["text"] for page in client.get("/v1/profile", params=at).json()["pages"]}
    (line,) = [line for line in pages["changes.md"].splitlines() if line.startswith("- ")]
    assert "~~Car: Golf~~" in line
    assert "~~I drive a Golf.~~" in line
    client.delete("/v1/files/memory/news.md", params=at).raise_for_status()
    done(client, tag)
    assert {one["text"] for one in client.get("/v1/facts", params=at).json()["facts"]} == {"Car: Golf", "I drive a Golf."}


def test_a_graph_leads_from_one_to_the_next(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    del server
    at = {"containerTag": tag}
    text = (
        b"- My partner is Ines Alves\n- Ines Alves works at Tessera\n- Ben Okafor works at Tessera\n"
        b"- Project Heron uses MongoDB\n- Mum lives in Kiel\n"
    )
    client.put("/v1/files/memory/me.md", params=at, content=text).raise_for_status()
    done(client, tag)

    def links(subject: str, hops: int) -> list[tuple[str, str, str, int]]:
        found = client.get("/v1/facts/graph", params={**at, "subject": subject, "hops": hops}).json()
        return [(one["subject"], one["relation"], one["object"], one["line"]) for one in found["links"]]

    near = [("user", "partner", "ines alves", 1)]
    assert links("me", 1) == near
    assert links("me", 2) == [*near, ("ines alves", "works at", "tessera", 2)]
    assert links("user", 3)[-1] == ("ben okafor", "works at", "tessera", 3)
    assert links("ines", 1) == [near[0], ("ines alves", "works at", "tessera", 2)]
    assert links("nobody", 2) == []
    assert links("mum", 1) == links("my mother", 1) == [("mother", "lives in", "kiel", 5)]


@pytest.mark.promise("facts.note-programs")
def test_a_question_is_answered_by_what_it_asks_for_of_whom_it_names(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    del server
    at = {"containerTag": tag}
    for path, content in (
        ("me.md", "- Name: Tom Reyes\n- Job: reliability engineer at Nexo\n- Allergies: penicillin\n"),
        ("daily/2026-03-20.md", "- moved in!! New address: Rua das Flores 14, Porto\n- [ ] tell the bank where I live now\n"),
        ("people/Priya Nair.md", "Lives in Braga with her partner [[João]]. Works at Tessera.\n- Her daughter is Mira\n"),
        ("people/Ines Kowalski.md", "city:: Poznań\n\n- Her husband is [[Marek]]\n- Works at a bakery\n"),
    ):
        client.put(f"/v1/files/memory/{path}", params=at, content=content.encode()).raise_for_status()
    done(client, tag)

    def answer(question: str) -> str:
        text: str = client.get("/v1/facts", params={**at, "q": question}).json()["facts"][0]["text"]
        return text

    assert answer("where does the user live") == "New address: Rua das Flores 14, Porto"
    assert answer("where do we live") == "New address: Rua das Flores 14, Porto"
    assert answer("what do I do for a living?") == "Job: reliability engineer at Nexo"
    assert answer("what am I allergic to") == "Allergies: penicillin"
    assert answer("where does Tom live") == answer("Tom Reyes address") == "New address: Rua das Flores 14, Porto"
    assert answer("is tom allergic to anything") == "Allergies: penicillin"
    assert answer("where does Priya live") == "Priya Nair – Lives in Braga with her partner João."
    assert answer("where does Ines live") == "Ines Kowalski – city: Poznań"
