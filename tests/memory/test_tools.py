"""Who has another tool of a kind now: the fact that tells of the former one is over, and of nothing else."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from memdir.memory.claims import claim_of
from memdir.memory.tools import is_replaced, switches, tools_of

from .test_endings import latest

FACTS = (
    "My editor is Vim.", "I use Firefox.", "My laptop runs Debian.", "We chat on Slack.", "We use Zoom for calls.",
    "Tasks are in Jira.", "Our CI runs on Jenkins.", "We host on AWS.", "The backend uses PostgreSQL.", "We use npm.",
    "We test with pytest.",
    "The service is written in Python.",
    "We deploy on Kubernetes.", "The API is REST.", "I drink coffee.",
)  # fmt: skip


@pytest.mark.promise("facts.endings")
@pytest.mark.parametrize(
    ("fact", "later"),
    [
        ("My editor is Vim.", "I've switched to Helix and I'm not looking back."),
        ("My editor is Vim.", "Helix, no: VS Code is my editor now."),
        ("We use Slack for team chat.", "The company moved everybody to Teams."),
        ("Our CI runs on Travis.", "Migrated CI to GitHub Actions."),
        ("Mein Editor ist Vim.", "Bin auf Helix umgestiegen, mein Editor ist jetzt Helix."),
        ("Mi navegador es Chrome.", "Ahora uso Firefox."),
        ("Nous utilisons Slack.", "On est passés à Mattermost."),
    ],
)
def test_who_has_another_one_now_has_the_former_no_more(fact: str, later: str) -> None:
    assert fact in latest(fact)
    assert fact not in latest(fact, later)


@pytest.mark.promise("facts.endings")
@pytest.mark.parametrize(
    ("fact", "later"),
    [
        ("My editor is Vim.", "Priya switched to Helix."),
        ("My sister uses Slack.", "We're on Mattermost now."),
        ("My editor is Vim.", "Thinking about switching to Helix."),
        ("The backend uses MySQL.", "The analytics pipeline moved to Postgres."),
        ("I use Firefox and Chrome.", "I use Safari now."),
        ("I want to learn Rust.", "The service was rewritten in Go."),
        ("I work at GitHub.", "All repos moved to GitLab."),
        ("We use Google Meet for calls.", "I'm on Zoom now, call you later."),
        ("I drink tea.", "Went for coffee."),
        ("The site runs on Django.", "Spring is here now."),
    ],
)
def test_of_others_of_one_time_and_of_another_use_nothing_is_over(fact: str, later: str) -> None:
    assert fact in latest(fact, later)


def test_a_tool_is_no_place_and_a_word_at_the_beginning_of_a_sentence_is_no_tool() -> None:
    assert claim_of("Ana moved to Helix.") is None
    assert claim_of("Ana moved to Lisbon.") is not None
    assert tools_of("Spring is here. Go now, edge closer.") == ()
    assert {one.kind for one in tools_of("We call on Teams")} == {"chat", "calls"}


def test_what_packages_tell_of_their_changes_ends_hardly_any_fact_of_a_person() -> None:
    """Changelogs and news of this machine's packages: they switch and migrate all the time, and not what somebody uses."""
    statements = []
    for path in sorted(Path("/usr/share/doc").glob("*/changelog*.gz"))[:400]:
        text = gzip.decompress(path.read_bytes())[:60_000].decode("utf-8", "replace")
        statements += [" ".join(one.split()) for one in re.split(r"(?<=[.!?])\s+|\n\s*\n|\n\s*[-*] ", text) if len(one) < 250]
    ended = [(one, fact) for one in statements for switch in switches(one) for fact in FACTS if is_replaced(fact, switch)]
    assert len(ended) <= len(statements) / 10_000 + 1, ended


def test_a_longer_name_is_not_told_as_the_shorter_one_in_it() -> None:
    names = {one.name for one in tools_of("The app is in React Native, the agent is Claude Code and CI is Travis CI.")}
    assert {"react native", "claude code", "travis ci"} <= names
    assert names.isdisjoint({"react", "claude", "travis"})
