# SPDX-License-Identifier: MIT
"""ARCHITECTURE.md and the design pages name folders and files that exist, and links lead somewhere."""
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 110
DESIGN = [ROOT / "ARCHITECTURE.md", ROOT / "STYLE.md", *sorted((ROOT / "docs/design").glob("*.md"))]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
PLACES = ["src", "include", "bench", "tools", "tests", "web/src", "docs"]
FILE_NAME = re.compile(r"[\w./-]+\.(?:c|h|ts|tsx|py|md)$")


def missing_files(text, paths):
    """The file names in backticks that no path ends with."""
    names = [name for name in re.findall(r"`([^`\n]+)`", text) if FILE_NAME.fullmatch(name)]
    return sorted({name for name in names if not any(f"/{path}".endswith(f"/{name}") for path in paths)})


def map_of(text):
    """{module: its subfolders} of the map: a line for each module; an indented line continues it."""
    modules = {}
    for line in text.split("```")[3].splitlines():
        first = re.match(r"src/(\S+)", line)
        if first or not line.startswith(" "):
            module = first.group(1) if first else None
        if module:
            folders = modules.setdefault(module, set())
            folders |= set(re.findall(r"(?<!\S)(\w+)/", line.replace(f"src/{module}", "", 1)))
    return modules


def layers():
    """The table of tools/check_layers.py in the same form."""
    spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools/check_layers.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return {name: set(module.folders.split()) - {"."} for name, module in tool.MODULES.items()}


def test_the_map_has_the_folders_of_the_table_of_layers():
    assert map_of((ROOT / "ARCHITECTURE.md").read_text()) == layers()


@pytest.mark.parametrize("page", DESIGN, ids=lambda page: page.name)
def test_pages_name_files_that_exist_and_have_short_lines(page):
    paths = [str(path) for place in PLACES for path in (ROOT / place).rglob("*.*")] + ["/README.md"]
    text = page.read_text()
    assert missing_files(text, paths) == []
    assert [line for line in text.splitlines() if len(line) > COLUMNS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_a_missing_file_is_found():
    assert missing_files("`walk/walk.c`, `gone.c`, `malloc`, `a b.c`", ["/src/walk/walk.c"]) == ["gone.c"]


def test_the_changelog_begins_with_the_version_of_the_project():
    (version,) = re.findall(r"^project\(cairn VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)
    first = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    assert re.fullmatch(re.escape(version) + r", \d{4}-\d\d-\d\d", first), first
    images = [line for path in (ROOT / "contrib").rglob("*.yaml") for line in path.read_text().splitlines() if "cairn:" in line and "image:" in line]
    assert len(images) == 2 and all(line.endswith(f"/cairn:{version}") for line in images), images
