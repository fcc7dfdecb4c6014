# SPDX-License-Identifier: MIT
"""The sweep notices what it is there to notice: a cairn that hangs, changes or refuses."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from sandbox import RUNS_ON, TOO_MUCH, Sandbox
from sweep import LEFT_BEHIND, REASONS, leaves_processes, programs_of

# Recorded programs are what follows `--`.
FAITHFUL = 'while [ "$1" != -- ]; do shift; done; shift; '


@pytest.mark.parametrize("words", [LEFT_BEHIND, *(words for words, _ in REASONS)])
def test_cairn_says_what_the_sweep_looks_for(words):
    # cairn puts the name of a runtime into its sentence.
    runtimes = (ROOT / "src/symbols/runtimes/runtime_table.c").read_text(encoding="utf-8")
    for name in re.findall(r'\.name = "([^"]*)"', runtimes):
        if words == f"static {name} program; ":
            words = "static %s program; "
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.c"))
    assert any(words in re.sub(r'"\s*\n\s*"', "", source) for source in sources)


@pytest.fixture
def build(tmp_path):
    """build(script): a build directory whose cairn is that script."""
    def make(script):
        for name, text in (("bin/cairn", f"#!/bin/sh\n{script}\n"),
                           ("lib/cairn/libcairn_preload.so", "")):
            path = tmp_path / "build" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        return tmp_path / "build"
    return make


def sweep(build, *options):
    run = subprocess.run([ROOT / "tools/sweep.py", build, *options],
                         capture_output=True, text=True, check=False, timeout=300)
    assert run.stderr == ""
    return run.returncode, run.stdout


@pytest.mark.parametrize("script, result, words", [
    (FAITHFUL + 'exec "$@"', None, "1 same"),
    (FAITHFUL + 'CAIRN_SESSION=x LD_PRELOAD= exec "$@"', None, "1 same"),
    (FAITHFUL + 'echo "cairn: a note" >&2; exec "$@"', None, "1 same"),
    (FAITHFUL + 'exec "$@" nowhere', "differ", "status 127"),
    (FAITHFUL + '"$@"; echo more', "differ", "stdout"),
    (FAITHFUL + 'echo more >&2; exec "$@"', "differ", "stderr"),
    (FAITHFUL + '"$@"; exit 3', "differ", "status 3, not 0"),
    ("sleep 100", "hang", "not at its end"),
    (f'echo "cairn: 1 {LEFT_BEHIND}" >&2; sleep 100', "hang", LEFT_BEHIND),
    ('echo "cairn: it is a static executable" >&2; exit 126', "wrong", "static"),
    ('echo "cairn: it is bad" >&2; exit 126', "wrong", "it is bad"),
])
def test_what_cairn_does_wrong_is_noticed(build, script, result, words):
    """env, without an argument, tells its environment; what is no program makes it fail."""
    patience = "2" if result == "hang" else "60"
    status, said = sweep(build(script), "--way", "nothing", "--patience", patience, "env")
    assert (status, said.splitlines()[-1]) == (
        (0, "1 passed, 0 failed") if result is None else (1, "0 passed, 1 failed"))
    assert words in said and (result is None or said.startswith(f"{result:9} env")), said


def test_a_refusal_that_is_right_passes(build):
    refuse = 'echo "cairn: it changes its identity" >&2; exit 126'
    status, said = sweep(build(refuse), "--way", "version", "passwd")
    assert (status, "1 refused" in said) == (0, True), said


def test_a_date_draws_the_same_programs_again(build):
    cairn = build(FAITHFUL + 'exec "$@"')
    drawn = [sweep(cairn, "--way", "version", "--sample", "2", "--date", date)[1].splitlines()[0]
             for date in ("2026-01-01", "2026-01-01", "2026-01-02")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0].startswith("drawn for 2026-01-01: ")


def test_only_programs_that_the_user_may_execute_are_swept(tmp_path):
    for name, mode in (("for-all", 0o755), ("for-its-owner", 0o700), ("for-nobody", 0o644)):
        shutil.copy("/bin/true", tmp_path / name)
        (tmp_path / name).chmod(mode)
    (tmp_path / "again").symlink_to("for-all")
    (tmp_path / "text").write_text("#!/bin/sh\n")
    names = programs_of(tmp_path)
    assert names == (["again"] if os.geteuid() == 0 else ["again", "for-its-owner"])


@pytest.fixture
def sandbox(build):
    made = Sandbox(build("exit 0"))
    yield made
    made.close()


def test_programs_run_as_a_user_who_may_nothing(sandbox, tmp_path):
    outcome = sandbox.run(["sh", "-c", f"id -u; echo $HOME; touch {tmp_path}/mark; echo $?"], 60)
    user, home, status = outcome.out.decode().split()
    assert user != "0" and home != os.environ.get("HOME"), outcome
    assert (status == "0") == (os.geteuid() != 0), "who is not root keeps his own files"


@pytest.mark.parametrize("command, status", [
    (["sleep", "100"], RUNS_ON), (["yes"], TOO_MUCH), (["sh", "-c", "kill -9 $$"], 137),
    (["false"], 1), (["cat"], 0)])
def test_the_sandbox_bounds_what_programs_take(sandbox, command, status):
    assert sandbox.run(command, 2 if status == RUNS_ON else 60).status == status


@pytest.mark.parametrize("script, leaves", [
    ("setsid sleep 100 >/dev/null 2>&1 &", True), ("sleep 0 & wait; exit 3", False), ("true", False)])
def test_daemons_are_reported_from_programs_that_end(sandbox, script, leaves):
    assert leaves_processes(sandbox, ["sh", "-c", script]) == (leaves and sandbox.has_namespaces)


def is_running(*command):
    wanted = "\0".join(command).encode() + b"\0"
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == wanted:
                return True
        except OSError:
            pass  # gone meanwhile
    return False


def test_what_a_run_leaves_behind_is_ended(sandbox, tmp_path):
    command = ["sleep", f"100000.{tmp_path.name.__hash__() % 1000000}"]
    outcome = sandbox.run(["sh", "-c", 'setsid "$@" & exit 3', "sh", *command], 60)
    assert outcome.status == 3
    until = time.monotonic() + 60
    while is_running(*command) and time.monotonic() < until:
        pass
    assert not is_running(*command)
