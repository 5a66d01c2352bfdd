"""Stop words by language. English ones are always left out of a query; those of another language only when the query is in it.

One list for all would lose words: "war", "die", "hat" and "son" are stop words in one language and content in another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from memdir.store.text.words import fold

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
    "swedish": (
        "alla att av blev blir de dem den denna det detta dig din du där efter eller en er ett från för ha hade han har hon "
        "hur i icke inte jag kan man med men mig min mot mycket när någon något nu och om på samma sedan sig sin ska skulle "
        "som så till under upp ut utan vad var varför vem vi vid vilken vår är över "
    ),
    "danish": (
        "af alle at blev bliver da de dem den denne der det dette dig din dog du efter eller en er et for fra ham han har "
        "havde hende her hun hvad hvem hvis hvor hvornår i ikke ind jeg kan man med meget men mig min mod nogen noget nu når "
        "og også om op os på sig skal som så til ud under var ved vi vil være "
    ),
    "norwegian": (
        "alle at av ble blir da de deg dem den denne der det dette din du eller en er et etter for fra ha hadde han har "
        "hun hva hvem hvis hvor hvorfor hvordan i ikke jeg kan man med meg men min mot noe noen nå når og også om opp oss på "
        "seg skal som så til under ut var ved vi vil være "
    ),
    "finnish": (
        "ei en että hän he ja joka jos jotka kanssa kuin kun kuinka me mikä minä missä milloin miksi mitä mutta myös ne niin "
        "nyt ole oli olla on ovat se sen siitä sinä tai tämä te tuo vain vai "
    ),
    "polish": (
        "aby ale bez był była było być co czy dla do gdy gdzie go ich ja jak jako jakie jaki jego jej jest jeszcze już kiedy "
        "kto która które który lub ma mnie moja może my na nad nie nim o od oraz po pod przed przez przy się są ta tak tam te "
        "tego tej ten to tu tylko tym w we wszystko z za ze że "
    ),
    "czech": (
        "aby ale ani asi bez bude by byl byla bylo být co či do ho i ja jak jako je jeho její jen ještě jsem jsme jsou k "
        "kde kdo kdy když která které který mezi mi má na nad ne nebo než o od on pak po pod podle pro proč před při s se si "
        "ta tak také ten to tu tím u už v ve více z za ze že "
    ),
    "hungarian": (
        "a az azt azok csak de egy ez ezek ezt és ha hanem hogy hogyan hol ki kell le lesz meg mely mert mi mikor mint miért "
        "most már még nagyon ne nem nincs s se sem szerint van vannak vagy volt "
    ),
    "romanian": (
        "a acest această am ar are au ca care ce cine când cu cum de din după e ea ei el este eu fi fost fără în într la "
        "le lui mai mea meu nu o pe pentru prin sau se și sunt să spre te tot un una unde unei unui va "
    ),
    "turkish": (
        "ama ancak bana ben beni bir biz bu bunu çok çünkü da daha de değil diye gibi hangi her için ile ise kadar ki kim "
        "mi mı mu mü ne neden nerede ne nasıl o olan olarak oldu onu sen siz şu ve veya ya zaman "
    ),
    "catalan": (
        "al als amb aquest aquesta com de del dels el ella els en entre és et fins ha hi i jo la les li més meva no nosaltres "
        "o on pel per però perquè què quan que qui s sense ser seu si són també té un una uns va "
    ),
    "indonesian": (
        "ada adalah akan anda apa atau bagaimana bahwa bisa dalam dan dapat dari dengan di dia hanya harus ia ini itu juga "
        "kami kapan karena ke kita lebih mana mereka oleh pada saat saya sebagai sudah tidak untuk yang "
    ),
    "russian": (
        "а без более бы был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть же за и из или "
        "им их к как какая какие какой когда который кто ли мне мой мы на над не него нет но ну о об он она они от по под "
        "почему при с со так там то того тоже только ты у уже что чтобы это этот эта эти я "
    ),
    "ukrainian": (
        "а але без був була було бути в вже ви від він вона вони все де для до є з за й його її і із або як яка який які "
        "коли ми на не ні о під по при про та так те ти то тому у хто це цей ця чи що щоб я "
    ),
    "serbian": (
        "а али без би била био било да до за и из или иако је јер када као како ко која које који ли на не није о од он она "
        "по под са само се сам смо су та тај то у што шта "
    ),
    "greek": (
        "αλλά από αυτό αυτή για δεν εγώ είναι εκεί ένα έναν ενός η ή θα και κάτι μας με μετά μη μια μου να ο οι όταν ότι "
        "που πού πως πότε ποιος πριν σαν σε στα στη στην στο στον στους σου τα τη την της τι τις το τον του τους των ως "
    ),
    "arabic": (
        "أن أو إلا إلى إن الذي التي أين أنا أي بعد بين ثم حتى خلال عن عند على في قبل قد كان كانت كل كما كيف لا لم لن له لها "
        "ما متى مع من منذ هذا هذه هل هم هو هي و يا "
    ),
    "hindi": (
        "अपने और इस इसके उन उस एक ऐसे कब कर करना कहाँ का की के को कौन क्या क्यों तक तो था थी थे नहीं ने पर भी में यह ये "
        "वह वे से हम ही हूँ है हैं हो "
    ),
}

STOP_WORDS: Final = {language: frozenset(fold(text).split()) for language, text in _TEXTS.items()}
"""Folded, by language as Snowball names it (Ukrainian has no stemmer there)."""
ENGLISH: Final = STOP_WORDS["english"]


def stop_words_for(found: Iterable[str]) -> frozenset[str]:
    """The stop words that apply to a query of these folded words: English, and one other language with more matches (at
    least two) than English."""
    distinct = set(found)
    most, best = max(1, len(distinct & ENGLISH)), ENGLISH
    for language, candidates in STOP_WORDS.items():
        if language != "english" and len(distinct & candidates) > most:
            most, best = len(distinct & candidates), ENGLISH | candidates
    return best
