# SPDX-License-Identifier: MIT
"""Deterministic real programs: blocks and bytes agree with the totals of valgrind's DHAT.

Equal by construction: DHAT counts a realloc as one more block of the new size, as cairn does. It is
told not to free the blocks that libc and libstdc++ keep to the end. The differences are computed
and added here, without a tolerance:

- a request for zero bytes is one byte to DHAT; a third run counts these requests (zero_requests.c);
- the two tools add different variables to the environment. setenv copies the array of them, so
  the recorded run gets as many more as DHAT's has (same_count_environment); python copies each
  to its heap (environment_cost);
- python makes an integer of its thread's identity, an address, for each lock that an import takes:
  28 bytes at valgrind's addresses of threads, 32 bytes at Linux's (identity_cost).
"""
import re
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Dhat, Recording

SQL = """
create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 2000)
  insert into t select x, printf('row %d', x * 7919 % 2003) from c;
create index i on t(b);
select count(*), sum(length(b)) from t where b > 'row 5';
select b, count(*) from t group by substr(b, 1, 5) order by 1 limit 5;
"""

PYTHON = """
import json, re
rows = {str(i): [i, i * 2.5, 'x' * (i % 50)] for i in range(2000)}
text = json.dumps(rows)
print(len(text), len(json.loads(text)), len(re.findall('x+', text)))
"""

DHAT_COMMAND = ["valgrind", "-q", "--tool=dhat", "--dhat-out-file=/dev/null"]


def small_environment(scratch, more=None):
    """Few variables, no home, no configuration, an empty directory to start in (python lists it):
    the allocations of a run must not depend on the test's environment. valgrind is a shell script
    and would set PWD."""
    empty = scratch / "empty"
    empty.mkdir(exist_ok=True)
    return {"PWD": str(empty), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(scratch / "nowhere"),
            "GIT_CONFIG_NOSYSTEM": "1", **(more or {})}


