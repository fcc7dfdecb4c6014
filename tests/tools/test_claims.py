# SPDX-License-Identifier: MIT
"""Each claim of the guides for production, attaching and budgets names the tests that show it, in claims.txt: a new
sentence in a new paragraph, or a test that is gone, is a failure. Whether the tests are the right ones, people judge."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLAIMS = (ROOT / "tests/tools/claims.txt").read_text()


def joined(lines):
    return " ".join(line.strip() for line in lines)


def parts_of(text):
    """The paragraphs, items, rows and blocks of code of a page, each as one line."""
    text = re.sub(r"```\w*\n(.*?)```", lambda code: re.sub(r"\n\s*\n", "\n", code[1]), text, flags=re.S)
    found = []
    for part in re.split(r"\n\s*\n", text):
        lines = [line for line in part.splitlines() if not line.startswith("#")]
        if lines and lines[0].startswith("|"):
            found += lines[2:]
        elif lines and lines[0].startswith("- "):
            found += [item for item in re.split(r"(?:^| )(?=- `?[A-Za-z-])", joined(lines)) if item]
        elif lines:
            found.append(joined(lines))
    return found


def read_claims(text):
    """{guide: [(beginnings, [(file, cases)])]}"""
    guides, beginnings, shown = {}, [], []
    for line in text.splitlines():
        if re.fullmatch(r"docs/\S+\.md", line):
            groups = guides.setdefault(line, [])
            beginnings, shown = [], []
        elif line.startswith("    "):
            if not shown:
                groups.append((beginnings, shown))
            shown.append((line.split()[0], line.split()[1:]))
        elif line and guides:  # comments come before the first guide
            if shown:
                beginnings, shown = [], []
            beginnings.append(line)
    return guides


def wrong_places(parts, groups):
    """What is not named once, and what is named and is not there."""
    names = [name for beginnings, _ in groups for name in beginnings]
    of_part = {part: [name for name in names if part.startswith(name)] for part in parts}
    wrong = [part for part, found in of_part.items() if len(found) != 1]
    return wrong + [name for name in names if sum(name in found for found in of_part.values()) != 1]


def missing_cases(groups):
    """The files and cases that do not exist."""
    missing = []
    for _, shown in groups:
        for name, cases in shown:
            if name == "make":
                missing += [case for case in cases if not re.search(rf"^{case}:", (ROOT / "Makefile").read_text(), re.M)]
                continue
            text = (ROOT / name).read_text() if (ROOT / name).exists() else None
            pattern = r"^static void {}\(void \*\*state\)" if name.endswith(".c") else r"^def test_{}\("
            missing += [name] if text is None else [case for case in cases if not re.search(pattern.format(case), text, re.M)]
    return missing


def test_each_claim_has_tests_that_exist():
    guides = read_claims(CLAIMS)
    assert list(guides) == [f"docs/user/{name}.md" for name in ("production", "containers", "store", "attach", "budgets")]
    for guide, groups in guides.items():
        assert wrong_places(parts_of((ROOT / guide).read_text()), groups) == [], guide
        assert missing_cases(groups) == [], guide


GUIDE = """# Title

First claim.
It goes on.

    cairn first

| head | head |
|---|---|
| row one | x |

- item one
  goes on
- item two
"""
NAMES = ["First claim.", "cairn first", "| row one", "- item one", "- item two"]


def test_what_is_left_out_or_wrong_is_noticed():
    parts = parts_of(GUIDE)
    assert wrong_places(parts, [(NAMES, [])]) == []
    for gone in NAMES:
        assert len(wrong_places(parts, [([name for name in NAMES if name != gone], [])])) == 1
    assert wrong_places(parts, [([*NAMES, "Another claim"], [])]) == ["Another claim"]
    assert set(wrong_places(parts, [([*NAMES, "First"], [])])) == {"First claim. It goes on."}
    shown = [("tests/tools/test_claims.py", ["each_claim_has_tests_that_exist", "nothing"]), ("tests/none.py", []),
             ("make", ["test", "none"]), ("src/store/retention_test.c", ["a_year_stays_in_its_bound", "a_month"])]
    assert missing_cases([(NAMES, shown)]) == ["nothing", "tests/none.py", "none", "a_month"]
