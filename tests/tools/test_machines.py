# SPDX-License-Identifier: MIT
"""Each entry of the suite runs on the emulated AArch64 machine, or is left out for a reason; and the check of this
finds what it is there to find."""
import importlib.util
import os
import pathlib
import subprocess

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/aarch64/check_entries.py"
spec = importlib.util.spec_from_file_location("check_entries", TOOL)
check_entries = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_entries)


def test_each_entry_runs_there_or_has_a_reason():
    run = subprocess.run([TOOL, os.environ["CAIRN_BUILD"]], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("names, left_out, wrong", [
    (["unit.a", "cli.x"], ["^cli"], []),
    (["unit.a", "cli"], [], ["cli is in no list of tests/machines/aarch64"]),
    (["unit.a"], ["^cli"], ["entries_left_out: ^cli is no entry"]),
    (["unit.a"], [r"^viewer\.", r"^grafana\.", "^unit.viewer$"], []),  # as in a build without npm
])
def test_what_is_wrong_is_said(names, left_out, wrong):
    assert check_entries.wrong_entries(names, [r"^unit\."], left_out) == wrong


def test_each_group_has_a_reason():
    assert check_entries.without_reason("# A reason,\n# and more.\n^a\n^b\n\n# Another.\n^c\n") == []
    assert check_entries.without_reason("# A reason.\n^a\n\n^b\n^c\n") == ["^b\n^c"]
