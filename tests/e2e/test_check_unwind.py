# SPDX-License-Identifier: MIT
"""CAIRN_CHECK_UNWIND=1: every stack that was found by its changed part alone is walked again in
full, over programs that change their stacks in every possible way. No difference is allowed."""
import pytest

from cairn_run import PROGRAMS, assert_totals, expected_totals

# program -> arguments, minimal number of compared stacks
COUNTED = {
    "coroutines": ([], 3000),
    "leaps": ([], 8000),
    "threads": ([], 10),
    "cross_thread": ([], 10),
    "operators": ([], 10),
    "realloc_forms": ([], 5),
}
OTHERS = {
    "calls": ([], 1),
    "objects": ([], 5),
    "traits": ([], 5),
    "workers": ([], 5),
    "deep": ([200], 1),
    "swings": ([5000], 600),
    "plugins": ([PROGRAMS / "libplugin_first.so", PROGRAMS / "libplugin_other.so"], 5),
    "signal_stack": ([], 1),
    "short_threads": ([], 10),
    "fork_both": ([], 1),
    "cancelled_inside": ([], 1),
}


def checked(record, program, arguments, least):
    recording = record(program, *arguments, env={"CAIRN_CHECK_UNWIND": "1"}, is_compared=False)
    notes = recording.notes
    assert notes["unwind_differences"] == 0
    assert notes["unwind_checks"] >= least
    return recording


@pytest.mark.parametrize("name", COUNTED)
def test_counted_programs_are_walked_without_a_difference(record, name):
    assert_totals(checked(record, PROGRAMS / name, *COUNTED[name]), expected_totals(name))


@pytest.mark.parametrize("name", OTHERS)
def test_other_programs_are_walked_without_a_difference(record, name):
    checked(record, PROGRAMS / name, *OTHERS[name])


@pytest.mark.parametrize("command", [
    ["/usr/bin/python3", "-c", "import json; json.loads(json.dumps(list(range(3000))))"],
    ["/usr/bin/rg", "--no-config", "-c", "static", "/usr/include/stdio.h"],
    ["/usr/bin/node", "-e", "JSON.parse(JSON.stringify([...Array(3000).keys()]))"],
], ids=["python3", "rg", "node"])
def test_real_programs_are_walked_without_a_difference(record, command):
    checked(record, *command[:1], command[1:], 1000)
