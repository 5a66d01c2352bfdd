"""Where somebody works or learns, as patterns of English. Pure."""

from __future__ import annotations

from typing import Final

from memdir.memory.claims_other_languages import NAME

EMPLOYER: Final = (
    rf"(?=(?:(?:{NAME}|[A-Z]{{2,}})\b(?! for (?:an? |the )?(?:\w+ )?(?:lunch|dinner|breakfast|coffee|drinks?|walk|run|"
    r"call|trip)\b)|"
    r"(?:an?|the|my|our|another) (?:[\w'’-]+ ){0,3}?(?:[A-Z]{2,}|company|firm|start-?up|agency|practice|hospital|clinic|"
    r"university|bank|studio|bakery|restaurant|lab|laboratory|institute|ministry|council|charity|NGO|police|army|navy)\b))"
)
"""Whom somebody joins to work there, and no gym, choir or friend."""
JOB: Final = (
    r"(?!(?:member|beginner|customer|speaker|player|teenager|newcomer|user|better|never|over|prisoner|learner|visitor)\b)"
    r"(?:[a-z]{2,}(?:er|or|eer|ist|ian|ant)|nurse|chef|cook|clerk|analyst|intern|lead|head|assistant|C[A-Z]O|VP|PM|SRE)"
)
"""What somebody is who works somewhere."""
NO_LESSON: Final = r"(?!(?:an?|the|my|our) (?:\w+ )?(?:gym|course|class|pool|club|beginning|start|top|bottom|age)\b|\d)"
SCHOOL: Final = (
    r"(?:\w+ grade|year \d+|school|kindergarten|nursery|pre-?school|high school|college|university|uni)\b|"
    r"(?:an?|her|his|their) (?:new )?(?:job|degree|course|apprenticeship|phd|internship)\b"
)
"""What somebody starts to learn at, or to do."""
A_PROFESSION: Final = (
    r"(?:now )?an? (?:[a-z-]+ ){0,2}?"
    r"(?:(?:head ?|music |maths |school |primary |yoga |driving )?teacher|nurse|doctor|dentist|surgeon|physician|paediatrician|"
    r"vet|veterinarian|midwife|pharmacist|paramedic|physio(?:therapist)?|psychologist|psychiatrist|therapist|optician|"
    r"lawyer|solicitor|barrister|notary|judge|accountant|economist|banker|architect|engineer|programmer|designer|scientist|"
    r"biologist|chemist|physicist|geologist|historian|mathematician|astronomer|professor|lecturer|librarian|journalist|"
    r"photographer|translator|novelist|poet|painter|sculptor|musician|pianist|violinist|cellist|singer|dancer|act(?:or|ress)|"
    r"chef|cook|baker|butcher|waiter|waitress|barista|bartender|brewer|winemaker|beekeeper|farmer|fisherman|gardener|florist|"
    r"plumber|electrician|carpenter|joiner|bricklayer|roofer|welder|mechanic|blacksmith|potter|jeweller|tailor|seamstress|"
    r"barber|hairdresser|firefighter|police(?:man|woman| officer)|soldier|pilot|sailor|flight attendant|"
    r"(?:bus|taxi|truck|lorry|tram|train) driver|postman|secretary|receptionist|cashier|estate agent|social worker|nanny|"
    r"childminder|carer|student|apprentice|trainee|widow(?:er)?|pensioner)\b"
)
"""What only a person is, behind "is"."""
