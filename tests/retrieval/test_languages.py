"""A question in any language finds the passage that has its words in other forms."""

from __future__ import annotations

from pathlib import Path

import pytest

from memdir.retrieval.lexical.index import WordIndexes
from memdir.retrieval.words import prepare
from memdir.store.types import Scope
from tests.retrieval.lexical_world import FakeLog

PASSAGES = {
    "en": "The foxes were running along the river when we saw them.",
    "de": "Die Häuser am See wurden von den Ärzten gekauft, und die Rechnungen sind bezahlt.",
    "fr": "Les chevaux de la ferme sont dans le pré, et les maisons du village sont vides.",
    "es": "Las canciones que escuchamos en la radio eran de los años ochenta.",
    "it": "Le strade della città sono chiuse per la festa di domenica.",
    "nl": "De boeken van het meisje zijn nog niet terug in de bibliotheek.",
    "ru": "Машины ездили по дорогам, и это было не в первый раз.",
    "el": "Οι δρόμοι της πόλης είναι κλειστοί για το φεστιβάλ.",
    "ja": "私は日曜日に東京タワーに行きました。",
    "zh": "我们在北京大学的图书馆里喝茶。",
    "th": "ฉันเรียนภาษาไทยทุกวัน",
    "code": "def parseHTTPResponse(raw, retry_backoff_s=3): ...",
}


@pytest.mark.promise("retrieval.languages")
def test_words_are_found_in_other_forms_in_their_language(tmp_path: Path) -> None:
    log = FakeLog()
    for name, text in PASSAGES.items():
        log.put(1, name, f"/{name}.md", [(text, "")])
    index = WordIndexes(log, tmp_path)
    asked = {
        "fox runs": "en",
        "HAUS": "de",
        "Rechnung Arzt": "de",
        "maison vide": "fr",
        "canción": "es",
        "strada chiusa": "it",
        "boek": "nl",
        "дорога": "ru",
        "δρόμος": "el",
        "東京": "ja",
        "茶": "zh",
        "図書館 图书馆": "zh",
        "ภาษา": "th",
        "retryBackoffS": "code",
        "http response": "code",
    }
    for question, name in asked.items():
        found = index.search(Scope(container_id=1), prepare(question).phrases, 3)
        assert found, question
        assert log.held[found[0][0]][1].document_id == name, question
