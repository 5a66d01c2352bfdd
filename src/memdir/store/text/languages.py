"""Which languages a short text may be in: by its script, by its commonest words, by letters only one language has.

No model and no probabilities: counts of what is seen, so that the same text always gets the same answer. A passage holds some
hundred words, of which a third are function words, so counting these decides nearly always; a query of two nouns stays open,
and `candidates` then names every language the words could be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from memdir.store.text.stopwords import STOP_WORDS
from memdir.store.text.words import fold

LATIN_MAX: Final = 4
"""Languages tried for words whose language is not clear."""

CLEAR_MIN: Final = 1.5
"""Points, one for a stop word of one language only, below which a passage's language is a guess."""
CLEAR_SHARE: Final = 0.6
"""Of the best language's points: a second one with more may as well be the language."""
GUESS_TOKENS_MAX: Final = 60
"""Words of a passage that are looked at for typical runs of letters."""
RUNS_SHARE: Final = 0.3
"""Points for each further letter of a typical run."""
_LATIN_LETTER: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_OTHER_SCRIPTS: Final = (
    (re.compile("[\u0400-\u04ff]"), ("russian", "ukrainian", "serbian")),
    (re.compile("[\u0370-\u03ff\u1f00-\u1fff]"), ("greek",)),
    (re.compile("[\u0600-\u06ff]"), ("arabic",)),
    (re.compile("[\u0900-\u097f]"), ("hindi",)),
    (re.compile("[\u0b80-\u0bff]"), ("tamil",)),
    (re.compile("[\u0530-\u058f]"), ("armenian",)),
)
_LETTERS: Final = {
    "german": "äöüß",
    "french": "éèêëàâçœùûîïô",
    "spanish": "ñáéíóú¿¡",
    "portuguese": "ãõçáéêâóàí",
    "italian": "àèéìòù",
    "swedish": "åäö",
    "danish": "åæø",
    "norwegian": "åæø",
    "finnish": "äö",
    "polish": "ąćęłńóśźż",
    "czech": "áčďéěíňóřšťúůýž",
    "hungarian": "áéíóöőúüű",
    "romanian": "ăâîșțşţ",
    "turkish": "çğıöşü",
    "catalan": "àçèéíòóúï",
    "russian": "ыэъё",
    "ukrainian": "іїєґ",
    "serbian": "ђљњћџј",
    "dutch": "ëï",
}
"""Beside a to z. A letter that is in few of these says much."""
_ENDINGS: Final = {
    "english": "ing tion ness ment ship ght ould ough wh th ed ly",
    "german": "ung heit keit lich isch schaft sch chen tz eit ieren pf",
    "french": "eux eau ique ment tion oir ais ez aux elle ette oi",
    "spanish": "cion ado ada idad mente illo ero ez ado lla rr ue",
    "portuguese": "cao coes dade mente inho ario nh lh ado agem ei",
    "italian": "zione ita mente ato gli cch ggi ezza ore zz ello",
    "dutch": "ij aa oe ee heid lijk sch ing en uu gg",
    "swedish": "het ning skap ande ligt sj na tt rna",
    "danish": "hed ning skab ende lig eg ej dt",
    "norwegian": "het ning skap ende lig kj ei gg",
    "finnish": "ssa lla sta lta nen inen aa uu kk tt yy",
    "polish": "cz sz rz nie owy ych ego owa dz",
    "czech": "ost ani ych ova ovat ho ce st",
    "hungarian": "sz gy ny cs seg sag nak nek ban ben ek ok",
    "romanian": "ului tie ilor ea esc uri ate",
    "turkish": "lar ler lik lik dir mak mek yor",
    "catalan": "cio tat ny ment ix tge ig",
    "indonesian": "kan nya men ber ng ter peng",
}
"""Runs of letters that are frequent in one language and rarer in others (folded); they only order what is otherwise equal."""

_LATIN: Final = tuple(sorted(_ENDINGS))
_WEIGHT: Final = 1.0
_RUNS: Final = {
    language: re.compile("|".join(sorted(set(runs.split()), key=lambda run: (-len(run), run))))
    for language, runs in _ENDINGS.items()
}


def _by_word() -> dict[str, tuple[tuple[str, float], ...]]:
    """For each stop word the languages it is one of; a word of many languages counts less in each."""
    owners: dict[str, list[str]] = {}
    for language, found in sorted(STOP_WORDS.items()):
        for word in found:
            owners.setdefault(word, []).append(language)
    return {word: tuple((language, _WEIGHT / len(own)) for language in own) for word, own in owners.items()}


def _by_letter() -> dict[str, tuple[tuple[str, float], ...]]:
    owners: dict[str, list[str]] = {}
    for language, letters in sorted(_LETTERS.items()):
        for letter in letters:
            owners.setdefault(letter, []).append(language)
    return {letter: tuple((language, _WEIGHT / len(own)) for language in own) for letter, own in owners.items()}


_BY_WORD: Final = _by_word()
_BY_LETTER: Final = _by_letter()


def scores(tokens: Iterable[str]) -> dict[str, float]:
    """How much speaks for each language: stop words, and letters beside a to z."""
    found: dict[str, float] = {}
    for token in tokens:
        lowered = token.lower()
        for language, weight in _BY_WORD.get(lowered if lowered.isascii() else fold(lowered), ()):
            found[language] = found.get(language, 0.0) + weight
        if not lowered.isascii():
            for letter in set(lowered):
                for language, weight in _BY_LETTER.get(letter, ()):
                    found[language] = found.get(language, 0.0) + weight
    return found


def of_passage(text: str, tokens: list[str]) -> tuple[str, ...]:
    """The language of a passage, or the two it may be in when that is not clear; English when nothing is known."""
    script = _script(text)
    found = scores(set(tokens))
    if script:
        return (min(script, key=lambda language: (-found.get(language, 0.0), script.index(language))),)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    if not ranked or ranked[0][1] < CLEAR_MIN:
        guessed = _by_runs(" ".join(tokens[:GUESS_TOKENS_MAX]), found)
        return ("english",) if not guessed or guessed[0] == "english" else ("english", guessed[0])
    first = ranked[0][0]
    if len(ranked) > 1 and ranked[1][1] > CLEAR_SHARE * ranked[0][1]:
        return (first, ranked[1][0])
    return (first,)


@lru_cache(maxsize=4096)
def of_query(text: str) -> tuple[str, ...]:
    """The languages whose stems a query tries, the likeliest first; English is always among those of Latin script."""
    tokens = text.split()
    found = scores(tokens)
    script = _script(text)
    if script:
        return tuple(sorted(script, key=lambda language: (-found.get(language, 0.0), script.index(language)))[:2])
    guessed = _by_runs(text, found)
    return tuple(dict.fromkeys((*guessed[:LATIN_MAX], "english")))


def _script(text: str) -> tuple[str, ...]:
    """The languages of a script other than Latin that most letters of the text are in."""
    if text.isascii():
        return ()
    best: tuple[str, ...] = ()
    most = len(_LATIN_LETTER.findall(text))
    for pattern, languages in _OTHER_SCRIPTS:
        count = len(pattern.findall(text))
        if count > most:
            most, best = count, languages
    return best


def _by_runs(text: str, found: dict[str, float]) -> list[str]:
    """Latin languages by what was counted and by their typical runs of letters, the likeliest first."""
    folded = fold(text)
    points = {
        language: found.get(language, 0.0) + RUNS_SHARE * sum(len(run) - 1 for run in _RUNS[language].findall(folded))
        for language in _LATIN
    }
    return [language for language in sorted(points, key=lambda name: (-points[name], name)) if points[language] > 0]
