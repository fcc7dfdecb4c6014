# SPDX-License-Identifier: MIT
"""Growth verdicts on real programs: tests/programs/leaks/behaviour.c describes their behaviour.

unit.profile.growth tests all shapes and lengths with a clock that the test sets.
"""
import json
import pathlib
import subprocess
import sys

from cairn_run import CAIRN, PROGRAMS, environment

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "formats"))
from exposition import parse  # noqa: E402

WANTED = {"leak": "growing", "late": "growing", "warm_up": "stopped", "cache": "bounded",
          "teeth": "sawtooth", "leak --sample=4096": "growing"}

# On a busy machine the programs or their recorders stand still for so long that the pattern is another one.
ATTEMPTS = 8


def exported_growth(path, what=""):
    """{function: bytes a second} of the series for collectors, or its errors."""
    run = subprocess.run([CAIRN, "export", "--to", "prometheus", "-o", "-", path], check=True, capture_output=True,
                         env=environment(), timeout=60)
    series = parse(run.stdout).get(f"cairn_call_site_growth_bytes_per_second{what}", {})
    return {dict(labels)["function"]: number for labels, number in series.items()}


def problem_of(path, word):
    """What the report says wrongly, or None. The series for collectors is the report's slope, to a thousandth."""
    run = subprocess.run([CAIRN, "report", "--json", "--sort", "leaked", path], check=True, capture_output=True,
                         env=environment(), timeout=60)
    report = json.loads(run.stdout)
    (site,) = [site for site in report["leaks"]["leaks"] if site["function"] == "keep"]
    growing = [item["function"] for item in report["findings"]["items"] if item["kind"] == "growth"]
    slope = site["slope_bytes_per_s"]
    assert (slope is not None) == (site["growth"] == "growing")
    exported = exported_growth(path)
    assert set(exported) == ({"keep"} if slope is not None and slope > 0 else set())
    assert "keep" not in exported or 0 <= slope - exported["keep"] < 0.0015
    errors = exported_growth(path, "_error")
    assert set(errors) == (set(exported) if "--sample" in word else set())
    assert not errors or (errors["keep"] > 0 and 0 <= site["slope_error"] - errors["keep"] < 0.0015)
    is_right = (site["growth"] == WANTED[word] and growing == (["keep"] if WANTED[word] == "growing" else [])
                and (not word.startswith("leak") or 700_000 < slope < 1_300_000))
    return None if is_right else (site, report["findings"])


def test_what_is_freed_only_at_the_end_is_found(tmp_path):
    path = tmp_path / "hoard.cairn"
    for _ in range(ATTEMPTS):
        subprocess.run([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "behaviour", "hoard"], check=True,
                       env=environment(), timeout=120)
        report = subprocess.run([CAIRN, "report", "--json", path], check=True, capture_output=True, env=environment(),
                                timeout=60).stdout
        found = json.loads(report)["findings"]["items"]
        grown = [item for item in found if "and was freed at the end" in item["sentence"]]
        if grown:
            break
    (item,) = grown
    assert (item["kind"], item["function"], item["bytes"]) == ("peak", "keep", 4000 * 1000)
    assert not [item for item in found if item["kind"] == "growth"]


def test_programs_are_called_what_they_are(tmp_path):
    problems = dict.fromkeys(WANTED, "not tried")
    for _ in range(ATTEMPTS):
        running = {word: subprocess.Popen([CAIRN, "record", "-q", "-o", tmp_path / f"{word}.cairn",
                                           *word.split()[1:], "--", PROGRAMS / "behaviour", word.split()[0]],
                                          env=environment())
                   for word in problems}
        for word, process in running.items():
            assert process.wait(timeout=120) == 0
            problems[word] = problem_of(tmp_path / f"{word}.cairn", word)
        problems = {word: problem for word, problem in problems.items() if problem is not None}
        if not problems:
            break
    assert problems == {}
