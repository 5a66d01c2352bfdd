"""Stop words by language. English ones are always left out of a query; those of another language only when the query is in it.

One list for all would lose words: "war", "die", "hat" and "son" are stop words in one language and content in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memdir.store.words import fold

_TEXTS: Final = {
    "english": (
        "a about after all also am an and any anything are as at be because been before being but by can could did do "
        "does doing find for from get had has have having he her here hers him his how i if in into is it its itself "
        "just me more most my no nor not now of off on once only or other our ours out over own same she should show so "
        "some someone something such tell than that the their them then there these they this those through to too "
        "under until up us very was we were what when where which while who whom why will with would you your yours "
    ),
    "german": (
        "aber als am an auch auf aus bei bin bis da das dass dem den der des die dir doch du ein eine einem einen einer "
        "eines er es fur für haben hat hatte ich ihr im in ist ja kann man mein mich mir mit nach nicht noch nur ob "
        "oder ohne sein sich sie sind so uber um und uns unser unter vom von vor wann war warum was weil welche welcher "
        "wenn wer wie wir wird wo zu zum zur über "
    ),
    "french": (
        "au aux avec ce ces cette dans de des du elle en est et eu il ils je la le les leur lui mais me mes moi mon "
        "même ne nos notre nous on ou où par pas pour qu quand que quel quelle qui quoi sa se ses son sont sur ta te "
        "tes toi ton tu un une vos votre vous y "
    ),
    "dutch": (
        "aan als bij dan dat de die dit een en er had heb heeft het hij hoe ik in is je kan maar me met mijn naar niet "
        "nog of om onder ons ook op over te tot uit van veel voor wat we wel werd wie wij zal ze zijn zo zou "
    ),
    "spanish": (
        "al algo como con cual cuando de del desde donde e el ella en entre era es esa ese eso esta este esto ha hay la "
        "las lo los mas mi muy más nos o para pero por porque que quien qué se ser si sin sobre su sus también tu un "
        "una y ya "
    ),
    "portuguese": (
        "a ao aos as até com como da das de do dos e ela ele em entre era essa esse está eu foi há isso lhe mais mas me "
        "meu minha na nas nem no nos não nós o os ou para pela pelo por porque qual quando que quem se sem ser seu sua "
        "são só também te tem um uma você "
    ),
    "italian": (
        "a al alla anche che chi ci come con cosa da dal dalla dei del della delle di dove e gli ha ho i il in io la le "
        "lo ma mi nei nel nella non o per perché più quale quando quello questa questo se si sono su sua sul suo ti tra "
        "un una uno è "
    ),
}

_SETS: Final = {language: frozenset(fold(text).split()) for language, text in _TEXTS.items()}
ENGLISH: Final = _SETS["english"]


def stop_words_for(found: Iterable[str]) -> frozenset[str]:
    """The stop words that apply to a query of these folded words: English, and one other language with more matches (at
    least two) than English."""
    distinct = set(found)
    most, best = max(1, len(distinct & ENGLISH)), ENGLISH
    for language, candidates in _SETS.items():
        if language != "english" and len(distinct & candidates) > most:
            most, best = len(distinct & candidates), ENGLISH | candidates
    return best
