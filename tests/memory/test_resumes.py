"""A curriculum vitae tells who the user is, and ends like other facts."""

from __future__ import annotations

import pytest

from memdir.memory.extract import extract
from memdir.memory.file_names import is_about_user, is_resume
from memdir.memory.own_name import names_in
from tests.memory.test_endings import latest

BRANDT = """\
# Helena Brandt
Senior Data Engineer · Hamburg · helena.brandt@example.org · +49 40 1234567

## Experience
**Senior Data Engineer, Otto Logistics** (2022 – present)
- Lead a team of four
**Data Engineer, Blau Versicherung** (2018 – 2022)

## Education
M.Sc. Computer Science, Universität Bremen, 2018

## Skills
Python, SQL, dbt, Dagster, Kafka
"""
SOLBERG = """\
MARIT SOLBERG
Oslo, Norway

EXPERIENCE

Head of Finance, Fjordkraft AS                      2020 - present
Controller, Telenor                                 2014 - 2020

EDUCATION

MSc Accounting and Auditing, NHH Bergen             2009 - 2011

LANGUAGES
Norwegian, English, German
"""
OF_PDF = """\
---
source: "cv.pdf"
kind: "pdf"
media_type: "application/pdf"
engine: "pypdfium2 5.15.2"
title: "untitled"
language: "en"
author: "anonymous"
pages: 1
---

## Page 1

"""
HERRERA = """\
# Tomás Herrera — Curriculum Vitae

## Work Experience

### Product Designer — Nubeo
*March 2021 – Present | Valencia*

- Run the design critique every Thursday

### UX Designer — Indra
*Sept 2016 – Feb 2021 | Madrid*
"""
NAIR = """\
PRIYA NAIR
Bengaluru · priya@nair.example

EXPERIENCE
Razorpay, Bengaluru — Staff Engineer (Jan 2021–now)
• Own the ledger service
Flipkart, Bengaluru — Software Engineer (2016–2020)
"""
REUTER = """\
# Lebenslauf

**Name:** Jonas Reuter

## Berufserfahrung

**seit 04/2019** Bauingenieur, Ingenieurbüro Kröger, Leipzig
**09/2016 – 03/2019** Bauleiter, Strabag AG, Dresden

## Ausbildung

**2010 – 2016** Bauingenieurwesen (Dipl.-Ing.), TU Dresden

## Kenntnisse

AutoCAD, BIM, Führerschein B
"""
HALVORSEN = """\
# Resume

**Ingrid Halvorsen**
Trondheim, Norway | ingrid.h@example.no

## Experience
- **Senior Researcher**, NTNU, Trondheim (08/2019 to present)
  - Leads the kelp restoration project
- **Research Assistant**, University of Bergen (2015 to 2019)

## Education
**PhD in Marine Ecology**
University of Bergen, 2015–2019
"""
FOURNIER = """\
# Léa Fournier
Ingénieure logiciel · Lyon · lea.fournier@example.fr

## Expérience professionnelle
### Ingénieure backend, Doctolib (depuis mars 2021)
### Développeuse, Capgemini (2017–2021)

## Langues
Français (langue maternelle), anglais (C1)
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "cv.md",
            BRANDT,
            {
                "Name: Helena Brandt",
                "E-mail: helena.brandt@example.org",
                "Location: Hamburg",
                "Job: Senior Data Engineer at Otto Logistics (2022 – present)",
                "Lead a team of four",
                "Former job: Data Engineer at Blau Versicherung (2018 – 2022)",
                "Education: M.Sc. Computer Science, Universität Bremen, 2018",
                "Skills: Python, SQL, dbt, Dagster, Kafka",
            },
        ),
        (
            "Resume 2026.txt",
            SOLBERG,
            {
                "Name: Marit Solberg",
                "Location: Oslo, Norway",
                "Job: Head of Finance at Fjordkraft AS (2020 - present)",
                "Former job: Controller at Telenor (2014 - 2020)",
                "Education: MSc Accounting and Auditing, NHH Bergen (2009 - 2011)",
                "Languages: Norwegian, English, German",
            },
        ),
        (
            "cv.pdf",
            OF_PDF + SOLBERG,
            {
                "Name: Marit Solberg",
                "Location: Oslo, Norway",
                "Job: Head of Finance at Fjordkraft AS (2020 - present)",
            },
        ),
        (
            "cv-en.md",
            HERRERA,
            {
                "Name: Tomás Herrera",
                "Job: Product Designer at Nubeo (March 2021 – Present)",
                "Run the design critique every Thursday",
                "Former job: UX Designer at Indra (Sept 2016 – Feb 2021)",
            },
        ),
        (
            "resume.md",
            NAIR,
            {
                "Name: Priya Nair",
                "Job: Staff Engineer at Razorpay, Bengaluru (Jan 2021–now)",
                "Own the ledger service",
                "Former job: Software Engineer at Flipkart, Bengaluru (2016–2020)",
            },
        ),
        (
            "lebenslauf.md",
            REUTER,
            {
                "Name: Jonas Reuter",
                "Job: Bauingenieur at Ingenieurbüro Kröger, Leipzig (seit 04/2019)",
                "Former job: Bauleiter at Strabag AG, Dresden (09/2016 – 03/2019)",
                "Education: Bauingenieurwesen (Dipl.-Ing.), TU Dresden (2010 – 2016)",
                "Kenntnisse: AutoCAD, BIM, Führerschein B",
            },
        ),
        (
            "CV.md",
            HALVORSEN,
            {
                "Name: Ingrid Halvorsen",
                "Job: Senior Researcher at NTNU, Trondheim (08/2019 to present)",
                "Leads the kelp restoration project",
                "Former job: Research Assistant at University of Bergen (2015 to 2019)",
                "Education: PhD in Marine Ecology, University of Bergen (2015–2019)",
            },
        ),
        (
            "cv.md",
            FOURNIER,
            {
                "Name: Léa Fournier",
                "Job: Ingénieure backend at Doctolib (depuis mars 2021)",
                "Former job: Développeuse at Capgemini (2017–2021)",
                "Langues: Français (langue maternelle), anglais (C1)",
            },
        ),
    ],
)
def test_who_works_where_and_learnt_what(name: str, text: str, expected: set[str]) -> None:
    found = extract(text, f"/memory/{name}", byte_at=int)
    assert expected <= {one.text for one in found}
    assert {one.subject for one in found} == {"user"}
    assert not {"EXPERIENCE", "EDUCATION", "LANGUAGES"} & {one.text for one in found}
    lines = text.splitlines()
    job = next(one for one in found if one.text.startswith("Job: "))
    assert job.text.split(" at ")[1].split(" (")[0].split(",")[0] in "\n".join(lines[job.start_line - 1 : job.end_line])


def test_the_user_is_called_as_their_curriculum_vitae_says() -> None:
    found = extract(BRANDT, "/memory/cv.md", byte_at=int)
    assert "helena" in {name for one in found for name in names_in(one, is_own=is_about_user("/memory/cv.md"))}


@pytest.mark.parametrize(
    "path",
    ["people/helena/cv.md", "candidates/Helena/cv.md", "Helena CV.md", "applicants/Helena_Lebenslauf_2026.md", "cv-helena.md"],
)
def test_the_curriculum_vitae_of_somebody_else_is_theirs(path: str) -> None:
    found = extract(BRANDT, f"/memory/{path}", byte_at=int)
    assert "Helena – Job: Senior Data Engineer at Otto Logistics (2022 – present)" in {one.text for one in found}
    assert {one.subject for one in found} == {"helena"}
    assert not {name for one in found for name in names_in(one, is_own=is_about_user(f"/memory/{path}"))}


@pytest.mark.parametrize("path", ["/memory/resume work on alpha.md", "/memory/cover letter.md", "/memory/cv-template.md"])
def test_what_is_called_alike_is_none(path: str) -> None:
    assert not is_resume(path)


@pytest.mark.parametrize("later", ["I left Otto Logistics.", "I work at Siemens now.", "I quit my job."])
def test_a_job_ends_and_the_former_one_stays_what_it_was(later: str) -> None:
    job = "Job: Senior Data Engineer at Otto Logistics (2022 – present)"
    former = "Former job: Data Engineer at Blau Versicherung (2018 – 2022)"
    left = latest(job, former, later)
    assert job not in left
    assert former in left


@pytest.mark.parametrize("name", ["2026-11-20 cv.md", "cv", "my-resume.md"])
def test_the_users_own_has_a_day_in_its_name_or_no_suffix(name: str) -> None:
    assert is_about_user(f"/memory/{name}")
    assert {one.subject for one in extract(BRANDT, f"/memory/{name}", byte_at=int)} == {"user"}


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("Curriculum vitae\nPERSONAL INFORMATION Katie Smith\n12 Strawberry Hill, Dublin 8\n", ["Name: Katie Smith"]),
        ("Europass\nCurriculum Vitae\nPersonal information\n", []),
        ("Europass\nUpdated\nHome Address\n", []),
        ("LEBENSLAUF\nZur Person\nJonas Reuter\n", ["Name: Jonas Reuter"]),
    ],
)
def test_what_heads_the_page_is_no_name(head: str, names: list[str]) -> None:
    text = f"{head}\nWORKING EXPERIENCE\nAugust 2002 – Present Independent consultant\n"
    found = [one.text for one in extract(text, "/memory/cv.txt", byte_at=int)]
    assert [one for one in found if one.startswith("Name: ")] == names
    assert "Job: Independent consultant (August 2002 – Present)" in found
