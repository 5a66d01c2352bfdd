"""A small memory written by hand and questions in other words than its own, both before any result was seen.

Generated memories ask in the words of their facts; this one asks as people do who do not remember them. `UNRELATED` is what it
and other memories have nothing about.
"""

from __future__ import annotations

from typing import Final

FILES: Final = {
    "/life/allotment.md": (
        "# Allotment\n\nPlot 17, water is turned on at Easter.\n"
        "Slugs ate every lettuce, so copper tape goes around the beds.\n"
        "Rhubarb can be pulled until the longest day.\n"
    ),
    "/life/boat.txt": (
        "The dinghy's outboard starts only with the choke fully out.\n"
        "Patch kit for the hull lies under the rear seat.\nMooring fee 240 for the season, paid to Piet.\n"
    ),
    "/life/budget.csv": "month,rent,food,other\njan,980,410,220\nfeb,980,388,640\nmar,980,402,175\n",
    "/life/wedding.md": (
        "# Clara and Jo\n\nNo speeches before the soup.\n"
        "The registrar wants both birth certificates in the original.\nRings are at the goldsmith until Thursday.\n"
    ),
    "/life/hamster.txt": (
        "Pixel sleeps all day and runs in the wheel at night.\nHe bit the neighbour's kid.\nBedding is changed on Sundays.\n"
    ),
    "/life/stove.md": (
        "Wood stove: open the lower flap for ten minutes, then close it halfway.\n"
        "The sweep found soot that was too wet, so only wood that lay for two years.\n"
    ),
    "/life/glasses.txt": (
        "Optician measured -2.75 left and -3.25 right.\nAnti-glare coating came off after a year, they replace it for free.\n"
    ),
    "/life/dad.md": (
        "Dad fell on the stairs again. He refuses the alarm button.\nThe care assessor comes on 8 May at ten.\n"
        "His pills are sorted for the week in the green box.\n"
    ),
    "/life/loft.md": (
        "Loft: the insulation is 14 cm of glass wool, the man from the energy agency wants 24.\n"
        "There is a grant of 15 % if a licensed firm does it.\n"
    ),
    "/life/quarrel.txt": (
        "Spoke with Beate about the fence. She thinks it stands 30 cm on her land.\nSurveyor costs 900, we split it.\n"
    ),
    "/life/driving.md": "Jonas passed theory with two mistakes.\nHis first practical hour ended in a ditch, nobody hurt.\n",
    "/life/allergy.md": (
        "Birch and hazel are bad from February.\nNose spray first, tablets only at night because they make me drowsy.\n"
    ),
    "/life/cheese.md": (
        "Second try at the mountain cheese: curd cut too coarse, wheel cracked at three weeks.\n"
        "Brine 20 %, cellar 12 degrees.\n"
    ),
    "/life/travel-georgia.md": (
        "# Georgia\n\nMarshrutka from Tbilisi to Kazbegi leaves when it is full.\n"
        "The guesthouse has one bathroom for all.\nBring cash, the cable car takes no cards.\n"
    ),
    "/life/chess.txt": (
        "Club evening is Wednesday. I lost twice in the endgame with rook and pawn.\nArno lends me his book on it.\n"
    ),
    "/life/moving.md": (
        "Van is booked for the 28th from 7:00.\n"
        "The sofa does not fit through the new door, it has to go over the balcony.\n"
        "Meter readings: gas 8841, power 20316.\n"
    ),
    "/work/clinic/triage.md": (
        "# Front desk\n\nChest pain goes straight to room 1, no forms first.\n"
        "Whoever calls about a prescription is rung back after two.\n"
    ),
    "/work/clinic/fridge.log": (
        "2026-04-02 06:10 vaccine fridge 9.4 C, door was ajar\n2026-04-02 06:40 vaccine fridge 5.1 C\n"
        "2026-04-02 07:00 lot 5521 thrown away\n"
    ),
    "/work/clinic/staff.md": "Dr Amsel is on leave until June, Dr Holm covers.\nThe new nurse speaks Farsi and Polish.\n",
    "/work/brewery/batch-31.md": (
        "Batch 31 stalled at 1.022.\nPitched fresh yeast and raised the cellar to 20.\nTastes of banana, nobody minds.\n"
    ),
    "/work/brewery/customs.eml": (
        "From: lager@zoll.example\nTo: office@brewery.example\nSubject: Duty on shipment 448\n"
        "Date: Tue, 3 Mar 2026 09:12:00 +0100\n\nDear Ms Kaya,\n\n"
        "the kegs are held until the excise form is signed.\nStorage is charged from the fourth day.\n"
    ),
    "/work/brewery/tap-room.md": (
        "Quiz night fills the house, live bands do not.\nClose the windows at ten, the dentist above complained twice.\n"
    ),
    "/work/school/excursion.md": (
        "Class 6b goes to the salt mine. Two parents come along.\n"
        "Sami uses a wheelchair: the mine has a lift only on weekdays.\n"
    ),
    "/work/school/grading.md": (
        "Essays count double. A late paper loses one mark a day, at most three.\nPlagiarism goes to the head, not to us.\n"
    ),
    "/work/school/conference.txt": (
        "Head: The heating fails in the gym every cold week.\n"
        "Ruth: Then we do sports in the hall of the fire brigade.\nHead: Ask them, and who pays the bus.\n"
        "Ruth: The booster club offered.\n"
    ),
    "/work/startup/incident-2026-03.md": (
        "# Outage 17 March\n\n11:02 checkout returned errors for everybody in Canada.\n"
        "11:30 found a tax table with an empty province.\n11:41 rolled back, orders came in again.\n"
    ),
    "/work/startup/hiring.md": (
        "We have money for two people until summer: one for mobile, one for talking to customers.\n"
        "No brain teasers in interviews.\n"
    ),
    "/work/startup/roadmap.md": "Now: offline mode. Next: sharing with people without an account.\nNever: ads.\n",
    "/work/startup/support.txt": (
        "Ticket 903: photos rotated sideways after upload from an iPhone.\n"
        "Ticket 911: wants her money back, renewed by mistake.\n"
        "Ticket 915: cannot log in since the new phone, code goes to the old number.\n"
    ),
    "/work/startup/pricing.md": "Nine euros a month, ninety a year. Charities pay half.\nThe free plan ends at 500 photos.\n",
    "/code/sync/merge.py": (
        "def merge(base, left, right):\n"
        '    """Both sides edited: keep left and put right beside it as a conflict copy."""\n'
        "    if left == right:\n        return left\n    return keep_both(left, right)\n"
    ),
    "/code/sync/upload.py": (
        'class Uploader:\n    """Sends files in parts of 8 MB and goes on where it stopped."""\n'
        "    def send(self, path):\n        for part in self.left(path):\n            self.put(part)\n"
    ),
    "/code/web/thumb.js": (
        "// shrink a picture in the browser before it is sent\nexport async function shrink(file, edge = 1600) {\n"
        "  const bitmap = await createImageBitmap(file)\n  return draw(bitmap, edge)\n}\n"
    ),
    "/code/web/session.ts": (
        "// a session ends after thirty minutes without a click\nconst IDLE_MS = 30 * 60 * 1000\n"
        "export const expired = (last: number) => Date.now() - last > IDLE_MS\n"
    ),
    "/code/ops/rotate.sh": (
        "#!/bin/bash\n# keep seven daily and four weekly dumps, remove the rest\n"
        "find /dumps -name '*.gz' | sort | prune --daily 7 --weekly 4\n"
    ),
    "/code/ops/alerts.yaml": (
        "- name: disk\n  when: free < 10%\n  tell: on-call\n- name: certificate\n  when: days_left < 14\n  tell: web-team\n"
    ),
    "/code/ml/train.md": (
        "Run 12: loss went to NaN at step 4,000 with learning rate 3e-3.\n"
        "Run 13: 1e-3 with warmup of 500 steps is stable, accuracy 91.4.\n"
    ),
    "/code/db/schema.sql": (
        "-- an invoice is never changed, only cancelled by another one\n"
        "CREATE TABLE invoice (id bigint primary key, cancels bigint references invoice, total numeric);\n"
    ),
    "/code/README.md": (
        "# Snapfold\n\nPut photos of all your devices into one place.\n`make dev` starts everything on port 4300.\n"
        "Node 22 and Python 3.12 are needed.\n"
    ),
    "/code/review.txt": (
        "Ana: this loop asks the server once per album, that is 400 requests on my account.\n"
        "Ben: I will fetch them together.\nAna: and please no magic 37 in there.\n"
    ),
}

