# SPDX-License-Identifier: MIT
"""Two builds of one program are compared whatever their file names and folders are, in every
command that compares."""
import json
import re
import shlex
import subprocess
import urllib.request

import pytest

from cairn_run import CAIRN, ROOT, environment

# The memory of a run besides its own work is the same in both builds; `load` keeps twice as much in
# the new one.
PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
static void *kept[64];
__attribute__((noinline)) static char *load(size_t i) { char *p = malloc(1000 * FACTOR); memset(p, 1, 9);
                                                        kept[i] = p; return p + 1; }
__attribute__((noinline)) static char *parse(size_t i) { kept[i] = malloc(500); return kept[i]; }
int main(void)
{
    for (size_t i = 0; i < 64; i += 2) { load(i); parse(i + 1); }
    for (size_t i = 0; i < 64; i++) { free(kept[i]); }
    return 0;
}
"""


def build(path, factor):
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.parent / "app.c"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", f"-DFACTOR={factor}", "-o", path, source], check=True)
    return path


def cairn(*words, status=(0,), cwd=None):
    done = subprocess.run([CAIRN, *words], capture_output=True, env=environment(), cwd=cwd, check=False,
                          timeout=120)
    assert done.returncode in status, done.stderr.decode()
    return done.stdout.decode()


def changes(report, cost="allocated_bytes"):
    return [(entry["function"], entry["class"]) for entry in report["changes"][cost]]


@pytest.mark.parametrize("old, new, launcher", [
    ("app-1.0", "app-1.1", ()),
    ("v1/app", "v2/app", ()),
    ("v1/app-old", "v2/app-new", ("/bin/sh", "-c", "exec \"$0\"")),
    ("v1/app-old", "v2/app-new", ("/bin/sh", "-c", "\"$0\"; exit 0")),
])
def test_builds_are_one_program(tmp_path, old, new, launcher):
    for name, program, factor in (("old.cairn", old, 1), ("new.cairn", new, 2)):
        cairn("record", "-q", "-o", tmp_path / name, "--", *launcher, build(tmp_path / program, factor))
    old_file, new_file = tmp_path / "old.cairn", tmp_path / "new.cairn"
    report = json.loads(cairn("diff", "--json", "--sort", "allocated", old_file, new_file, status=(1,)))
    assert changes(report) == [("load", "grown")]
    same = json.loads(cairn("diff", "--json", "--sort", "allocated", old_file, old_file))
    assert changes(same) == []

    text = cairn("report", "--all", "--diff", old_file, "--functions", new_file)
    lines = {line.split()[-2]: line for line in text.splitlines() if " load" in line or " parse" in line}
    assert len(lines) == 2, text  # each function is listed once

    check = json.loads(cairn("check", "--json", "--no-config", "--baseline", old_file, "--max-growth", "1%",
                             new_file, status=(1,)))
    grown = [result for result in check["results"] if result["broken"]]
    assert grown and all(re.search(r"1\..* grown .* load +\[", r["details"]) for r in grown), check


def test_the_guide_works_word_by_word(tmp_path):
    """The commands of docs/user/compare.md, in a folder with the files that they name."""
    guide = (ROOT / "docs/user/compare.md").read_text()
    commands = [line[4:] for line in guide.split("\n\n")[1].splitlines()]
    assert len(commands) == 3 and all(command.startswith("cairn ") for command in commands)
    build(tmp_path / "app-1.0", 1)
    build(tmp_path / "app-1.1", 2)
    said = [cairn(*shlex.split(command)[1:], cwd=tmp_path, status=(0, 1)) for command in commands]
    assert re.search(r"VERDICT: grew beyond 1%", said[-1])
    changed = [line for line in said[-1].splitlines() if "load" in line or "parse" in line]
    assert changed and not any("parse" in line for line in changed), said[-1]
    assert not re.search(r"^ +\d+\. .* (new|gone) ", said[-1], re.M), said[-1]


def test_analyze_opens_compared(tmp_path):
    """The address that analyze prints opens the requested comparison."""
    for name, factor in (("old.cairn", 1), ("new.cairn", 2)):
        cairn("record", "-q", "-o", tmp_path / name, "--", build(tmp_path / name[:3], factor))
    server = subprocess.Popen([CAIRN, "analyze", "--no-browser", tmp_path / "new.cairn", "--diff",
                               tmp_path / "old.cairn"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=environment(), text=True)
    try:
        line = next(line for line in server.stdout if "http://" in line)
        address = re.search(r"http://\S+", line)[0]
        assert "diff=1" in address, address
        with urllib.request.urlopen(address, timeout=60) as page:
            assert page.status == 200
    finally:
        server.terminate()
        server.wait(timeout=60)


