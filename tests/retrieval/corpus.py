"""A small memory of one household and one workshop, and questions whose words do not stand in the answer."""

from __future__ import annotations

from typing import Final

DOCUMENTS: Final = {
    "/home/boiler.md": (
        "# Heating\n\nThe boiler was serviced in October by Mr Kern.\nPressure must stay between 1.5 and 2 bar.\n"
    ),
    "/home/wifi.txt": "Router sits behind the bookshelf.\nWhen the internet drops, hold the black button for ten seconds.\n",
    "/home/cat.md": (
        "# Miso\n\nOur cat is afraid of the vacuum cleaner.\nShe gets half a tin of tuna every evening.\nVet: Dr Lind.\n"
    ),
    "/home/bread.md": "# Loaf\n\n- 500 g rye flour\n- a spoon of starter\n- let it rise overnight, then bake at 230 degrees\n",
    "/home/garden.md": (
        "Tomatoes got blight in August.\nNext year plant them under the roof edge.\nRoses are pruned in March.\n"
    ),
    "/home/bicycle.txt": "Rear brake squeaks in rain.\nChain was replaced at 4,000 km.\nTyre pressure 4 bar.\n",
    "/home/neighbours.md": (
        "Frau Huber waters the plants while we are away.\nThe family upstairs practises the piano until nine.\n"
    ),
    "/home/insurance.md": "# Contents policy\n\nCovers theft and water damage up to 60,000.\nThe excess is 300 a claim.\n",
    "/home/keys.txt": "Spare key: with Frau Huber.\nCellar key hangs inside the wardrobe.\n",
    "/health/teeth.md": "Dentist said the wisdom tooth has to come out in spring.\nFloss more.\n",
    "/health/running.md": "Ran eleven kilometres along the canal.\nLeft knee hurts after eight.\nNew shoes ordered.\n",
    "/health/sleep.txt": "No coffee after three in the afternoon.\nBedroom at eighteen degrees works best.\n",
    "/travel/lisbon.md": (
        "# Lisbon\n\nTram 28 is full before nine.\nThe custard tarts near the monastery are worth the queue.\n"
    ),
    "/travel/packing.md": "Plug adapter, rain jacket, passport copy.\nMedicine goes into the hand luggage.\n",
    "/travel/night-train.txt": "Sleeper from Vienna to Rome leaves at 19:18.\nThe lower berth is quieter.\n",
    "/work/refunds.md": (
        "# Paying back\n\nCustomers have thirty days to return goods.\nMoney arrives within five working days.\n"
    ),
    "/work/incident.md": "# 3 May\n\n02:11 the certificate expired and the shop went down.\nRenewal is automatic since then.\n",
    "/work/hiring.md": "We look for someone who can weld and is not afraid of heights.\nInterviews start in June.\n",
    "/work/suppliers.csv": "name,city,part\nOkano,Nagoya,ball bearings\nFerro,Turin,steel plate\nLumen,Lyon,lamps\n",
    "/work/prices.md": "The small lathe costs 4,200.\nWe give schools twenty percent off.\n",
    "/work/safety.md": "Goggles are worn at the grinder, always.\nNobody works alone after six.\n",
    "/work/backup.sh": (
        "#!/bin/sh\n# copy all drawings to the second disk every night\nrsync -a --delete /drawings /mnt/second\n"
    ),
    "/work/limits.py": "class Limiter:\n    def allow(self, caller):\n        return self.count(caller) < self.per_minute\n",
    "/work/minutes.txt": (
        "Ana: The new paint shop opens in autumn.\nBo: Who pays for the ventilation?\n"
        "Ana: The landlord, he signed it.\nBo: Then let us order the fans.\n"
    ),
    "/work/mail.eml": (
        "From: Eva Roth <eva@example.org>\nTo: shop@example.org\nSubject: Wrong colour\n"
        "Date: Mon, 2 Jun 2025 10:00:00 +0200\n\n"
        "Hello,\n\nthe cabinet came in green, we had asked for blue.\nPlease exchange it.\n"
    ),
    "/work/deploy.yaml": "service: shop\nreplicas: 3\nregion: europe-west\n",
    "/music/violin.md": "The E string broke twice this month.\nPractise the slow movement with a metronome.\n",
    "/music/choir.txt": "Rehearsal moved to Thursday.\nAltos are too quiet in bar forty.\n",
    "/kids/school.md": "Parents' evening is on the twelfth.\nLena needs a calculator for maths.\n",
    "/kids/birthday.md": "Seven guests, a treasure hunt, no nuts in the cake because Tim is allergic.\n",
    "/kids/reading.txt": "She loves the book about the whale.\nThe dragon one gave her bad dreams.\n",
    "/money/tax.md": "Receipts for the home office are in the blue folder.\nThe return is due at the end of July.\n",
    "/money/loan.md": "The mortgage is fixed at 1.9 percent until 2031.\nOne extra payment a year is allowed.\n",
    "/de/müll.md": "Biotonne am Montag, Papier jeden zweiten Freitag.\n",
    "/ja/駅.txt": "駅前の本屋は日曜日が休みです。\n",
}

QUESTIONS: Final = {
    "how do I fix a broken network connection": ("/home/wifi.txt", "black button"),
    "what is our pet scared of": ("/home/cat.md", "vacuum cleaner"),
    "recipe with sourdough": ("/home/bread.md", "starter"),
    "tax declaration deadline": ("/money/tax.md", "end of July"),
    "when do clients get reimbursed": ("/work/refunds.md", "days"),
    "why was the website offline": ("/work/incident.md", "certificate"),
    "eye protection in the workshop": ("/work/safety.md", "Goggles"),
    "home loan interest rate": ("/money/loan.md", "1.9 percent"),
    "discount for education": ("/work/prices.md", "twenty percent"),
    "rate throttling of requests": ("/work/limits.py", "allow"),
    "who finances the airflow system": ("/work/minutes.txt", "landlord"),
    "food intolerance at the party": ("/kids/birthday.md", "allergic"),
    "overnight railway to Italy": ("/travel/night-train.txt", "Vienna to Rome"),
    "joint pain while jogging": ("/health/running.md", "knee"),
    "scary story gave child nightmares": ("/kids/reading.txt", "bad dreams"),
}

NONSENSE: Final = ("qwzx vbnm plork", "quantum chromodynamics lattice gauge", "medieval siege weapons of the Normans")

UNRELATED: Final = (
    "when was the battle of Waterloo fought",
    "what is the capital of Mongolia",
    "who painted the ceiling of the Sistine chapel",
    "names of the moons of Jupiter",
    "history of the Ottoman navy",
    "best opening against the Sicilian defence",
    "what does a subpoena mean",
    "how long does a visa for Brazil take",
    "how to register a trademark in Canada",
    "difference between alligators and crocodiles",
    "rules of offside in football",
    "what causes northern lights",
    "learning to ride a unicycle",
    "who won the Eurovision contest in 1974",
    "origin of the surname Kowalski",
    "what is a balanced budget amendment",
    "how do vaccines create immunity",
    "where do monarch butterflies spend the winter",
    "does lattice gauge theory predict quark masses",
    "similarity laws of aeroelastic models",
)
