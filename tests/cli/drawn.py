# SPDX-License-Identifier: MIT
"""drawn: runs cairn on recordings that were drawn as text.

CAIRN_BUILD names the build directory; CAIRN_BIN names another executable.
"""
import json
import os
import pathlib
import subprocess

import terminal

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
CAIRN = pathlib.Path(os.environ.get("CAIRN_BIN", BUILD / "bin" / "cairn")).resolve()
DRAW = BUILD / "tests" / "cli" / "draw_recording"

# Tables in CSV, SQLite and stores name two costs otherwise than JSON does.


def environment(more=None):
    """The environment of a run, with more variables; those that are None are not set."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("NO_COLOR", "TERM", "COLUMNS")}
    wanted = {**kept, "TERM": "xterm", "TZ": "UTC", **(more or {})}
    return {name: value for name, value in wanted.items() if value is not None}


def cairn(*arguments, more=None, **settings):
    return subprocess.run([CAIRN, *map(str, arguments)], env=environment(more), capture_output=True,
                          check=False, timeout=60, stdin=subprocess.DEVNULL, **settings)


def text_of(*arguments, said=b"", status=0):
    """The whole report as text, with up to five stacks of each call site."""
    stacks = () if "--diff" in arguments else ("-s", "5")
    run = cairn("report", "--all", *stacks, *arguments)
    assert (run.returncode, run.stderr) == (status, said), run.stderr
    return run.stdout.decode()


def json_of(*arguments, status=0):
    run = cairn("report", "--json", *arguments)
    assert status in (None, run.returncode), run.stderr
    return json.loads(run.stdout)


def counters(report, kind):
    """{name: value} of the counters of a report with this kind, "loss" or "note"."""
    return {entry["name"]: entry["value"] for entry in report["counters"] if entry["kind"] == kind}


def draw_to(path, drawing):
    """Draw a recording and return its path."""
    subprocess.run([DRAW, path], input=drawing if isinstance(drawing, bytes) else drawing.encode(),
                   check=True, timeout=60)
    return path


def on_terminal(*arguments, more=None):
    """The output on a terminal of 80 columns."""
    status, seen = terminal.run([CAIRN, *arguments], environment(more))
    assert status == 0
    return seen
