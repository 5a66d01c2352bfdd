"""What the generated corpus says and asks: statements and questions about one subject and one value, in two halves.

Templates of the half `fit` may be looked at when something is tuned; those of the half `held` share no wording with them and
are for reporting. `{s}` is the subject, `{v}` the value.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

HALVES: Final = ("fit", "held")
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_MONTHS: Final = ("January", "February", "March", "April", "May", "June", "July", "September", "October", "November")
_PEOPLE: Final = (
    *("Dr. Okafor", "Ingrid Solheim", "Mr. Tanaka", "Prof. Lindqvist", "Marta Ruiz", "Ms. O'Connell", "Pavel Novák"),
    *("Aisha Rahman", "Jean-Luc Moreau", "St. John Rivers", "Beatriz Gomes", "Tom Harris Jr.", "Yuki Mori", "Lt. Varga"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """Something a subject has. `said` and `asked` hold the templates of both halves; `label` names it in tables and keys."""

    label: str
    said: tuple[Sequence[str], Sequence[str]]
    asked: tuple[Sequence[str], Sequence[str]]
    value: Callable[[random.Random], str]


def _code(rng: random.Random) -> str:
    return f"{rng.randrange(1000, 9999)}"


def _price(rng: random.Random) -> str:
    return f"{rng.randrange(12, 980)} euros"


def _day(rng: random.Random) -> str:
    return f"{rng.randrange(1, 29)} {rng.choice(_MONTHS)}"


def _hour(rng: random.Random) -> str:
    return f"{rng.randrange(6, 22)}:{rng.choice(('05', '15', '20', '40', '50'))}"


def _person(rng: random.Random) -> str:
    return rng.choice(_PEOPLE)


def _number(unit: str, low: int, high: int) -> Callable[[random.Random], str]:
    return lambda rng: f"{rng.randrange(low, high)} {unit}"


ENGLISH: Final = (
    Attribute(
        label="door code",
        said=(
            ("The door code of the {s} is {v}.", "To get into the {s}, type {v} and press the green key."),
            ("You open the {s} by entering {v} on the keypad.", "Keypad of the {s}: {v}, changed last spring."),
        ),
        asked=(
            ("what is the door code of the {s}", "code to get into the {s}"),
            ("which number opens the {s}", "{s} keypad"),
        ),
        value=_code,
    ),
    Attribute(
        label="rent",
        said=(
            ("Renting the {s} for a day costs {v}.", "For the {s} we pay {v} a month, heating not included."),
            ("The owner now wants {v} for the {s}.", "The {s} was let for {v} last year, and the price stays."),
        ),
        asked=(
            ("how much does renting the {s} cost", "what do we pay for the {s}"),
            ("price of the {s}", "how much money does the owner of the {s} want"),
        ),
        value=_price,
    ),
    Attribute(
        label="contact",
        said=(
            ("{v} looks after the {s} and has the spare key.", "Questions about the {s} go to {v}."),
            ("If something breaks in the {s}, call {v} first.", "Since the summer {v} has been in charge of the {s}."),
        ),
        asked=(
            ("who looks after the {s}", "whom to ask about the {s}"),
            ("who is in charge of the {s}", "who should be called when the {s} has a problem"),
        ),
        value=_person,
    ),
    Attribute(
        label="inspection",
        said=(
            ("The {s} is inspected on {v}.", "The next inspection of the {s} was moved to {v} because of the storm."),
            ("On {v} the surveyor comes to see the {s}.", "The survey of the {s} had to be put off until {v}."),
        ),
        asked=(
            ("when is the {s} inspected", "date of the next inspection of the {s}"),
            ("when does the surveyor come to the {s}", "{s} survey date"),
        ),
        value=_day,
    ),
    Attribute(
        label="opening time",
        said=(
            ("The {s} opens at {v} on working days.", "Nobody can use the {s} before {v}, the alarm is on until then."),
            ("From {v} on the {s} is unlocked for everybody.", "Deliveries to the {s} are accepted from {v}."),
        ),
        asked=(
            ("at what time does the {s} open", "how early can one use the {s}"),
            ("since what time of day is the {s} unlocked", "earliest delivery at the {s}"),
        ),
        value=_hour,
    ),
    Attribute(
        label="capacity",
        said=(
            ("The {s} holds {v}, which the fire brigade confirmed in writing.", "At most {v} fit into the {s}."),
            ("There is room for {v} in the {s}.", "The fire brigade allows {v} in the {s} and not one more."),
        ),
        asked=(
            ("how many people fit into the {s}", "capacity of the {s}"),
            ("how many does the fire brigade allow in the {s}", "room in the {s} for how many"),
        ),
        value=_number("people", 12, 480),
    ),
    Attribute(
        label="temperature",
        said=(
            ("Keep the {s} at {v} all winter.", "The thermostat in the {s} is set to {v}."),
            ("It must never get colder than {v} in the {s}.", "The heating engineer advises {v} for the {s}."),
        ),
        asked=(
            ("to how many degrees is the thermostat of the {s} set", "winter temperature of the {s}"),
            ("how warm should the {s} be", "lowest temperature in the {s}"),
        ),
        value=_number("degrees", 6, 24),
    ),
)


def _foreign(label: str, said: str, asked: str, value: Callable[[random.Random], str]) -> Attribute:
    """`said` and `asked`: templates parted by `|`, the first half of them to fit."""
    halves = []
    for text in (said, asked):
        parts = text.split(" | ")
        middle = len(parts) // 2
        halves.append((tuple(parts[:middle]), tuple(parts[middle:])))
    return Attribute(label=label, said=halves[0], asked=halves[1], value=value)


LANGUAGES: Final = {
    "german": (
        _foreign(
            "Kosten",
            "Die Miete für {s} beträgt {v} im Monat. | Für {s} verlangt der Besitzer jetzt {v}.",
            "wie hoch ist die Miete für {s} | welchen Preis verlangt der Besitzer von {s}",
            _number("Euro", 12, 980),
        ),
        _foreign(
            "Plätze",
            "In {s} passen höchstens {v}, so steht es im Vertrag. | Die Feuerwehr erlaubt {v} in {s}.",
            "wie viele Leute passen in {s} | wie viele erlaubt die Feuerwehr in {s}",
            _number("Personen", 12, 480),
        ),
    ),
    "french": (
        _foreign(
            "loyer",
            "Le loyer de {s} est de {v} par mois. | Le propriétaire demande maintenant {v} pour {s}.",
            "quel est le loyer de {s} | combien le propriétaire demande pour {s}",
            _number("euros", 12, 980),
        ),
        _foreign(
            "places",
            "Au plus {v} peuvent entrer dans {s}. | Les pompiers autorisent {v} dans {s}, pas davantage.",
            "combien de personnes peuvent entrer dans {s} | combien les pompiers autorisent dans {s}",
            _number("personnes", 12, 480),
        ),
    ),
    "spanish": (
        _foreign(
            "alquiler",
            "El alquiler de {s} cuesta {v} al mes. | El dueño pide ahora {v} por {s}.",
            "cuánto cuesta el alquiler de {s} | qué precio pide el dueño de {s}",
            _number("euros", 12, 980),
        ),
        _foreign(
            "aforo",
            "En {s} caben como mucho {v}. | Los bomberos permiten {v} en {s} y ni una más.",
            "cuántas personas caben en {s} | cuántas permiten los bomberos en {s}",
            _number("personas", 12, 480),
        ),
    ),
    "dutch": (
        _foreign(
            "huur",
            "De huur van {s} is {v} per maand. | De eigenaar vraagt nu {v} voor {s}.",
            "hoe hoog is de huur van {s} | hoeveel vraagt de eigenaar voor {s}",
            _number("euro", 12, 980),
        ),
        _foreign(
            "plaatsen",
            "In {s} passen hoogstens {v}. | De brandweer staat {v} toe in {s}.",
            "hoeveel mensen passen in {s} | hoeveel staat de brandweer toe in {s}",
            _number("mensen", 12, 480),
        ),
    ),
    "russian": (
        _foreign(
            "аренда",
            "Аренда помещения {s} стоит {v} в месяц. | Хозяин теперь просит {v} за {s}.",
            "сколько стоит аренда помещения {s} | сколько просит хозяин за {s}",
            _number("рублей", 12_000, 98_000),
        ),
    ),
    "japanese": (
        _foreign(
            "家賃",
            "{s}の家賃は月に{v}です。 | 大家さんは{s}に{v}を求めています。",
            "{s}の家賃はいくらですか | 大家さんは{s}にいくら求めていますか",
            _number("円", 12_000, 98_000),
        ),
    ),
}

_ADJECTIVES: Final = (
    *("north", "south", "upper", "lower", "old", "new", "red", "green", "stone", "timber", "harbour", "village", "river"),
    *("mountain", "island", "school", "abbey", "station", "market", "garden"),
)
_NOUNS: Final = (
    *("boathouse", "archive", "workshop", "bakery", "chapel", "greenhouse", "library", "laundry", "cellar", "studio", "barn"),
    *("observatory", "clubroom", "kiln", "sauna", "mill", "smithy", "stable", "darkroom", "granary", "dairy", "pavilion"),
)
_PROPER: Final = (
    *("Nordlys", "Kastor", "Belvedere", "Amalia", "Tivoli", "Zenith", "Orfeo", "Lumina", "Calypso", "Meridian", "Astra"),
    *("Fenix", "Halcyon", "Vesta", "Corona", "Delphi", "Pegasus", "Aurora", "Sirius", "Elysium", "Atlas", "Odeon"),
)

FILLER: Final = (
    "The meeting began late because of the rain and ended without a vote.",
    "We walked along the shore afterwards and talked about the children.",
    "Coffee was better than last time, thanks to the new machine.",
    "The minutes of the last session were accepted without changes.",
    "Several members asked for shorter agendas and fewer slides.",
    "There was a long discussion about the colour of the posters.",
    "The ferry was full, so some of us had to take the bus home.",
    "Nobody remembers who planted the row of poplars by the road.",
    "A reporter from the local paper took pictures of the roof.",
    "The choir rehearsed next door, which made it hard to listen.",
)
FILLERS: Final = {
    "german": ("Das Wetter war die ganze Woche schlecht.", "Danach gingen wir am Ufer entlang nach Hause."),
    "french": ("Il a plu toute la semaine.", "Ensuite nous sommes rentrés le long de la rive."),
    "spanish": ("Llovió toda la semana.", "Después volvimos a casa por la orilla."),
    "dutch": ("Het regende de hele week.", "Daarna liepen we langs de oever naar huis."),
    "russian": ("Всю неделю шёл дождь.", "Потом мы пошли домой по берегу."),
    "japanese": ("一週間ずっと雨でした。", "そのあと岸に沿って歩いて帰りました。"),
}


def subjects() -> list[str]:
    """Things in English, such as "north boathouse": many share a word, so that one word does not find them."""
    return [f"{adjective} {noun}" for noun in _NOUNS for adjective in _ADJECTIVES]


def proper_names() -> list[str]:
    """Names that need no article and no case."""
    return [f"{first} {number}" for number in range(1, 20) for first in _PROPER]
