"""Guide files as projects write them."""

from __future__ import annotations

import pytest

from memdir.agents.capture.guides import rules_of


def told(markdown: str) -> list[str]:
    return [one.content for one in rules_of(markdown)]


def test_an_item_goes_on_over_lines_and_long_ones_are_told_by_their_first_sentences() -> None:
    assert told("- Tests use the fixtures of `conftest.py`,\n  never their own\n  copies.\n\nOther words.\n") == [
        "Tests use the fixtures of `conftest.py`, never their own copies."
    ]
    long = "- Log in with the token. " + "It is read from the file that the operator wrote before the start. " * 8
    assert told(long)[0].startswith("Log in with the token. It is read")
    assert len(told(long)[0]) <= 320


def test_emphasis_goes_and_code_stays() -> None:
    assert told("- **Never** edit `__init__.py` or `a ** b`; *always* keep __all__ and 2 ** 3.\n") == [
        "Never edit `__init__.py` or `a ** b`; always keep __all__ and 2 ** 3."
    ]
    assert told(
        "* See [the `pr` skill](.agents/pr.md) before a pull request\n- [home](a.md)\n- [GC](b.md), [re-entry](c.md)\n"
    ) == ["See the `pr` skill before a pull request."]
    assert told("- [ ] Wheels come from https://wheels.example.org only\n") == [
        "Wheels come from https://wheels.example.org only."
    ]


def test_items_are_told_with_the_words_above_them() -> None:
    assert told("Descriptions must include:\n\n- Why it is no duplicate.\n- Test commands\n") == [
        "Descriptions must include: Why it is no duplicate; Test commands."
    ]
    many = told(
        "Adding tests:\n" + "".join(f"- Reuse number {number}. Extend what is there already.\n" for number in range(12))
    )
    assert many[0] == "Adding tests: Reuse number 0. Extend what is there already."
    assert len(many) == 12
    assert told("- Retiring a parameter:\n  - Keep it working\n  - Emit a warning\n- Sort the imports by name\n") == [
        "Retiring a parameter: Keep it working; Emit a warning.",
        "Sort the imports by name.",
    ]


@pytest.mark.parametrize("heading", ["Pitfalls", "Anti-Patterns", "What NOT to do", "Common mistakes", "Don’t"])
def test_what_is_wrong_is_not_told_as_a_rule(heading: str) -> None:
    text = f"## A\n- Keep lines short enough\n## {heading}\n- Copies made for no reason\n## B\n- Name things after their use\n"
    assert told(text) == [
        "Keep lines short enough.",
        f"{heading}: Copies made for no reason.",
        "Name things after their use.",
    ]


def test_of_paragraphs_rules_are_told_and_nothing_of_code_tables_and_quotations() -> None:
    text = (
        "---\nname: x\n---\nThis library parses dates. Always run `make lint` before a commit. Is it so? Never ask them why!\n"
        "```sh\n- not an item of a list\nnever run this at all\n```\n  ~~~\n- nor this item here\n  ~~~\n"
        "| never | write this as a rule |\n> You must not read this\n<!-- - an item in a comment here\n-->\n"
        "Do NOT add an alias for settings:\n\n```python\nx\n```\n"
    )
    assert told(text) == [
        "Always run `make lint` before a commit.",
        "Never ask them why.",
        "Do NOT add an alias for settings.",
    ]


def test_the_same_rule_twice_is_told_once() -> None:
    assert told("- Never push to main\n\n# Again\n\n- Never push to main\n") == ["Never push to main."]
