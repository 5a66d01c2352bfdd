"""What the generated memory of `hops_corpus` is about: people, troubles, plans, places, and lines between them."""

from __future__ import annotations

from typing import Final

FIRST_NAMES: Final = """
    Tomas Priya Ines Jonas Marta Kofi Leila Anders Yuki Bruno Carla Dmitri Elsa Farid Greta Hugo Irena Jamal Karin
    Luca Mira Nils Olga Pavel Quentin Rosa Stefan Tamar Ulrich Vera
"""
FIRST: Final = tuple(FIRST_NAMES.split())
LAST_NAMES: Final = """
    Lindqvist Raman Duarte Okafor Weiss Haddad Sorensen Tanaka Moretti Petrov Keller Nassar Brandt Ibarra Novak
    Fontaine Hughes Castellan Dvorak Egeland Farkas Gruber Halloran Iversen Jansen Kowalski Lemaire Mbeki Norling
    Oyelaran
"""
LAST: Final = tuple(LAST_NAMES.split())
MONTHS: Final = ("January", "February", "March", "April", "June", "July", "August", "September", "October", "November")
WORD_PARTS: Final = (
    "voucher",
    "ledger",
    "tariff",
    "batch",
    "quota",
    "parcel",
    "invoice",
    "shift",
    "meter",
    "token",
    "stock",
    "route",
)
FILLER: Final = (
    "The coffee machine on the second floor is being repaired.",
    "Please keep the corridor free on delivery days.",
    "Nothing else was decided today.",
    "We should tidy the shared drive before the end of the quarter.",
    "The weather made everybody late.",
    "Next time we start ten minutes earlier.",
    "A longer version of this is being written.",
    "The printer needs paper again.",
    "Lunch was at the usual place.",
    "The list of open points stays as it was.",
    "Somebody left an umbrella at the desk.",
    "The heating will be switched on next week.",
)

TROUBLES: Final = (
    "the stalled payments queue",
    "the leaking skylight in the studio",
    "the double billing of schools",
    "the frozen barcode scanners",
    "the lift that stopped between floors",
    "the wrong prices on the garden page",
    "the overheated battery cabinet",
    "the lost parcels in the northern depot",
    "the crash of the seating planner",
    "the mould in the cold store",
    "the broken turnstile at the pool",
    "the duplicate newsletters",
    "the false alarms in the greenhouse",
    "the missing pages in the yearbook",
    "the flooded bicycle cellar",
    "the scratched mirrors of the telescope",
    "the delayed ferry timetable",
    "the rusted anchors on the climbing wall",
    "the mislabelled vaccine boxes",
    "the silent intercom",
    "the cracked kiln",
    "the blocked drain behind the bakery",
    "the stuttering video wall",
    "the empty sugar silo",
)
PLANS: Final = (
    "the roof of the boathouse",
    "the new signage in the museum",
    "the catering for the summer school",
    "the piano transport",
    "the cleaning of the aquarium",
    "the fence along the orchard",
    "the audio guides",
    "the printing of the anniversary book",
    "the rental bicycles",
    "the stage lighting",
    "the archive shelves",
    "the solar panels on the barn",
    "the uniforms of the choir",
    "the snow clearing",
    "the translation of the handbook",
    "the lockers in the gym",
    "the laundry service of the hostel",
    "the pest control in the mill",
    "the elevator maintenance",
    "the firewood delivery",
    "the tents for the harvest fair",
    "the repair of the organ",
    "the water analysis",
    "the guards at the night market",
)
TRIPS: Final = (
    "Bergen",
    "Ljubljana",
    "Porto",
    "Tallinn",
    "Ghent",
    "Bologna",
    "Aarhus",
    "Graz",
    "Krakow",
    "Nantes",
    "Turku",
    "Basel",
    "Split",
    "Malmo",
    "Leipzig",
    "Valencia",
    "Cork",
    "Trieste",
    "Rouen",
    "Bruges",
    "Pecs",
    "Kaunas",
    "Girona",
    "Lucerne",
)
WORKS: Final = (
    "monitors the water of the canals",
    "prints tactile maps",
    "counts bats in church towers",
    "recycles theatre curtains",
    "teaches chess in prisons",
    "maps the hedges of the county",
    "restores tram cars",
    "grows mushrooms on coffee grounds",
    "measures noise at night",
    "lends tools to neighbours",
    "digitises herbarium sheets",
    "builds ramps for libraries",
    "trains rescue dogs",
    "paints murals on silos",
    "bottles juice from leftover fruit",
    "repairs hearing aids",
    "tracks swifts with small tags",
    "sews tents from sails",
    "archives regional dialects",
    "breeds old sorts of rye",
    "designs playgrounds for the blind",
    "surveys sunken boats",
    "brews vinegar",
    "films vanishing crafts",
)
GERMAN: Final = (
    "der Wasserschaden im Archiv",
    "die defekte Heizung im Turnsaal",
    "der Streit um die Garage",
    "das Loch im Zaun der Weide",
    "die verspätete Lieferung der Fenster",
    "der Ausfall der Kasse",
    "der Marder im Dachboden",
    "die kaputte Orgelpfeife",
    "der Einbruch im Bootshaus",
    "die falsche Stromrechnung",
    "das Leck im Öltank",
    "der Riss in der Stützmauer",
)
