# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end tests: one records a program as a user would."""
import pathlib
import subprocess

import pytest

pytest.register_assert_rewrite("cairn_run", "conversation", "waiting")  # so that their asserts show both values

from cairn_run import BUILD, CAIRN, Recording, environment, run_bare, shell_status


@pytest.fixture
def scratch(tmp_path):
    """A directory for one test."""
    return tmp_path


@pytest.fixture
def record(scratch):
    """record(program, *arguments) runs the program bare and then under cairn.

    It asserts that both runs end with the same status, write the same bytes to stdout and stderr,
    and that nothing was lost. It returns the Recording. With is_compared=False there is no bare
    run. `options` are options of cairn.
    """
    def run(program, *arguments, options=(), env=None, stdin=b"", cwd=None, timeout=500,
            is_compared=True, is_whole=True, stacks_max=0):
        command = [str(program), *map(str, arguments)]
        settings = {"env": environment(env), "input": stdin, "cwd": cwd or scratch,
                    "timeout": timeout, "capture_output": True, "check": False}
        bare = run_bare(command, **settings) if is_compared else None
        path = scratch / f"{pathlib.Path(program).name[:40]!r}.{len(list(scratch.iterdir()))}.cairn"
        recorded = subprocess.run([CAIRN, "record", "-q", "-o", path, *options, "--", *command],
                                  **settings)
        if is_compared:
            assert shell_status(recorded) == shell_status(bare), recorded.stderr
            assert recorded.stdout == bare.stdout
            assert recorded.stderr == bare.stderr
        recording = Recording(path, recorded, stacks_max)
        if is_whole:
            recording.assert_whole()
        return recording
    return run


@pytest.fixture(scope="session", autouse=True)
def built():
    """Fail once, with a clear message, if nothing is built."""
    assert CAIRN.exists(), f"no {CAIRN}; build first, or set CAIRN_BUILD (now {BUILD})"
