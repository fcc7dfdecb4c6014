# SPDX-License-Identifier: MIT
"""Growth verdicts on real programs whose memory is replaced, whose load stops, or that hold it in turns.

tests/programs/leaks/growth_shapes.c describes them; unit.profile.growth_patterns draws many more.
"""
import json
import subprocess

from cairn_run import CAIRN, PROGRAMS, environment

CYCLES = ("bursts", "sawtooth")
WANTED = {"array": ("growing",), "buffers": ("growing",), "table": ("growing",), "queue": ("growing",),
          "load": ("growing",), "day": ("growing",), "ring": ("bounded",), "sessions": ("bounded", *CYCLES),
          "filled": ("stopped",), "array_full": ("stopped",), "bursts": CYCLES, "last": ("late",)}
# Doubling leaves few steps, so that it may be unsure.
FINDINGS = {"array", "buffers", "queue", "load", "day"}

# On a busy machine the programs or their recorders stand still for so long that the pattern is another one.
ATTEMPTS = 4


def problem_of(path, word):
    """What the report says wrongly, or None."""
    run = subprocess.run([CAIRN, "report", "--json", "--sort", "leaked", path], check=True, capture_output=True,
                         env=environment(), timeout=60)
    report = json.loads(run.stdout)
    sites = [site for site in report["leaks"]["leaks"] if site["function"] == "keep"]
    if not sites and word == "bursts":
        return None  # it ended between two of them
    site = max(sites, key=lambda site: site["costs"]["live_bytes"])
    growing = [item["function"] for item in report["findings"]["items"] if item["kind"] == "growth"]
    is_found = word not in FINDINGS or growing == ["keep"]
    is_right = site["growth"] in WANTED[word] and is_found and (word in FINDINGS | {"table"} or not growing)
    has_until = (site["grew_until_ms"] is not None) == (word == "load")
    return None if is_right and has_until else (site, report["findings"]["items"])


def test_programs_are_called_what_they_are(tmp_path):
    problems = dict.fromkeys(WANTED, "not tried")
    for _ in range(ATTEMPTS):
        running = {word: subprocess.Popen([CAIRN, "record", "-q", "-o", tmp_path / f"{word}.cairn", "--",
                                           PROGRAMS / "growth_shapes", word], env=environment())
                   for word in problems}
        for word, process in running.items():
            assert process.wait(timeout=120) == 0
            problems[word] = problem_of(tmp_path / f"{word}.cairn", word)
        problems = {word: problem for word, problem in problems.items() if problem is not None}
        if not problems:
            break
    assert problems == {}
