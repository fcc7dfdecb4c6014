# SPDX-License-Identifier: MIT
"""Rotation: states of a recording that are kept under names with a time, and the disk that they take."""
import contextlib
import json
import re
import resource
import signal
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment
from conversation import Conversation, ctl
from waiting import DEADLINE_SECONDS, wait_until

NAME = re.compile(r"c\.\d{8}T\d{6}Z(?:_\d\d)?\.cairn")
ON_REQUEST = ["--checkpoint-interval", "0"]


def kept(folder):
    return sorted(path for path in folder.iterdir() if NAME.fullmatch(path.name))


def allocations(path):
    return Recording(path, None).totals["allocations"]


def test_each_kept_file_has_everything_until_then(scratch):
    with Conversation(scratch / "c.cairn", ON_REQUEST) as c:
        c.do("a 10 100")
        assert c.ctl("rotate").split() == ["kept", "as", str(kept(scratch)[0])]
        c.do("f 4", "a 5 100")
        c.ctl("rotate")
        c.do("a 1 100")
        c.ctl("checkpoint")
        first, second = kept(scratch)
        assert [allocations(path) for path in (first, second, c.path)] == [10, 15, 16]
        c.end()
    run = subprocess.run([CAIRN, "diff", "--json", first, second], capture_output=True, check=False, timeout=60,
                         env=environment())
    assert run.returncode in (0, 1), run.stderr  # 1: it found growth
    document = json.loads(run.stdout)  # what happened between the two
    difference = {key: document["totals"][key]["change"] for key in ("allocations", "frees", "live_bytes")}
    assert difference == {"allocations": 5, "frees": 4, "live_bytes": 100}
    for path in (first, second):
        subprocess.run([CAIRN, "verify", path], check=True, capture_output=True, timeout=60, env=environment())
        assert path.stat().st_mode & 0o777 == 0o600


def test_each_of_several_requests_is_answered_by_a_kept_file(scratch):
    with Conversation(scratch / "c.cairn", ON_REQUEST) as c:
        c.do("a 10 100")
        requests = [subprocess.Popen([CAIRN, "ctl", c.path, "rotate"], stdout=subprocess.PIPE, text=True,
                                     env=environment()) for _ in range(6)]
        answers = [request.communicate(timeout=DEADLINE_SECONDS)[0] for request in requests]
        c.end()
    assert {answer.split()[-1] for answer in answers} == {str(path) for path in kept(scratch)}
    assert all(answer.startswith("kept as ") for answer in answers)
    assert {allocations(path) for path in kept(scratch)} == {10}


def test_states_are_kept_by_the_clock_and_at_the_end(scratch):
    """On a busy machine the first one may be older than the program's first block."""
    with Conversation(scratch / "c.cairn", ["--rotate", "1s", *ON_REQUEST]) as c:
        c.do("a 3 100")
        wait_until(lambda: 3 in map(allocations, kept(scratch)), "the state with the blocks")
        assert max(map(allocations, kept(scratch))) == 3
        c.do("a 4 100")
        c.end()
    assert allocations(kept(scratch)[-1]) == 7 and kept(scratch)[-1].samefile(c.path)


def test_states_are_kept_by_size_and_at_the_end(scratch):
    with Conversation(scratch / "c.cairn", ["--rotate", "1B", *ON_REQUEST]) as c:
        c.do("a 3 100")
        c.ctl("checkpoint")
        (first,) = kept(scratch)
        assert first.samefile(c.path) and allocations(first) == 3
        c.do("a 4 100")
        c.end()
    assert allocations(first) == 3 and allocations(kept(scratch)[-1]) == 7


def test_the_disk_is_bounded_over_runs(scratch):
    options = [*ON_REQUEST, "--rotate", "1h", "--max-disk", "1"]
    for _ in range(2):
        with Conversation(scratch / "c.cairn", options) as c:
            c.do("a 3 100")
            c.ctl("rotate")
            c.ctl("rotate")
            c.end()
        assert [path.name for path in scratch.iterdir()] == ["c.cairn"]


def test_the_last_state_of_a_killed_recorder_is_not_lost(scratch):
    options = [*ON_REQUEST, "--rotate", "1h", "--keep", "7d"]
    with Conversation(scratch / "c.cairn", options) as c:
        c.do("a 3 100")
        c.ctl("checkpoint")
        c.process.send_signal(signal.SIGKILL)
        c.process.wait(timeout=DEADLINE_SECONDS)
    with Conversation(scratch / "c.cairn", options) as c:
        c.do("a 5 100")
        c.end()
    assert [allocations(path) for path in kept(scratch)] == [3, 5]


