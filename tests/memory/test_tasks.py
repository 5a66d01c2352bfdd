"""What was to be done is over when a later note says that it is done, and else is not."""

from __future__ import annotations

import pytest

from memdir_bench.memory.judging import DAY_MS, Store, shown

from .reading import read

pytestmark = pytest.mark.promise("facts.tasks")


def latest(task: str, later: str) -> list[str]:
    store = Store()
    store.write("/memory/notes/notes.md", task + "\n", now_ms=20_000 * DAY_MS)
    before = [one.candidate.text for one in store.latest()]
    assert before
    store.write("/memory/2026-11-28.md", f"Rain all day.\n\n{later}\n", now_ms=20_001 * DAY_MS)
    return [one.candidate.text for one in store.latest() if one.candidate.text in before]


@pytest.mark.parametrize(
    ("task", "later"),
    [
        ("- [ ] Renew the domain heron.dev before Dec 12", "Domain renewed."),
        ("- [ ] Renew the domain heron.dev before Dec 12", "The domain is renewed."),
        ("- [ ] Renew the domain heron.dev before Dec 12", "I renewed heron.dev today."),
        ("- [ ] Call the dentist", "Called the dentist."),
        ("- [ ] Book flights to Lisbon", "Flights booked!"),
        ("- Wants to plant a quince tree in spring", "The quince tree is planted!"),
        ("- Need to fix the gutter", "The gutter is finally fixed."),
        ("- [ ] Send the contract to Marta", "Sent Marta the contract."),
        ("- Planning to repaint the kitchen", "We repainted the kitchen."),
        ("- Looking for a flat", "Found a flat in Graz."),
        ("- [ ] Write the migration script", "I've written the migration script."),
    ],
)
def test_what_is_done_is_no_task_any_more(task: str, later: str) -> None:
    assert latest(task, later) == []


@pytest.mark.parametrize(
    ("task", "later"),
    [
        ("- Run the linter before a commit", "Ran the linter."),
        ("I need to take my pills every morning.", "Took my pills."),
        ("- [ ] Fix the login bug", "Fixed the export bug."),
        ("- [ ] Call Karl about the roof", "Called Karla."),
        ("- I have to pick up Mila at 15:30", "Picked up Mila late."),
        ("- Must pay rent on the first", "Paid rent."),
        ("I like to cook curry.", "Cooked a curry."),
        ("- [ ] Send the contract to Marta", "Sent the photos to Marta."),
        ("- [ ] Renew the domain", "The domain will be renewed tomorrow."),
        ("- [ ] Renew the domain", "Domain not renewed yet."),
        ("- [ ] Call the dentist", "Should have called the dentist."),
        ("Wants to learn Italian", "Learned that Ana is Italian."),
        ("- Wants to move to Lisbon", "Moved the sofa to the wall."),
        ("- [ ] Call the bank", "The bank called, they want a form."),
        ("- [ ] Water the plants", "Ana watered her plants."),
        ("- [ ] Book flights to Lisbon", "Booked flights to Porto."),
    ],
)
def test_a_rule_another_thing_and_what_is_not_done_yet_stay(task: str, later: str) -> None:
    assert len(latest(task, later)) == 1


LIST = """(A) 2026-11-20 Thank Mom for the meatballs @phone
@shop buy paint for the fence +Garden
Pay rent @bank +flat due:2026-12-01 rec:1m
x 2026-11-20 2026-11-18 Review the slides +Work
x Buy stamps
See https://example.com/a:b and 10:30 slots
"""


def test_what_a_list_of_tasks_says_is_to_be_done_and_passes() -> None:
    found = {one.text: one.kind for one in read(LIST, "/memory/todo.txt")}
    assert found == {
        "To do: Thank Mom for the meatballs": "dynamic",
        "To do: buy paint for the fence": "dynamic",
        "Pay rent due 2026-12-01": "dynamic",
        "To do: See https://example.com/a:b and 10:30 slots": "dynamic",
    }
    for name in ("TODO", "my-tasks.md", "Shopping List.md", "Aufgaben.md"):
        assert [(one.kind, one.text) for one in read("- call Karl\n", f"/memory/{name}")] == [("dynamic", "To do: call Karl")]
    assert [one.kind for one in read("- Deploys run on Fridays\n", "/memory/notes.md")] == ["static"]


@pytest.mark.parametrize("path", ["/memory/todo.md", "/memory/projects/heron/TODO"])
def test_an_item_of_a_list_of_tasks_is_over_when_it_is_done(path: str) -> None:
    store = Store()
    store.write(path, "- buy paint for the fence\n- send invoice to Nexia\n- pick up parcel\n- call Karl\n", now_ms=0)
    store.write("/memory/1970-01-02.md", "Bought paint for the fence. Sent the invoice to Nexia.\n", now_ms=DAY_MS)
    left = {one.text.removeprefix("Heron – ").removeprefix("To do: ") for one in shown(store, DAY_MS)}
    assert {one for one in left if one[0].islower()} == {"pick up parcel", "call Karl"}


@pytest.mark.parametrize(
    ("task", "later"),
    [
        ("- renovar el pasaporte\n", "Renovado el pasaporte.\n"),
        ("- renovar el pasaporte\n", "Hoy he renovado el pasaporte.\n"),
        ("- llamar al casero\n", "Llamé al casero.\n"),
        ("- pagar la factura de luz\n", "Pagué la factura de luz.\n"),
        ("- renouveler le passeport\n", "J'ai enfin renouvelé le passeport.\n"),
        ("- envoyer le dossier à Paul\n", "Envoyé le dossier à Paul.\n"),
    ],
)
def test_in_spanish_and_french(task: str, later: str) -> None:
    for after, is_left in ((later, False), ("No he renovado el pasaporte.\nJe n'ai pas envoyé le dossier.\n", True)):
        store = Store()
        store.write("/memory/tareas.md", task, now_ms=0)
        store.write("/memory/1970-01-02.md", after, now_ms=DAY_MS)
        assert any(one.text.startswith("To do: ") for one in shown(store, DAY_MS)) == is_left
