"""Notes in German, Spanish and French: the same attributes as in English, also across languages, and nothing from prose."""

from __future__ import annotations

import pytest

from memdir.memory.claims import claim_of, is_readable
from memdir.memory.dates import ms_of
from memdir.memory.extract import extract
from memdir.memory.formers import formers_of
from memdir.memory.profile import profile
from memdir_bench.memory.judging import DAY_MS, Store, shown

from .reading import read

DIARIES = {
    "de": [
        ("2026-01-05", "Regen. Ich wohne in Graz. Der Bus kam zu spät."),
        ("2026-01-09", "Ich arbeite bei Helvar Robotics. Mein Editor ist Vim."),
        ("2026-02-01", "Meine Frau heißt Ines. Ana Ruiz wohnt in Leeds."),
        ("2026-03-01", "Projekt Heron nutzt MongoDB. Ich bin allergisch gegen Nüsse."),
        ("2026-05-20", "Ich bin letzte Woche von Graz nach Wien gezogen. Vielleicht wohne ich bald in Linz."),
        ("2026-06-02", "Heron ist von MongoDB auf DuckDB umgestiegen. Mein Editor ist jetzt Helix."),
        ("2026-06-09", "Ana Ruiz ist nach Basel gezogen. Ich arbeite jetzt bei Tessera."),
    ],
    "es": [
        ("2026-01-05", "Lluvia. Vivo en Graz. El autobús llegó tarde."),
        ("2026-01-09", "Trabajo en Helvar Robotics. Mi editor es Vim."),
        ("2026-02-01", "Mi esposa se llama Ines. Ana Ruiz vive en Leeds."),
        ("2026-03-01", "El proyecto Heron usa MongoDB. Soy alérgico a las nueces."),
        ("2026-05-20", "Me mudé de Graz a Wien la semana pasada. ¿Vivo en Linz?"),
        ("2026-06-02", "Heron cambió de MongoDB a DuckDB. Mi editor es ahora Helix."),
        ("2026-06-09", "Ana Ruiz se mudó a Basel. Trabajo ahora en Tessera."),
    ],
    "fr": [
        ("2026-01-05", "Pluie. J'habite à Graz. Le bus était en retard."),
        ("2026-01-09", "Je travaille chez Helvar Robotics. Mon éditeur est Vim."),
        ("2026-02-01", "Ma femme s'appelle Ines. Ana Ruiz habite à Leeds."),
        ("2026-03-01", "Le projet Heron utilise MongoDB. Je suis allergique aux noix."),
        ("2026-05-20", "J'ai déménagé de Graz à Wien la semaine dernière. Peut-être que j'habite à Linz."),
        ("2026-06-02", "Heron est passé de MongoDB à DuckDB. Mon éditeur est maintenant Helix."),
        ("2026-06-09", "Ana Ruiz a déménagé à Basel. Je travaille maintenant chez Tessera."),
    ],
}
NOW = {
    ("user", "lives in"): "wien", ("user", "works at"): "tessera", ("user", "editor"): "helix", ("user", "partner"): "ines",
    ("ana ruiz", "lives in"): "basel", ("heron", "uses"): "duckdb",
}  # fmt: skip


@pytest.mark.promise("facts.languages")
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("languages", [["de"], ["es"], ["fr"], ["de", "es", "fr"]])
def test_a_diary_says_what_holds_now(languages: list[str], backwards: bool) -> None:
    """With several languages each entry is in another one; backwards, the last entry is read first."""
    store = Store()
    entries = [DIARIES[languages[at % len(languages)]][at] for at in range(7)]
    for day, text in reversed(entries) if backwards else entries:
        store.write(f"/memory/diary/{day}.md", text, now_ms=1_800_000_000_000)
    shown = [one.candidate for one in profile(store.latest(), now_ms=1_800_000_000_000, budget_tokens=100_000).static]
    claims = {(claim.subject, claim.attribute): claim.value for one in shown if (claim := claim_of(one.text)) is not None}
    assert {key: claims.get(key) for key in NOW} == NOW
    said = " ".join(one.text for one in shown)
    assert not [gone for gone in ("Linz", "Helvar", "Leeds", "Vim") if gone in said]
    if not backwards:  # "uses A" that is read after "switched from A" is a known gap
        assert sum("MongoDB" in one.text for one in shown) == 1, "named as gone, and not beside it"
    assert any(attribute == "allergy" for _, attribute in claims)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Ich bin im Mai nach Wien gezogen.", "2026-05-01"), ("Ich wohne seit März 2025 in Graz.", "2025-03-01"),
        ("Me mudé a Lisboa en mayo.", "2026-05-01"), ("Vivo en Porto desde el 3 de marzo de 2025.", "2025-03-03"),
        ("J'ai déménagé à Liège le mois dernier.", "2026-10-01"), ("J'habite à Gand depuis mars 2024.", "2024-03-01"),
    ],
)  # fmt: skip
def test_days_are_understood(text: str, day: str) -> None:
    from datetime import date

    (fact,) = extract(text, "/memory/2026-11-25.md", byte_at=int)
    assert fact.valid_from_ms == ms_of(date.fromisoformat(day))