@pytest.fixture(params=["disk", "limit"])
def filling(request, scratch):
    """(folder, fill, empty): a file system without room, or files of the recorder without room."""
    folder = scratch / "disk"
    folder.mkdir()
    if request.param == "disk" and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder],
                                                  capture_output=True, check=False).returncode == 0:
        filler = folder / "filler"
        with contextlib.ExitStack() as stack:
            stack.callback(subprocess.run, ["umount", "-l", folder], check=True)
            yield folder, lambda _: subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4k"], check=False,
                                                   capture_output=True), lambda _: filler.unlink()
    else:
        limit = resource.RLIMIT_FSIZE
        yield (folder, lambda pid: resource.prlimit(pid, limit, (1, resource.RLIM_INFINITY)),
               lambda pid: resource.prlimit(pid, limit, (resource.RLIM_INFINITY,) * 2))


def test_writing_resumes_when_a_full_disk_has_room_again(filling):
    """Nothing of what happened meanwhile is missing, states are kept again, and both turns are said once."""
    folder, fill, empty = filling
    with Conversation(folder / "c.cairn", [*ON_REQUEST, "--rotate", "1h", "--keep", "7d"]) as c:
        c.do("a 3 100")
        c.ctl("rotate")
        fill(c.process.pid)
        c.do("a 4 100")
        for _ in range(2):
            assert "cannot write" in c.ctl("checkpoint", status=1)
        assert allocations(c.path) == 3 and len(kept(folder)) == 1
        empty(c.process.pid)
        c.do("a 5 100")
        c.ctl("rotate")
        assert [allocations(path) for path in kept(folder)] == [3, 12]
        _, errors = c.process.communicate(b"q\n", timeout=DEADLINE_SECONDS)
    assert c.process.returncode == 0 and Recording(c.path, None).totals["allocations"] == 12
    first, second = errors.decode().splitlines()
    assert first.endswith("the program continues, the file keeps its last checkpoint"), errors
    assert second == "cairn: the recording can be written again", errors


@pytest.mark.parametrize("options, words", [
    (["--keep", "7d"], "need --rotate"), (["--max-disk", "1G"], "need --rotate"), (["--rotate", "10ms"], "a second"),
    (["--rotate", "1h", "--keep", "1d"], "--output"),
    (["--rotate", "1h", "--max-disk", "1G", "-o", "x.%p.cairn"], "%p"), (["--rotate", "often"], "--rotate"), (["--rotate", "0M"], "--rotate"),
])
def test_what_makes_no_sense_is_refused_in_words(options, words, scratch):
    run = subprocess.run([CAIRN, "record", *options, "--", "true"], capture_output=True, text=True, check=False,
                         timeout=DEADLINE_SECONDS, cwd=scratch, env=environment())
    assert run.returncode == 2 and words in run.stderr and run.stderr.count("\n") == 1


def test_a_state_that_cannot_be_kept_is_said_and_recording_goes_on(scratch):
    folder = scratch / "c"
    folder.mkdir()
    with Conversation(folder / "c.cairn", ON_REQUEST) as c:
        c.do("a 2 10")
        folder.rename(scratch / "elsewhere")
        assert "No such file" in ctl(c.process.pid, "rotate", status=1)
        (scratch / "elsewhere").rename(folder)
        c.ctl("rotate")
        assert len(kept(folder)) == 1
        c.end()


MOVING = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
int execve(const char *path, char *const *arguments, char *const *variables)
{
    if (strstr(path, "obedient") != NULL) {
        (void)rename(getenv("MOVED"), getenv("MOVED_TO"));
    }
    return (int)syscall(SYS_execve, path, arguments, variables);
}
"""


def test_a_folder_may_move_before_the_recorder_looks_again(scratch):
    """The program's first act may come before the recorder's next one: here it is the last before the program."""
    folder, library = scratch / "c", scratch / "moving.so"
    folder.mkdir()
    subprocess.run(["gcc", "-xc", "-", "-shared", "-fPIC", "-o", library], input=MOVING, text=True, check=True)
    with Conversation(folder / "c.cairn", ON_REQUEST, env={
            "LD_PRELOAD": str(library), "MOVED": str(folder), "MOVED_TO": str(scratch / "elsewhere")}) as c:
        assert not folder.exists()
        c.do("a 2 10")
        assert "No such file" in ctl(c.process.pid, "rotate", status=1)
        (scratch / "elsewhere").rename(folder)
        c.ctl("rotate")
        assert len(kept(folder)) == 1
        c.end()
