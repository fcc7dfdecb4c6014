# SPDX-License-Identifier: MIT
"""Common command lines of users, and their output."""
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import zlib

import pytest
import terminal

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from waiting import read_until

ENDING = str(PROGRAMS / "ending")


def cairn(scratch, *arguments, **settings):
    return subprocess.run([CAIRN, *map(str, arguments)], cwd=scratch, env=environment(),
                          capture_output=True, check=False, timeout=60, **settings)


def only_recording(scratch, run):
    files = [path for path in scratch.rglob("*.cairn") if path.is_file()]
    assert len(files) == 1, files
    recording = Recording(files[0], run)
    recording.assert_whole()
    assert recording.totals["allocations"] == 100
    return recording


@pytest.mark.parametrize("form", [
    [], ["record"], ["record", "--"], ["-q"], ["--quiet"], ["--record-only"], ["-r"],
    ["record", "-q", "--"],
])
def test_forms_that_record(scratch, form):
    run = cairn(scratch, *form, ENDING, "exit")
    assert run.returncode == 3
    assert run.stdout == b"to stdout\n"
    recording = only_recording(scratch, run)
    pid = recording.report["run"]["pid"]
    assert recording.path.name == f"cairn.ending.{pid}.cairn"


@pytest.mark.parametrize("given, want", [
    ("plain.cairn", "plain.cairn"),
    ("%p.cairn", "{pid}.cairn"),
    ("a/new/folder/x.cairn", "a/new/folder/x.cairn"),
    ("%h-100%%-%p.cairn", "{host}-100%-{pid}.cairn"),
])
def test_names_of_the_output(scratch, given, want):
    run = cairn(scratch, "-o", given, ENDING)
    recording = only_recording(scratch, run)
    name = want.format(pid=recording.report["run"]["pid"], host=socket.gethostname())
    assert recording.path.relative_to(scratch) == type(recording.path)(name)


def test_a_word_of_other_tools_for_reading_is_no_program(scratch):
    """`import` is a program of ImageMagick, which would make a picture of the screen."""
    (scratch / "bin").mkdir()
    program = scratch / "bin" / "import"
    program.write_text("#!/bin/sh\necho ran \"$@\"\n")
    program.chmod(0o755)
    (scratch / "heap.1").write_text("heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x1\n")
    (scratch / "picture").write_text("a picture\n")
    path = f"{program.parent}:{os.environ['PATH']}"

    def run(*words):
        return subprocess.run([CAIRN, *words], cwd=scratch, env=environment({"PATH": path}), capture_output=True, text=True,
                              check=False, timeout=60)

    refused = run("import", "heap.1")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "'import' is not a command of cairn: each one reads 'heap.1' as it is, 'cairn report'" in refused.stderr
    assert run("-o", "x.cairn", "import", "picture").stdout == "ran picture\n"
    assert run("-q", "-o", "y.cairn", "--", "import", "heap.1").stdout == "ran heap.1\n"
    assert run("import", "x.cairn").returncode == 2


def test_the_program_s_own_options_stay_its_own(scratch):
    run = cairn(scratch, "-q", "/bin/echo", "-n", "-q", "--help", "-o", "x")
    assert (run.returncode, run.stdout, run.stderr) == (0, b"-q --help -o x", b"")


def test_the_summary_says_what_matters(scratch):
    run = cairn(scratch, "-o", "x.cairn", ENDING)
    said = run.stderr.decode()
    assert run.stdout == b"to stdout\n"
    for word in ("peak", "allocations", "temporary", "leaked"):
        assert word in said.lower(), said
    assert "100" in said and "1,600 bytes" in said, said
    assert "cairn report x.cairn" in said or "cairn report" in said, said
    assert "\x1b" not in said, "colours without a terminal"


