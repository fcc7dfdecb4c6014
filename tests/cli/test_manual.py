# SPDX-License-Identifier: MIT
"""The manual: a page for each command, which describes the options of the command and has the examples of its help."""
import re
import shlex
import shutil
import subprocess

import pytest

from drawn import BUILD, CAIRN, ROOT, cairn, environment

COMMANDS = ("record", "report", "diff", "check", "top", "analyze", "export", "store", "ctl", "symbolize", "cache",
            "dump", "verify", "trim", "doctor", "self-test")
MANUAL = BUILD / "man"  # the pages of docs/man, each with the parts that it shares
WITH_A_FILE = ("report", "diff", "check", "export", "store", "symbolize", "dump", "verify", "cache")


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


@pytest.mark.parametrize("command, option", [("dump", "--table"), ("report", "--group-by"), ("top", "--sort")])
def test_the_help_names_every_choice(command, option):
    refusal = cairn(command, option, "nothing", "x.cairn").stderr.decode()
    choices = refusal.partition(" is not one of ")[2].partition(";")[0].split()
    described = cairn("help", command).stdout.decode().partition(f"{option}")[2].partition("\n      --")[0]
    assert choices and [choice for choice in choices if not re.search(rf"\b{choice}\b", described)] == []


def examples(command):
    """The command lines below "Examples:" of the help."""
    return [line.strip() for line in cairn("help", command).stdout.decode().partition("\nExamples:\n")[2].splitlines()]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_the_help_are_those_of_the_page_and_have_options_that_exist(command):
    shown = cairn("help", command).stdout.decode()
    assert max(map(len, shown.splitlines())) <= 80
    lines = examples(command)
    page = (MANUAL / f"cairn-{command}.1").read_text().partition(".Sh EXAMPLES\n")[2]
    assert lines and re.findall(r"^\.Bd -literal -offset indent\n(.*)\n\.Ed$", page, re.M) == lines
    known = set(re.findall(r"^ +(-\w),|(--[a-z-]+)", shown.partition("\nExamples:")[0], re.M))
    known = {name for pair in known for name in pair}
    for line in lines:
        words = shlex.split(line.split(" | ")[0])
        assert words[:2] == ["cairn", command]
        own = words[:next((i for i, word in enumerate(words) if word == "--" or word.startswith("./")), len(words))]
        assert [word for word in own if re.match(r"--?[a-zA-Z]", word) and word not in known] == []


DRAWING = """!program /opt/app
!command_line app
process app
thread app
/opt/app!main(a.c:1);/opt/app!parse(a.c:2);/opt/app!cache::add(a.c:3) 4 400 2 200 1 100 2 200 200
@0 4 400 2 200 1
cohort 0 - 2 200
!mark 10 warm
!mark 50 done
"""


@pytest.mark.parametrize("command", WITH_A_FILE)
def test_each_example_about_files_runs(command, draw, tmp_path):
    for runtime_ms, name in enumerate(("run", "old", "new"), 100):
        draw(f"!runtime_ms {runtime_ms}\n{DRAWING}", f"{name}.cairn")
    (tmp_path / "rules.txt").write_text("leak:^load_plugins$\n")
    for name, body in (("flamegraph.pl", "exec cat"), ("app", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    settings = environment({"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "XDG_DATA_HOME": "", "PATH": f"{tmp_path}:{CAIRN.parent}:/usr/bin:/bin"})
    before = ["cairn store add --service web --version 1.0 old.cairn"] if command == "store" else []
    for line in before + examples(command):
        run = subprocess.run(line.replace("/srv/debug", str(tmp_path)), shell=True, cwd=tmp_path, env=settings,
                             capture_output=True, text=True, check=False, timeout=60)
        assert run.returncode in (0, 1) and "cairn help" not in run.stderr, (line, run.stdout, run.stderr)


def test_the_many_options_of_record_are_in_groups():
    shown = cairn("help", "record").stdout.decode()
    titles = re.findall(r"^([A-Z].*):$", shown, re.M)
    assert titles == ["Options", "Files that are kept", "Serve", "Push", "What is recorded", "Limits", "All commands", "Examples"]
    push = shown.partition("\nPush:\n")[2].partition("\n\n")[0]
    assert set(re.findall(r"^ {6}--([a-z-]+)", push, re.M)) == {name for name in re.findall(r"--(push[a-z-]*|label)", push)}
    assert re.findall(r"^([A-Z].*):$", cairn("help", "verify").stdout.decode(), re.M)[:1] == ["Options"]
