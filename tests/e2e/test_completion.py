# SPDX-License-Identifier: MIT
"""Completion: what a real shell on a terminal makes of a word and the Tab key, and cairn's own answers."""
import re
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, ROOT, environment
from screen import Terminal

FOLDER = ROOT / "completion"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source {FOLDER}/cairn.bash"),
    "zsh": (["zsh", "-f", "-i"], f"fpath=({FOLDER} $fpath); autoload -U compinit; compinit -D -u"),
    "fish": (["fish", "--no-config", "-i"], f"source {FOLDER}/cairn.fish"),
}


def answer(*words):
    """The words of cairn's answer, without their descriptions."""
    run = subprocess.run([CAIRN, "--complete", *words], capture_output=True, text=True, check=True, env=environment())
    assert run.stderr == ""
    return [line.split("\t")[0] for line in run.stdout.splitlines()]


# What is typed, and what it becomes with the Tab key.
TYPED = [
    ("cairn repo", "cairn report"),
    ("cairn report --no-b", "cairn report --no-builtin-suppressions"),
    ("cairn top --sort tem", "cairn top --sort temporary"),
    ("cairn top --sort=tem", "cairn top --sort=temporary"),
    ("cairn --overflow=sa", "cairn --overflow=sample"),
    ("cairn ctl x.cairn che", "cairn ctl x.cairn checkpoint"),
    ("cairn export --to spe", "cairn export --to speedscope"),
    ("cairn report uni", "cairn report unique.cairn"),
    ("cairn help symb", "cairn help symbolize"),
]


@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes(scratch, name):
    command, setup = SHELLS[name]
    (scratch / "unique.cairn").touch()
    programs = scratch / "programs"  # few, so that no other one begins with what is typed
    programs.mkdir()
    for tool in (name, "cat", "uname", "tr", "sed", "ls"):
        (programs / tool).symlink_to(f"/usr/bin/{tool}")
    variables = {**environment({"HOME": str(scratch), "XDG_DATA_HOME": str(scratch)}),
                 "PATH": f"{CAIRN.parent}:{programs}", "PS1": "> ", "PROMPT": "> "}
    with Terminal(command, variables, columns=120, lines=40, folder=scratch) as shell:
        shell.press(f"{setup}; echo re''ady", "enter")
        shell.wait(lambda lines: "ready" in lines and list(filter(None, lines))[-1] != "ready", "the prompt")
        for keys, wanted in TYPED:
            line = re.compile(rf"[>#%] {re.escape(wanted)}\s*$")
            shell.press("\x15", keys, "\t")  # Ctrl-U empties the line
            shell.wait(lambda lines, line=line: any(map(line.search, lines)), f"{wanted!r} after {keys!r}")


def options_in_help(command):
    shown = subprocess.run([CAIRN, "help", command], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", shown.partition("Options:")[2], re.M))


def test_every_command_and_option_is_offered():
    commands = [word for word in answer("") if not word.startswith(":")]
    shown = subprocess.run([CAIRN, "help"], capture_output=True, text=True, check=True).stdout
    assert commands == re.findall(r"^  ([a-z-]+) ", shown.partition("Commands:")[2], re.M)
    for command in commands:
        wanted = options_in_help(command)
        assert set(answer(command, "--")) == wanted | {"--help"}, command


@pytest.mark.parametrize("words, wanted", [
    ([], ["record", ":programs"]),
    (["--vers"], ["--version"]),
    (["-q", "--st"], ["--strict", "--start-paused"]),
    (["-o", ""], [":files"]),
    (["-q", ""], [":programs"]),
    (["./app", "-"], [":files"]),  # the program's own arguments
    (["--", "--st"], [":programs"]),
    (["report", "--debug-dir", ""], [":directories"]),
    (["report", "--debug-dir=/u"], [":directories"]),
    (["report", "x.cairn", "--zz"], []),  # no such option
    (["report", "x.cairn", "--lim"], ["--limit"]),  # options may follow
    (["report", "--sort", "lea"], ["leaked", "leaked-blocks"]),
    (["report", "-n", ""], []),  # a number
    (["report", "--json=x"], []),  # takes no value
    (["cache", ""], ["list", "size", "clear", "limit"]),
    (["cache", "limit", ""], []),
    (["ctl", "st"], [":files"]),
    (["ctl", "x", "st"], ["start", "stop", "status"]),
    (["ctl", "x", "mark", ""], []),
    (["nothing", "re"], [":files"]),
])
def test_answers(words, wanted):
    found = answer(*words)
    assert set(wanted) <= set(found) if not words else found == wanted, found


def test_processes_are_offered(scratch):
    """Those whose executable the user may read, by their numbers and by their names."""
    program = scratch / "uniquely"
    shutil.copy("/usr/bin/sleep", program)
    with subprocess.Popen([program, "1000"]) as process:
        try:
            pid = str(process.pid)
            assert pid in answer("record", "-p", "") and pid in answer("top", "-p", "")
            assert f"--pid={pid}" in answer("record", f"--pid={pid}")
            assert answer("record", "--name", "uniq") == ["uniquely"]
            assert answer("record", "--name=uniq") == ["--name=uniquely"]
        finally:
            process.kill()