@pytest.mark.parametrize("name", ["a b.cairn", "-x.cairn", "-x 'y'.cairn", "a\n'\\x41'.cairn", "\udcff.cairn"])
def test_the_command_for_the_report_can_be_copied(scratch, name):
    said = cairn(scratch, "-o", name, ENDING).stderr.splitlines()[-1]
    assert said.isascii() and said.startswith(b"  cairn report ")
    run = subprocess.run(["bash", "-c", b'cairn() { "$CAIRN" "$@"; };' + said], capture_output=True, check=False,
                         cwd=scratch, env={**environment(), "CAIRN": str(CAIRN)}, timeout=60)
    assert (run.returncode, run.stderr) == (0, b""), said
    assert b"peak heap" in run.stdout


def test_quiet_says_nothing(scratch):
    run = cairn(scratch, "-q", "-o", "x.cairn", ENDING)
    assert run.stderr == b"to stderr\n"


def test_the_report_in_words(record):
    recording = record(PROGRAMS / "calls")
    run = cairn(recording.path.parent, "report", "--all", recording.path)
    text = run.stdout.decode()
    assert (run.returncode, run.stderr) == (0, b"")
    for word in ("peak", "allocations", "leaked", "chosen_point", "calls.c:", "KiB"):
        assert word in text, text
    assert "\x1b" not in text


