# SPDX-License-Identifier: MIT
"""cairn self-test: which ways into a program work here. It must not say so of a way that does not."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from cairn_run import BUILD, CAIRN, environment
from waiting import DEADLINE_SECONDS

WAYS = ["a program from its start", "... without the preloaded library", "a static program", "a sample of a program",
        "a running program", "a running static program"]


def run(scratch, *words, cairn=CAIRN, before=(), env=None):
    """Its exit status and {way: (verdict, what it says)}. It leaves no file and no process."""
    temporary = scratch / "tmp"
    temporary.mkdir(exist_ok=True)
    done = subprocess.run([*before, cairn, "self-test", *words], env=environment({"TMPDIR": str(temporary), **(env or {})}),
                          capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS, stdin=subprocess.DEVNULL)
    assert not list(temporary.iterdir())
    own = [line for line in pathlib.Path("/proc").glob("[0-9]*/environ") if has_text(line, f"TMPDIR={temporary}")]
    assert own == []
    results = re.findall(r"^  (ok|FAILED|-) +(\S.*?)(?:(?<=\S)  +(\S.*))?$(?:\n {10}(.*))?", done.stdout, re.M)
    return done, {way: (verdict, short or long) for verdict, way, short, long in results}


def has_text(path, text):
    try:
        return text in path.read_text(errors="replace")
    except OSError:
        return False


@pytest.fixture(name="copy")
def fixture_copy(tmp_path):
    """A copy of what is needed, whose bundled programs may be replaced."""
    copy = tmp_path / "copy"
    (copy / "bin").mkdir(parents=True)
    shutil.copy(CAIRN, copy / "bin/cairn")
    shutil.copytree(BUILD / "lib/cairn", copy / "lib/cairn")
    return copy


def test_every_way_works_here(scratch):
    done, results = run(scratch)
    assert done.returncode == 0 and done.stderr == "", done
    assert list(results) == WAYS and {verdict for verdict, _ in results.values()} == {"ok"}
    assert done.stdout.endswith("\n6 of 6 ways work\n")
    assert results[WAYS[4]][1].startswith("all allocations, a thread and a child")


def test_ways_that_need_ptrace_fail_where_it_is_forbidden(scratch):
    """strace makes each ptrace of cairn fail, as a seccomp filter of a container does."""
    done, results = run(scratch, before=["strace", "-f", "--seccomp-bpf", "-q", "-o", "/dev/null", "-e", "trace=ptrace",
                                         "-e", "inject=ptrace:error=EPERM"])
    assert done.returncode == 1
    assert [results[way][0] for way in WAYS] == ["ok", "FAILED", "FAILED", "ok", "FAILED", "FAILED"], done
    assert "Operation not permitted" in results[WAYS[1]][1] and "is already traced by strace" in results[WAYS[4]][1]
    assert done.stdout.endswith("\n2 of 6 ways work\n")


def test_a_recording_without_the_allocations_is_a_failure(scratch, copy):
    shutil.copy("/bin/true", copy / "lib/cairn/probe_program")
    (copy / "lib/cairn/probe_program_static").unlink()
    done, results = run(scratch, cairn=copy / "bin/cairn")
    assert done.returncode == 1 and done.stdout.endswith("\n0 of 4 ways work\n"), done
    assert results[WAYS[0]] == ("FAILED", "the program has 0 of 1000 allocations and 0 of 990 frees; its thread has 0 of 500 "
                                "allocations and 0 of 500 frees; its child has 0 of 200 allocations and 0 of 200 frees")
    assert results[WAYS[2]] == ("-", f"there is no {os.path.realpath(copy)}/bin/../lib/cairn/probe_program_static")
    assert re.fullmatch(r"there are \d+ of 1700 allocations", results[WAYS[3]][1])


def test_without_the_library_and_without_a_folder(scratch, copy):
    (copy / "lib/cairn/libcairn_preload.so").unlink()
    done, results = run(scratch, cairn=copy / "bin/cairn")
    assert done.returncode == 1 and results[WAYS[0]][0] == "FAILED" and "libcairn_preload.so" in results[WAYS[0]][1]
    done, _ = run(scratch, env={"TMPDIR": "/nowhere"})
    assert done.returncode == 2 and "cannot create a temporary directory in '/nowhere'" in done.stderr
    done, _ = run(scratch, "here")
    assert done.returncode == 2 and "unexpected operand 'here'" in done.stderr


@pytest.mark.nightly
def test_it_ends_in_time(scratch, copy):
    (copy / "lib/cairn/probe_program").write_text("#!/bin/sh\nexec sleep 600\n")
    done, results = run(scratch, cairn=copy / "bin/cairn")
    assert done.returncode == 1 and {results[way][0] for way in WAYS} == {"FAILED"}
    for way in WAYS:
        assert re.fullmatch(r"not recorded in time, at a load of \d+\.\d on \d+ processors", results[way][1]), results