@pytest.mark.parametrize(
    "text",
    [
        "Die Stadt liegt in Bayern.", "Der Server läuft auf Linux.", "Es wohnt niemand in diesem Haus.",
        "Wenn ich in Wien wohne",
        "Man arbeitet bei uns für wenig Geld.", "El libro trabaja en la idea.", "La gente vive en casas.", "Si vivo en Porto",
        "Le projet avance bien.", "On habite à la campagne.", "Selon lui, Ana habite à Gand.", "Er soll in Graz wohnen.",
    ],
)  # fmt: skip
def test_nothing_is_claimed_of_nobody(text: str) -> None:
    assert claim_of(text) is None


def test_what_is_no_sentence_claims_nothing_and_takes_no_time() -> None:
    line = "0 0 moveto Show I live in " * 4000
    assert not is_readable(line)
    assert claim_of(line) is None
    assert extract(line, "/memory/picture.ps", byte_at=int) == ()
    assert formers_of("Heron ist von MongoDB auf DuckDB umgestiegen.") == {"mongodb"}


@pytest.mark.parametrize(
    ("noted", "later"),
    [
        ("- wohnt in Halle, zieht im Januar um\n", "Jonas ist nach Berlin gezogen.\n"),
        ("- Wohnt in Halle\n", "Jonas wohnt jetzt in Berlin.\n"),
        ("- vive en Halle\n", "Jonas vive ahora en Berlin.\n"),
        ("- Habite à Halle\n", "Jonas habite maintenant à Berlin.\n"),
    ],
)
def test_a_line_in_a_file_about_somebody_is_replaced_like_a_sentence(noted: str, later: str) -> None:
    store = Store()
    store.write("/memory/personen/Jonas.md", noted, now_ms=0)
    store.write("/memory/1970-01-02.md", later, now_ms=DAY_MS)
    assert [one.text for one in shown(store, DAY_MS)] == [later.strip()]


def test_who_left_where_they_worked_works_there_no_more() -> None:
    store = Store()
    store.write("/memory/yo.md", "Trabajo como arquitecta en Estudio Norte.\nSoy celíaca.\n", now_ms=0)
    store.write("/memory/1970-01-02.md", "He dejado Estudio Norte, empiezo en Arup en enero.\n", now_ms=DAY_MS)
    assert not any("arquitecta" in one.text for one in shown(store, DAY_MS))
    assert any("celíaca" in one.text for one in shown(store, DAY_MS))


def test_german_lines_that_leave_ich_out_and_minutes() -> None:
    found = read("Arbeite als Lotsin bei der Hafen AG.\nLinkshänderin.\n", "/memory/ich.md")
    assert [(one.subject, one.text) for one in found] == [
        ("user", "Arbeite als Lotsin bei der Hafen AG."), ("user", "Linkshänderin."),
    ]  # fmt: skip
    text = "Teilnehmer: Ana, Priya, ich\n\n- Ana geht ab Februar in Elternzeit\n- Priya: Einstellung erst im Januar\n"
    assert {one.subject for one in read(text, "/memory/2026-11-17 Besprechung.md")} == {"ana", "priya"}


def test_a_childs_piano_lesson_is_no_word_of_the_user() -> None:
    text = "## Lucía\n- Cumpleaños: 3 de mayo\n- Piano los miércoles a las 17:00\n\n## Mateo\n- Cumpleaños: 2 de mayo\n"
    found = {one.text: one.subject for one in extract(text, "/memory/familia.md", byte_at=int)}
    assert found["Lucía – Piano los miércoles a las 17:00"] == "lucía"
    (own,) = extract("Toco el piano los martes", "/memory/notas.md", byte_at=int)
    assert own.subject == "user"


def test_work_and_shopping_are_the_users_in_spanish_too() -> None:
    found = {
        one.text: one.subject for one in extract("Empresa: Nortia\nJefa: Carmen Vidal\n", "/memory/trabajo.md", byte_at=int)
    }
    assert found == {"Empresa: Nortia": "user", "Jefa: Carmen Vidal": "user"}
    (task,) = extract("- pilas AA\n", "/memory/lista de la compra.md", byte_at=int)
    assert (task.text, task.kind) == ("To do: pilas AA", "dynamic")


@pytest.mark.parametrize(
    "said",
    [
        "Ik drink geen koffie.", "Mijn vriendin heet Fleur.", "Sono allergica alle noci.", "Mio marito è nato a Bari.",
        "Ho smesso di fumare a marzo.", "A minha filha chama-se Leonor.", "Não como carne.",
    ],
)  # fmt: skip
def test_a_few_forms_of_dutch_italian_and_portuguese_are_of_the_user(said: str) -> None:
    assert [(one.subject, one.text) for one in read(said, "/memory/notes.md")] == [("user", said)]