@pytest.mark.parametrize("form", [["analyze", "--no-browser"], ["--analyze"], ["-a"], []])
def test_the_ways_to_look_at_a_recording(record, form):
    """With a viewer, stdout gets its address; a build without one prints the report."""
    recording = record(PROGRAMS / "calls")
    with subprocess.Popen([CAIRN, *form, recording.path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, env=environment()) as looking:
        first = read_until(looking.stdout.fileno(), b"\n")
        looking.send_signal(signal.SIGINT)
        looking.wait(timeout=60)
    report = cairn(recording.path.parent, "report", "--all", recording.path).stdout
    assert first.startswith(b"http://127.0.0.1:") or report.startswith(first)


def test_the_number_of_entries(record):
    recording = record(PROGRAMS / "objects")
    for count in (1, 2):
        top = json.loads(cairn(recording.path.parent, "report", "--json", "-n", str(count),
                               recording.path).stdout)["top"]
        assert {len(sites) for sites in top.values()} <= {0, 1, count}
        assert len(top["allocations"]) == count


def test_the_function_filter(record):
    recording = record(PROGRAMS / "calls")
    report = recording.report_json("--filter-function", "^recursive$")
    assert report["totals"]["allocations"] == 1
    assert report["totals"]["allocated_bytes"] == 7003
    assert recording.report_json("--filter-function", "nothing$")["totals"]["allocations"] == 0


@pytest.mark.parametrize("sort", ["peak", "allocations", "temporary", "leaked"])
def test_sorting(record, sort):
    recording = record(PROGRAMS / "objects")
    top = recording.report_json("--sort", sort)["top"]
    key = {"peak": "peak_bytes", "leaked": "live_bytes"}.get(sort, sort)
    assert list(top) == [key]
    values = [site["costs"][key] for site in top[key]]
    assert values == sorted(values, reverse=True)


def test_json_totals_have_every_promised_field(record):
    report = record(PROGRAMS / "resident", 200_000, 64, 1000, is_compared=False).report
    promised = ["allocations", "frees", "allocated_bytes", "temporary", "peak_bytes",
                "peak_error_bytes", "peak_time_ms", "live_bytes", "live_blocks",
                "peak_rss_bytes", "runtime_ms", "processes", "threads", "stacks"]
    assert {name: type(report["totals"].get(name)) for name in promised} == {
        name: int for name in promised}
    assert report["version"] == 3
    assert report["totals"]["peak_rss_bytes"] > 100 * 1024


def test_a_closed_pipe_ends_the_report_quietly(record):
    recording = record(PROGRAMS / "objects")
    run = subprocess.run(["sh", "-c", f"'{CAIRN}' report {shlex.quote(str(recording.path))} | head -n 1"],
                         capture_output=True, env=environment(), check=False, timeout=60)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.count(b"\n") == 1


def test_colour_on_a_terminal_by_default(record):
    recording = record(PROGRAMS / "objects")
    seen = {}
    for options in ((), ("--no-color",)):
        status, seen[options] = terminal.run([CAIRN, "report", "--all", *options, recording.path],
                                             environment({"TERM": "xterm", "PAGER": "cat"}))
        assert status == 0
    assert b"\x1b[" in seen[()]
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\r", b"", seen[()])
    assert b"chosen_point" in plain
    assert b"\x1b[3" not in seen[("--no-color",)] and b"\x1b[1m" not in seen[("--no-color",)]


def test_help_for_people(scratch):
    general = cairn(scratch, "--help")
    assert (general.returncode, general.stderr) == (0, b"")
    for word in (b"record", b"report", b"cairn help"):
        assert word in general.stdout
    for command in ("record", "report"):
        of_help = cairn(scratch, "help", command)
        assert (of_help.returncode, of_help.stderr) == (0, b"")
        assert of_help.stdout == cairn(scratch, command, "--help").stdout
        assert max(len(line) for line in of_help.stdout.decode().splitlines()) <= 80
    assert re.match(rb"cairn \d+\.\d+\.\d+\n", cairn(scratch, "--version").stdout)


def test_the_version_says_what_it_is_built_of_and_what_it_could_do_here(scratch):
    """The oracles are this Python, which uses the same libraries, the kernel, and another tracer, under
    which nothing can be traced."""
    run = cairn(scratch, "version", "--verbose")
    assert (run.returncode, run.stderr) == (0, b"")
    details = dict(re.findall(r"^(\S+)  +(.*)$", run.stdout.decode(), re.M))
    assert details["libc"] == "glibc " + os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert details["kernel"] == f"{os.uname().sysname} {os.uname().release}"
    assert (details["sqlite"], details["zlib"]) == (sqlite3.sqlite_version, zlib.ZLIB_RUNTIME_VERSION)
    assert {"elfutils", "zstd", "pcre2", "jansson", "ncurses", "compiler", "libcurl"} <= set(details)
    assert re.match(r"\d+\.\d+\.\d+ \(analyze, --listen\)$", details["libmicrohttpd"])
    capabilities = int(re.search(r"CapEff:\s*(\w+)", pathlib.Path("/proc/self/status").read_text())[1], 16)
    if capabilities >> 19 & 1 and not pathlib.Path("/proc/sys/kernel/yama").exists():
        assert details["attaching"] == "to each process (CAP_SYS_PTRACE)"
    traced = subprocess.run(["strace", "-f", "-o", "/dev/null", CAIRN, "version", "--verbose"], capture_output=True,
                            text=True, check=True, timeout=60, env=environment(
                                {"ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:detect_leaks=0"}))
    assert "attaching       to no process: ptrace is forbidden here" in traced.stdout


def test_a_terminal_shows_the_recorder_alive(scratch):
    """On a terminal the program's own lines come through unchanged, then the summary."""
    _, seen = terminal.run([CAIRN, "-o", scratch / "x.cairn", ENDING], environment())
    assert b"cairn report" in seen
    assert b"to stdout\r\n" in seen and b"to stderr\r\n" in seen


@pytest.mark.parametrize("option, why", [
    ("--no-children", "No allocation was recorded: the program called no allocation function."),
    ("--start-paused", "No allocation was recorded: recording was never started ('cairn ctl FILE start'"),
])
def test_a_program_without_allocations(scratch, option, why):
    recorded = cairn(scratch, "record", option, "-o", "x.cairn", "--", "/bin/true")
    assert recorded.returncode == 0
    report = cairn(scratch, "report", "--all", "x.cairn")
    for text in (recorded.stderr.decode(), report.stdout.decode()):
        assert why in " ".join(text.split())
        assert "PEAK MEMORY" not in text
