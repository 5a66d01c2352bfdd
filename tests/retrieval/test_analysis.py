"""Words as indexes count them: passages and queries meet in every form a word may take."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.store.text.analysis import TOKEN_MAX_CHARS, index_terms, query_terms


def meets(query: str, passage: str) -> bool:
    """Whether every word of the query is in the passage, in any of its forms."""
    have = set(index_terms(passage))
    return all(have.intersection(forms) for forms in query_terms(query))


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("running", "The foxes were seen as they ran and run again."),
        ("Haus", "Die Häuser am See wurden von den Ärzten gekauft."),
        ("Rechnung", "Bitte die Rechnungen der Werkstatt bis zum Montag bezahlen."),
        ("cheval", "Les chevaux de la ferme sont dans le pré avec une cheval."),
        ("décision", "Les décisions du conseil sont dans le dossier de la mairie."),
        ("canción", "Las canciones que escuchamos en la radio eran de los años ochenta."),
        ("cidade", "As cidades do conselho foram para a prefeitura com uma carta."),
        ("strada", "Le strade della città sono chiuse per la festa di domenica."),
        ("boek", "De boeken van het meisje zijn nog niet terug in de bibliotheek."),
        ("bil", "Bilarna som stod på gatan är inte kvar efter att de har blivit sålda."),
        ("дорога", "Машины ездили по дорогам, и это было не в первый раз."),
        ("кімната", "Це моя кімната, і вона є на другому поверсі."),
        ("δρόμος", "Οι δρόμοι της πόλης είναι κλειστοί για το φεστιβάλ."),
        ("kitap", "Bu kitaplar çok güzel ve bana göre daha ucuz değil."),
        ("किताब", "यह किताबें मेरी हैं और वह नहीं।"),
        ("книга", "Это мои книги, а не твои."),
    ],
)
def test_a_word_is_found_by_another_inflection_in_its_language(query: str, passage: str) -> None:
    assert meets(query, passage)


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("Straße", "STRASSE 12"),
        ("strasse", "in der Straße"),
        ("Mueller", "Das Haus von Herrn Müller ist nicht in der Stadt."),
        ("Müller", "Herr Mueller ist nicht in der Stadt, und das Haus ist leer."),
        ("cafe", "We met at the café."),
        ("Lodz", "The train to Łódź leaves at nine."),
        ("smorrebrod", "Smørrebrød for lunch"),
        ("file", "the \ufb01le is open"),
        ("memdir", "ｍｅｍｄｉｒ is full width"),
    ],
)
def test_spelling_variants_meet(query: str, passage: str) -> None:
    assert meets(query, passage)


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("retry backoff", "retry_backoff_s = 3"),
        ("retryBackoffS", "retry_backoff_s = 3"),
        ("retry_backoff_s", "const retryBackoffS = 3"),
        ("http response", "def parseHTTPResponse(raw):"),
        ("1.2.3", "upgraded to v1.2.3 today"),
        ("1.2", "upgraded to v1.2.3 today"),
        ("2024", "met on 2024-05-03"),
        ("2024-05-03", "met on 2024-05-03."),
        ("3,14", "the value 3.14 is used"),
        ("1200", "it costs 1,200 dollars"),
        ("1200.50", "it costs 1,200.50 dollars"),
        ("nginx.conf", "see /etc/nginx/nginx.conf"),
        ("email", "an e-mail came"),
        ("e-mail", "an email came by mail, class E"),
        ("dont", "I don't know"),
        ("eau", "un verre de l'eau"),
        ("John", "John’s bike"),
        ("O'Brien", "ask O’Brien"),
        ("C++", "written in C++ and C#"),
        ("9f86d081", "commit 9f86d081 broke it"),
        ("🎉", "done 🎉"),
    ],
)
def test_names_numbers_and_compounds_are_found_whole_and_in_parts(query: str, passage: str) -> None:
    assert meets(query, passage)


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("東京", "私は東京タワーに行きました"),
        ("茶", "我喜欢喝茶"),
        ("ภาษา", "ฉันเรียนภาษาไทย"),
        ("ភាសា", "ខ្ញុំរៀនភាសាខ្មែរ"),
        ("본문", "본문을 읽다"),
        ("ガス", "カ\u3099スの料金"),
    ],
)
def test_scripts_without_spaces_are_found_inside_longer_runs(query: str, passage: str) -> None:
    assert meets(query, passage)


def test_another_word_is_not_found() -> None:
    assert not meets("C#", "written in C++")
    assert not meets("大阪", "私は東京タワーに行きました")
    assert not meets("v2.0", "upgraded to v1.2.3 today")


def test_repeats_are_counted_and_the_order_is_that_of_the_text() -> None:
    assert index_terms("cats and cats and a dog") == ["cat", "and", "cat", "and", "a", "dog"]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_any_text_gives_bounded_folded_terms_and_always_the_same(text: str) -> None:
    terms = index_terms(text)
    assert terms == index_terms(text)
    assert all(term and len(unicodedata.normalize("NFC", term)) <= 3 * TOKEN_MAX_CHARS for term in terms)
    for forms in query_terms(text):
        assert forms
        assert len(set(forms)) == len(forms)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(categories=("L", "Nd", "Zs")), max_size=60))
def test_a_passage_is_found_by_its_own_words(text: str) -> None:
    assert meets(text, text)