def run_known(command, env):
    """Run a command to its end; return its process's number, and how it ended."""
    with subprocess.Popen(command, env=env, cwd=env["PWD"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        output, errors = process.communicate(timeout=120)
    return process.pid, subprocess.CompletedProcess(command, process.returncode, output, errors)


def variables_under(command, env, pid=None):
    """The environment of a program that is started like this, if `command` runs as process `pid`."""
    own, seen = run_known([*command, "/usr/bin/env", "-0"], env)
    seen.check_returncode()
    text = seen.stdout if pid is None else re.sub(rb"\b%d\b" % own, b"%d" % pid, seen.stdout)
    pairs = (entry.split(b"=", 1) for entry in text.split(b"\0") if entry)
    return dict(pairs)


def cairn_command(scratch):
    return [CAIRN, "record", "-q", "-o", scratch / "x.cairn", "--"]


def same_count_environment(scratch, env):
    """`env` with added variables, so that a program sees as many under cairn as under DHAT."""
    difference = (len(variables_under(DHAT_COMMAND, env)) -
                  len(variables_under(cairn_command(scratch), env)))
    assert difference >= 0
    return {**env, **{f"FILLER_{number}": "filled" for number in range(difference)}}


@pytest.fixture
def both(scratch):
    """both(command, more) -> (totals by cairn, Dhat, zero requests, cairn's pid) of one command."""
    def run(command, more=None):
        env = small_environment(scratch, more)
        pid, recorded = run_known([*cairn_command(scratch), *command], same_count_environment(scratch, env))
        dhat = Dhat(command, scratch, env=env, cwd=env["PWD"])
        assert recorded.returncode == dhat.finished.returncode == 0, recorded.stderr
        assert recorded.stdout == dhat.finished.stdout
        recording = Recording(scratch / "x.cairn", recorded)
        recording.assert_whole()
        return recording.totals, dhat, zero_requests(scratch, command, env), pid
    return run


def zero_requests(scratch, command, env):
    """The number of successful requests for zero bytes in the command."""
    counted = scratch / "zero"
    counted.unlink(missing_ok=True)  # it is appended to
    subprocess.run(command, env={**env, "ZERO_REQUESTS": str(counted),
                                 "LD_PRELOAD": str(PROGRAMS / "libzero_requests.so")},
                   cwd=env["PWD"], capture_output=True, check=True, timeout=120)
    return int(counted.read_text())


def assert_agrees(totals, dhat, zeros, more_blocks=0, more_bytes=0):
    """Assert that cairn's totals are DHAT's plus the computed differences."""
    assert totals["allocations"] == dhat.blocks + more_blocks
    assert totals["allocated_bytes"] == dhat.bytes + more_bytes - zeros


def test_sqlite(both):
    totals, dhat, zeros, _ = both(["/usr/bin/sqlite3", "-batch", ":memory:", SQL])
    assert dhat.blocks > 2000
    assert_agrees(totals, dhat, zeros)


def test_xz(both, scratch):
    source = scratch / "numbers"
    source.write_text("\n".join(str(number * 7919 % 100003) for number in range(4_000)))
    totals, dhat, zeros, _ = both(["/usr/bin/xz", "-6", "-T1", "-k", "-c", str(source)])
    assert dhat.bytes > 90_000_000
    assert_agrees(totals, dhat, zeros)


def test_git(both, scratch):
    repository = scratch / "repository"
    repository.mkdir()
    env = small_environment(scratch, {
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b", "GIT_AUTHOR_DATE": "1700000000 +0000",
        "GIT_COMMITTER_DATE": "1700000000 +0000"})

    def git(*words):
        subprocess.run(["git", "-C", repository, *words], env=env, check=True, capture_output=True)
    git("init", "-q")
    for number in range(12):
        (repository / f"file{number % 4}").write_text("".join(
            f"line {line * number}\n" for line in range(300)))
        git("add", "-A")
        git("commit", "-q", "-m", f"change {number}")
    totals, dhat, zeros, _ = both(["/usr/bin/git", "-C", str(repository), "--no-pager", "log", "-p", "--stat"])
    assert dhat.blocks > 1000
    assert_agrees(totals, dhat, zeros)


def environment_cost(variables):
    """(blocks, bytes) of python's copy: a bytes object each for name and value, of 33 bytes and
    their length. Objects of at most one byte are shared."""
    texts = [text for pair in variables.items() for text in pair if len(text) > 1]
    return len(texts), sum(33 + len(text) for text in texts)


def blocks_by_place(dhat):
    """{code that requested memory: [blocks, bytes]}; frame 0 is valgrind's own malloc."""
    places = {}
    for point in dhat.points:
        place = dhat.frames[point["fs"][1]]
        sums = places.setdefault(place, [0, 0])
        sums[0] += point["tbk"]
        sums[1] += point["tb"]
    return places


def identity_cost(dhat, scratch, env):
    """Difference in bytes of thread identities between Linux and valgrind.

    A run with a thousand times as many identities shows the place that makes them.
    """
    few, many = (blocks_by_place(Dhat(
        ["/usr/bin/python3", "-S", "-c", f"import _thread\nfor _ in '.' * {count}: _thread.get_ident()"],
        scratch, env=env, cwd=env["PWD"])) for count in (1, 1001))
    found = [place for place in many
             if many[place][0] - few.get(place, [0, 0])[0] == 1000]
    assert len(found) == 1, found
    blocks, size = blocks_by_place(dhat)[found[0]]
    assert size == 28 * blocks
    return 4 * blocks


def test_python(both, scratch):
    more = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    env = small_environment(scratch, more)
    totals, dhat, zeros, pid = both(["/usr/bin/python3", "-S", "-c", PYTHON], more)
    assert dhat.blocks > 50_000
    # The variables hold cairn's pid, which may be longer from one run to the next.
    ours = environment_cost(variables_under(cairn_command(scratch), same_count_environment(scratch, env), pid))
    theirs = environment_cost(variables_under(DHAT_COMMAND, env))
    assert_agrees(totals, dhat, zeros, ours[0] - theirs[0],
                  ours[1] - theirs[1] + identity_cost(dhat, scratch, env))