QUESTIONS: Final = {
    "how do I keep snails away from the salad": "/life/allotment.md",
    "trick to get the motor of the small boat running": "/life/boat.txt",
    "which papers does the marriage office require": "/life/wedding.md",
    "rodent attacked a child": "/life/hamster.txt",
    "my eye prescription strength": "/life/glasses.txt",
    "elderly parent tumbled at home": "/life/dad.md",
    "subsidy for making the house warmer": "/life/loft.md",
    "dispute about the property boundary": "/life/quarrel.txt",
    "car accident during a lesson": "/life/driving.md",
    "hay fever medication": "/life/allergy.md",
    "dairy experiment that failed": "/life/cheese.md",
    "do they accept credit cards up on the mountain": "/life/travel-georgia.md",
    "furniture too large for the entrance": "/life/moving.md",
    "what fuel is dry enough to burn": "/life/stove.md",
    "patient with heart trouble arrives, what now": "/work/clinic/triage.md",
    "cold chain was broken and doses destroyed": "/work/clinic/fridge.log",
    "who speaks foreign languages among the employees": "/work/clinic/staff.md",
    "fermentation got stuck": "/work/brewery/batch-31.md",
    "alcohol tax problem with barrels": "/work/brewery/customs.eml",
    "noise complaint from upstairs": "/work/brewery/tap-room.md",
    "accessibility for a disabled pupil": "/work/school/excursion.md",
    "penalty for handing in homework after the deadline": "/work/school/grading.md",
    "cold sports hall": "/work/school/conference.txt",
    "why could nobody in Toronto buy anything": "/work/startup/incident-2026-03.md",
    "images appear turned the wrong way": "/work/startup/support.txt",
    "reduced rate for non-profit organisations": "/work/startup/pricing.md",
    "two people changed the same document": "/code/sync/merge.py",
    "resume an interrupted transfer": "/code/sync/upload.py",
    "automatic logout because of inactivity": "/code/web/session.ts",
    "training diverged": "/code/ml/train.md",
}
"""The file that answers."""

