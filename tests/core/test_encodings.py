"""Texts from before Unicode are read in the encoding they were written in, and what is no text is none."""

from __future__ import annotations

import random

import pytest

from memdir.core.encodings import CONTROLS, legacy_encoding
from memdir.ingest.text import decode

RUSSIAN = "Мы встретились у старого моста, когда лёд уже тронулся, и решили записать уровень воды до самого вечера."
CZECH = "Příliš žluťoučký kůň úpěl ďábelské ódy, řekl hajný a šel si zapsat výšku hladiny u jezu."
POLISH = "Zażółć gęślą jaźń: wczoraj wieczorem zmierzyliśmy poziom wody przy śluzie i zapisaliśmy go w zeszycie."
GREEK = "Χθες το βράδυ μετρήσαμε τη στάθμη του νερού στο παλιό φράγμα και τη γράψαμε στο τετράδιο."
GERMAN = "Gestern Abend haben wir am alten Wehr den Wasserstand gemessen und für später in das grüne Heft übertragen, süß."
FRENCH = "Hier soir, près de l'écluse, nous avons mesuré le niveau d'eau et noté le résultat dans le cahier, où il était prévu."
TURKISH = "Dün akşam eski bendin yanında su seviyesini ölçtük ve sonucu yeşil deftere yazdık, çünkü ışık azdı."
JAPANESE = "昨日の夕方、古い堰のそばで水位を測り、結果をノートに書きました。明日もう一度測ります。"
CHINESE = "昨天傍晚我们在旧水坝旁边测量了水位，并把结果写在本子上。明天还要再测一次。"
TAIWANESE = "昨天傍晚我們在舊水壩旁邊測量了水位，並把結果寫在本子上。明天還要再測一次，請記得帶尺。"
KOREAN = "어제 저녁 오래된 둑 옆에서 수위를 재고 그 결과를 공책에 적었습니다. 내일 다시 재겠습니다."

WRITTEN = [
    *((RUSSIAN, encoding) for encoding in ("koi8-r", "cp1251", "cp866")),
    *((CZECH, encoding) for encoding in ("iso8859-2", "cp1250")),
    *((POLISH, encoding) for encoding in ("iso8859-2", "cp1250")),
    *((GREEK, encoding) for encoding in ("iso8859-7", "cp1253")),
    (GERMAN, "latin-1"),
    (FRENCH, "cp1252"),
    (TURKISH, "cp1254"),
    *((JAPANESE, encoding) for encoding in ("shift_jis", "euc-jp")),
    (CHINESE, "gb18030"),
    (TAIWANESE, "big5"),
    (KOREAN, "euc-kr"),
]


@pytest.mark.promise("extract.encodings")
@pytest.mark.parametrize(("text", "encoding"), WRITTEN)
def test_a_text_is_read_in_its_encoding_and_knows_its_bytes(text: str, encoding: str) -> None:
    whole = "".join(f"{number}. {text}\n" for number in range(6))
    data = whole.encode(encoding)
    found = decode(data)
    assert found is not None
    assert found.text == whole, found.encoding
    for index in random.Random(encoding).sample(range(len(whole)), 40):
        assert found.byte_at(index) == len(whole[:index].encode(encoding))
    assert found.byte_at(len(whole)) == len(data)


@pytest.mark.parametrize("text", ["Größe 42", "café au lait", "100 °C ± 5 µm", "price: 5 €", "© 2001 François"])
def test_a_letter_or_two_are_western(text: str) -> None:
    data = text.encode("cp1252")
    found = decode(data)
    assert found is not None
    assert (found.text, found.encoding) == (text, "cp1252")


def test_noise_is_no_text() -> None:
    chance = random.Random(23)
    allowed = [byte for byte in range(1, 256) if byte not in CONTROLS]
    for size in (100, 1_000, 20_000):
        for _ in range(5):
            assert legacy_encoding(bytes(chance.choice(allowed) for _ in range(size))) is None
    assert legacy_encoding(b"\x01" + GERMAN.encode("latin-1")) is None


def test_a_byte_that_its_encoding_has_not_is_one_mark() -> None:
    data = (f"{CHINESE}\n" * 900).encode("gb18030") + b"\xff\n" + b"end"
    found = decode(data)
    assert found is not None
    assert found.text.endswith("\N{REPLACEMENT CHARACTER}\nend")
    assert found.byte_at(len(found.text) - 3) == len(data) - 3
