# SPDX-License-Identifier: MIT
"""Growth verdicts on real programs: tests/programs/leaks/behaviour.c describes their behaviour.

unit.profile.growth tests all shapes and lengths with a clock that the test sets.
"""
import json
import subprocess

from cairn_run import CAIRN, PROGRAMS, environment

WANTED = {"leak": "growing", "late": "growing", "warm_up": "stopped", "cache": "bounded",
          "teeth": "sawtooth"}


def test_programs_are_called_what_they_are(tmp_path):
    running = {word: subprocess.Popen([CAIRN, "record", "-q", "-o", tmp_path / f"{word}.cairn", "--",
                                       PROGRAMS / "behaviour", word], env=environment())
               for word in WANTED}
    found = {}
    for word, process in running.items():
        assert process.wait(timeout=120) == 0
        run = subprocess.run([CAIRN, "report", "--json", "--sort", "leaked",
                              tmp_path / f"{word}.cairn"], check=True, capture_output=True,
                             env=environment(), timeout=60)
        report = json.loads(run.stdout)
        (site,) = [site for site in report["leaks"]["leaks"] if site["function"] == "keep"]
        growing = [item["function"] for item in report["findings"]["items"] if item["kind"] == "growth"]
        assert growing == (["keep"] if WANTED[word] == "growing" else []), (word, report["findings"])
        found[word] = site["growth"]
        assert (site["slope_bytes_per_s"] is not None) == (site["growth"] == "growing")
        if word == "leak":
            assert 700_000 < site["slope_bytes_per_s"] < 1_300_000
    assert found == WANTED
