# SPDX-License-Identifier: MIT
"""README.md and docs/user/find-a-leak.md, find-the-peak.md, find-churn.md, explain-rss.md, report.md, compare.md,
import.md, viewer.md and program-api.md: each command of them runs in the order of the page, and prints what the page
shows.

The programs are those of the test, `make` and the browser are left out; all else is as it is printed."""
import os
import re

import pytest

from cairn_run import ROOT, Recording
from screen import Terminal
from test_guides import Guide
from test_production import commands_of, free_port
from waiting import wait_until

# It leaks for two seconds, makes temporary allocations, and keeps more the newer it is.
PROGRAM = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef BLOCK_BYTES
#define BLOCK_BYTES 512
#endif
void *kept[400];
__attribute__((noinline)) static void growth(int i) { kept[i] = memset(malloc(BLOCK_BYTES), 1, BLOCK_BYTES); }
__attribute__((noinline)) static int churn(int i)
{
    char *text = memset(malloc(40), i, 40);
    int first = text[0];
    free(text);
    return first;
}
int main(void)
{
    int sum = 0;
    for (int i = 0; i < 400; i++) {
        growth(i);
        for (int n = 0; n < 50; n++) { sum += churn(n); }
        usleep(5000);
    }
    return sum == 1;
}
"""


# It maps 10 MiB, fills a heap of 34 MiB, and frees most of it.
RESIDENT = """
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { COUNT = 180000, TABLE = 10 << 20 };
void *blocks[COUNT];
int main(void)
{
    void *table = mmap(NULL, TABLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(table, 1, TABLE);
    for (int i = 0; i < COUNT; i++) { blocks[i] = memset(malloc(200), 1, 200); }
    usleep(60000);
    for (int i = 0; i < COUNT / 3 * 2; i++) {
        if (i % 100 != 0) { free(blocks[i]); }
    }
    usleep(60000);
    return 0;
}
"""


@pytest.fixture(name="guide")
def fixture_guide(request, tmp_path):
    guide = Guide(tmp_path, request.param)
    (guide.folder / "growth.c").write_text(PROGRAM)
    (guide.folder / "resident.c").write_text(RESIDENT)
    for name, size in (("program", 512), ("app-1.0", 512), ("app-1.1", 2048)):
        guide.run(f"gcc -g -O1 -D BLOCK_BYTES={size} -o {name} growth.c")
    yield guide
    guide.stop()


def of(page):
    return pytest.mark.parametrize("guide", [page], indirect=True)


def blocks_of(text):
    """The fences of a page."""
    return re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.M | re.S)


def shape(line):
    """A line with its figures, and the spaces that they need, made equal."""
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]*\d( ?(B|[KMG]iB|ms|s))?\b", "N", line)).strip()


def run_commands(guide, commands):
    """Run the commands of a page; give what each has printed."""
    printed = []
    for command in commands:
        if command.startswith("cairn analyze"):
            guide.show(command + ("" if "--no-browser" in command else " --no-browser"))
            printed.append("")
        else:
            printed.append(guide.run(command, status=1 if command.startswith("cairn check") else 0))
    return printed


@of("find-a-leak")
def test_each_command_of_the_guide_of_leaks_runs(guide):
    rules = [line for line in guide.commands if line.startswith(("leak:", "# "))]
    (guide.folder / "rules.txt").write_text("\n".join(rules) + "\n")
    commands = [line.replace("REGEX", "growth") for line in guide.commands if line not in rules]
    for _ in range(8):  # a machine that holds the program up may hide that it grows
        printed = run_commands(guide, commands)
        if "still growing" in printed[1]:
            break
    assert "max-leaked" in next(text for command, text in zip(commands, printed) if " check " in command)
    leaked, blocks = blocks_of(guide.text)
    first = printed[1].partition("\n  1. ")[2].splitlines()
    wanted = [shape(line) for line in leaked.splitlines() if line]
    assert shape("1. " + first[0]).split()[-1] == "growth" and len(wanted) == 3
    assert shape(first[1]).replace("program", "growth") == wanted[1] and shape(first[2]) == wanted[2], first
    title, _, heads, row = (shape(line) for line in blocks.splitlines())
    assert title.split(":")[0] in printed[-1] and heads in map(shape, printed[-1].splitlines())
    assert re.search(r"0x[0-9a-f]+ +512 B +[\d.]+ m?s +\d+ program +growth", printed[-1]) and row


@pytest.mark.nightly
@of("find-the-peak")
def test_each_command_of_the_guide_of_peaks_runs(guide):
    guide.run("cairn -q -o old.cairn ./app-1.0 && cairn -q -o new.cairn ./app-1.1")
    commands = [line.strip() for line in guide.text.splitlines() if re.match(" {4,}cairn ", line)]
    assert len(commands) == 3
    run_commands(guide, commands)


@pytest.mark.nightly
@of("find-churn")
def test_each_command_of_the_guide_of_churn_runs(guide):
    printed = run_commands(guide, guide.commands)
    for report in printed[1:3]:
        assert re.search(r"^ +1\. +20,000.* churn$", report, re.M), report
    assert "VERDICT: " in printed[-2] and "max-temporary-share" in printed[-1]


@of("explain-rss")
def test_each_command_of_the_guide_of_resident_memory_runs(guide):
    guide.run("gcc -g -O1 -o program resident.c")
    printed = run_commands(guide, [command for command in guide.commands if command.startswith("cairn ")])
    shown = [line for line in blocks_of(guide.text)[0].splitlines() if line]
    said = printed[1].partition("RESIDENT MEMORY")[1:]
    lines = [line.rstrip() for line in "".join(said).splitlines() if line]
    for line, wanted in zip(lines[:11], shown[:11], strict=True):
        words = shape(line).replace("<N%", "N%")
        assert words == shape(wanted).replace("<N%", "N%"), (words, wanted)
    assert [line.split()[0] for line in lines[11:13]] == ["peak", "end"]


@pytest.mark.nightly
@of("report")
def test_each_command_of_the_guide_of_the_report_runs(guide):
    guide.run("cairn -q -o run.cairn ./program")
    tables = guide.text.split("## Options that you always want")
    of_project, of_user = ([line for line in commands_of(text) if not line.startswith("cairn ")] for text in tables)
    for command in guide.commands:
        if command.startswith("cairn report"):
            assert guide.run(command) != "" or ">" in command
    assert (guide.folder / "allocations.csv").read_text().startswith("function,")
    (guide.folder / "cairn.toml").write_text("\n".join(of_project).replace("my_pool_get", "growth") + "\n")
    assert "main" in guide.run("cairn report -l run.cairn").partition("\n  1. ")[2].splitlines()[0]
    config = guide.folder / "home/.config/cairn/config.toml"
    config.parent.mkdir(parents=True)
    guide.settings.pop("XDG_CONFIG_HOME")
    config.write_text("\n".join(of_user).replace("/srv/debug", str(guide.folder)) + "\n")
    assert f"config.toml: {config}\n" in guide.run("cairn version --verbose")
    guide.run("CAIRN_OPTIONS='--limit=30 --full-names' cairn report run.cairn")


@of("compare")
def test_each_command_of_the_guide_of_comparing_runs(guide):
    for command in guide.commands:
        if command.startswith("VERDICT"):
            assert shape(command).split(" +N")[0] in shape(compared.splitlines()[-1]), compared
        elif command.startswith("cairn analyze"):
            run_commands(guide, [command])
        else:
            if command.endswith(" mark warm"):  # of a program that works
                guide.stop(False)
                guide.start("cairn -q -o app.cairn ./app")
                wait_until(lambda: guide.answer("app.cairn", "status"), "the recorder's answer")
            elif " --between " in command:
                guide.stop()
            compared = guide.run(command, status=1 if " diff " in command else 0)


@pytest.mark.nightly
@of("import")
def test_each_command_of_the_guide_of_imports_runs(guide):
    guide.run("cairn -q -o run.cairn ./program && cairn export --to heaptrack -o heaptrack.server.4711.zst run.cairn")
    printed = run_commands(guide, guide.commands)
    assert "growth" in printed[0]


@pytest.mark.nightly
@of("viewer")
def test_each_command_of_the_guide_of_the_viewer_runs(guide):
    guide.run("cairn -q -o run.cairn ./program")
    run_commands(guide, [command.replace("FILE", "run.cairn") for command in guide.commands])
    assert (guide.folder / "report.html").stat().st_size > 100000


STUBS = """
#include <stdio.h>
#include <stdlib.h>
static char pool[4096];
static size_t used;
static void *pool_take(char *from, size_t size) { void *block = from + used; used += size; return block; }
static void parse(void *what) { free(realloc(malloc(10), 20)); (void)what; }
static void handle(void *what) { free(malloc(10)); (void)what; }
static void work(void) { free(malloc(100)); }
static void check(int is_true) { if (!is_true) { abort(); } }
static void *line, *request, *file;
static uint64_t count = 7;
"""


@of("program-api")
def test_the_code_of_the_guide_of_the_interface_compiles_and_runs(guide):
    first, second = re.findall(r"^```c\n(.*?)^```", guide.text, re.M | re.S)
    bodies = [re.sub(r"^(#.*|\.\.\.)\n", "", code, flags=re.M) for code in (first, second)]
    heads = "".join(re.findall(r"^#.*\n", second, re.M))
    (guide.folder / "used.c").write_text(
        heads + STUBS + "".join(f"static void part_{i}(void) {{\n{body}}}\n" for i, body in enumerate(bodies)) +
        "int main(void) { part_0(); part_1(); return 0; }\n")
    guide.run(f"gcc -g -O1 -Wall -Wno-unused-variable -I {ROOT}/include -o used used.c")
    guide.run("./used && cairn -q -o used.cairn ./used")
    report = guide.run("cairn report --all used.cairn")
    assert "[pool nodes]" in report and "bytes sent" in report
    texts = [mark["text"] for mark in Recording(guide.folder / "used.cairn", None).report["marks"]]
    assert texts == ["indexing", "cache dropped"]


def test_each_command_of_the_readme_runs(tmp_path):
    guide = Guide(tmp_path, "../../README")
    commands = [command for command in guide.commands if command.startswith("cairn ")]
    assert len(commands) == 5
    guide.stop()
    guide.run("cairn -q -o old.cairn ./app && cp old.cairn new.cairn")
    for command in commands:
        if command.startswith("cairn top"):
            guide.stop(False)
            with Terminal(["/bin/sh", "-c", command], guide.settings, folder=guide.folder) as terminal:
                terminal.wait_for("parse_line")
                terminal.press("q")
                assert terminal.end_status() == 0
            guide.stop()
            continue
        latest = max(guide.folder.glob("cairn.app.*.cairn"), key=os.path.getmtime, default=None)
        guide.run(command.replace("cairn.app.4711.cairn", latest.name if latest else ""))
    for name, text in (("cairn analyze FILE", "analyze"), ("cairn export --html FILE -o report.html", "export")):
        assert name in guide.text and text in name
    guide.show(f"cairn analyze --no-browser --port {free_port()} old.cairn")
    guide.run("cairn export --html old.cairn -o report.html")