UNRELATED: Final = (
    "how do airplanes stay in the air",
    "the life of Frida Kahlo",
    "what is the boiling point of ethanol",
    "top ten beaches in the Philippines",
    "how to play the ukulele",
    "why did the Aztec empire fall",
    "translate good morning into Swahili",
    "what is a black hole",
    "how to lay parquet flooring",
    "who wrote Don Quixote",
    "how many bones does a shark have",
    "rules for a penalty shootout",
    "best telescope under 500 dollars",
    "how is porcelain made",
    "average rainfall in the Sahara",
    "symptoms of scurvy in sailors",
    "what is blockchain consensus",
    "how to trim a poodle",
    "the longest river in Asia",
    "origin of Halloween",
    "how to score a bowling game",
    "Mozart operas in German",
    "how to catch trout with a fly",
    "types of clouds and weather",
    "vue component props not reactive",
    "segmentation fault in linked list C",
    "docker compose network not found",
    "latex table too wide",
    "numpy broadcasting error shapes",
    "haskell monad transformer example",
    "presidential election results 1992",
    "how to become a flight attendant",
    "nutritional value of quinoa",
    "Viking ship construction",
    "what causes earthquakes",
    "how to meditate",
    "origami dragon instructions",
    "fashion trends of the sixties",
    "who discovered penicillin",
    "horse racing odds explained",
)
