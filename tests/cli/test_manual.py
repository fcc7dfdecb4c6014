# SPDX-License-Identifier: MIT
"""The manual: a page for each command, which describes the options that the command has."""
import re
import shutil
import subprocess

import pytest

from drawn import BUILD, ROOT, cairn

COMMANDS = ("record", "report", "diff", "check", "top", "analyze", "export", "store", "ctl", "symbolize", "cache",
            "dump", "verify")
MANUAL = BUILD / "man"  # the pages of docs/man, each with the parts that it shares


def options_of_page(page):
    """The long options that a page of the manual describes: those at the heads of its lists."""
    heads = "\n".join(line for line in page.splitlines() if line.startswith(".It "))
    return set(re.findall(r"Fl -([a-z-]+)", heads))


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_of_a_command_has_its_options_and_no_others(command):
    shown = cairn("help", command).stdout.decode().partition("Options:")[2]
    heads = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", shown, re.M)
    page = (MANUAL / f"cairn-{command}.1").read_text()
    assert set(heads) - {"help", "no-config"} <= options_of_page(page)
    assert options_of_page(page) <= set(re.findall(r"--([a-z-]+)", shown))


def test_the_overview_names_every_command_and_the_options_of_all():
    page = (MANUAL / "cairn.1").read_text()
    assert [command for command in COMMANDS if f".It Xr cairn-{command} 1\n" not in page] == []
    assert "-no-config" in page


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs/man").glob("*.1")))
def test_the_pages_are_clean_and_refer_to_pages_that_exist(page):
    mandoc = shutil.which("mandoc")
    command = [mandoc, "-T", "lint", "-W", "warning"] if mandoc else ["groff", "-mandoc", "-ww", "-z", "-Tutf8"]
    run = subprocess.run([*command, MANUAL / page], capture_output=True, check=False, timeout=60)
    assert (run.returncode, run.stdout + run.stderr) == (0, b"")
    text = (MANUAL / page).read_text()
    ours = re.findall(r"^\.(?:It )?Xr (cairn\S*) (\d)", text, re.M)
    assert [name for name in ours if not (MANUAL / ".".join(name)).exists()] == []
    assert ".\\\" include" not in text
