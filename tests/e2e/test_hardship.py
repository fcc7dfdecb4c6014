# SPDX-License-Identifier: MIT
"""The recorder dies, the disk fills, the file is truncated: the program continues, and the data
written so far can be read."""
import ctypes
import json
import os
import resource
import signal
import subprocess
import tempfile

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment, some_of
from waiting import read_to_end, read_until, wait_until

PR_SET_CHILD_SUBREAPER = 36
PAIRS_BEFORE = 20_000
PAIRS_AFTER = 300_000  # much more than all lanes hold


@pytest.fixture
def adopt_orphans():
    """Make programs with a dead parent children of the test, so that their exit status is
    available."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    yield
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) == 0


def start_worker(path, *options, before=PAIRS_BEFORE, after=PAIRS_AFTER, **settings):
    """Start the worker under cairn and return when it waits for its line."""
    worker = subprocess.Popen(
        [CAIRN, "record", *options, "-o", path, "--", PROGRAMS / "worker", str(before),
         str(after)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        **settings)
    said = read_until(worker.stdout.fileno(), b"\n")
    assert said.startswith(b"started ")
    return worker, int(said.split()[1])


def allocations_in(path):
    """How many allocations a file that is being written has; 0 if it does not open yet."""
    run = subprocess.run([CAIRN, "report", "--json", "-n", "1", path], capture_output=True, check=False,
                         env=environment(), timeout=60)
    return json.loads(run.stdout)["totals"]["allocations"] if run.returncode == 0 else 0


def test_a_killed_recorder_leaves_the_program_alone(scratch, adopt_orphans):
    path = scratch / "out.cairn"
    cairn, pid = start_worker(path, "-q", "--checkpoint-interval", "50ms")
    wait_until(lambda: allocations_in(path) > 0, "a checkpoint")
    cairn.kill()
    assert cairn.wait() == -signal.SIGKILL
    cairn.stdin.write(b"go on\n")
    cairn.stdin.flush()
    assert read_to_end(cairn.stdout.fileno()) == b"finished\n"
    assert read_to_end(cairn.stderr.fileno()) == b""
    assert os.waitpid(pid, 0) == (pid, 0)
    cairn.stdin.close()

    report = Recording(path, None, stacks_max=1).report
    assert report["run"]["state"] == "running", "the file says that the run had not ended"
    assert report["run"]["checkpoint_interval_ms"] >= 50, "and when a newer one was to come"
    assert 0 < report["totals"]["allocations"] <= PAIRS_BEFORE
    text = subprocess.run([CAIRN, "report", "--all", path], capture_output=True, check=False,
                          env=environment(), timeout=60)
    assert text.returncode == 0
    assert (text.stdout + text.stderr).count(b"descend") > 0
    assert b"the file is updated every " in text.stdout


def test_a_file_opens_while_the_program_runs(scratch):
    path = scratch / "out.cairn"
    cairn, _ = start_worker(path, "-q", "--checkpoint-interval", "50ms", after=1000)
    wait_until(lambda: allocations_in(path) >= PAIRS_BEFORE, "all so far")
    assert Recording(path, None, stacks_max=1).totals["allocations"] == PAIRS_BEFORE
    out, err = cairn.communicate(b"go on\n", timeout=60)
    assert (cairn.returncode, out, err) == (0, b"finished\n", b"")
    recording = Recording(path, None, stacks_max=1)
    recording.assert_whole()
    assert recording.totals["allocations"] == PAIRS_BEFORE + 1000


# A small recording takes two pages. Two recordings fit. Both exist until the new one replaces the
# other's name. The first may be older than the first allocation.
DISK_BYTES = 16 << 10


def mount_disk(folder):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder],
                          capture_output=True, check=False).returncode == 0


def limit_files():
    """Limit the file size for the program and for cairn, whose larger writes fail too (with
    SIGXFSZ)."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 10, resource.RLIM_INFINITY))


@pytest.fixture(params=["disk", "limit"])
def small_disk(request, scratch):
    """(folder, function to start a process there), so that a file cannot grow beyond some KiB: a
    small file system if mounting is allowed, else a limit on the size of files."""
    folder = scratch / "disk"
    folder.mkdir()
    is_mounted = request.param == "disk" and mount_disk(folder)
    yield folder, None if is_mounted else limit_files
    if is_mounted:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_stops_the_file_and_not_the_program(small_disk):
    folder, limit = small_disk
    path = folder / "out.cairn"
    # Few stacks at first, so that the first checkpoint fits; then too many for the disk.
    cairn, _ = start_worker(path, "--checkpoint-interval", "20ms", before=16, after=500_000,
                            preexec_fn=limit)
    wait_until(lambda: allocations_in(path) > 0, "a checkpoint")
    out, err = cairn.communicate(b"go on\n", timeout=120)
    assert (cairn.returncode, out) == (0, b"finished\n")
    said = [line for line in err.decode().splitlines()
            if "space" in line.lower() or "too large" in line.lower()]
    assert len(said) == 1, err.decode()
    assert str(path) in said[0]
    assert said[0].endswith("the file keeps its last checkpoint")
    assert "500,016" in err.decode(), "the figures of the whole run are printed all the same"
    report = Recording(path, None, stacks_max=1).report
    assert report["totals"]["allocations"] > 0
    assert report["run"]["state"] == "running"


def test_what_could_never_be_written_is_reported_once(small_disk):
    """At the end, or in a run of more than a second at its first checkpoint."""
    folder, limit = small_disk
    path = folder / "out.cairn"
    (folder / "full").write_bytes(bytes(DISK_BYTES))
    before = 1 if limit is None else 100_000  # more stacks than a file of 8 KiB holds
    cairn, _ = start_worker(path, "--checkpoint-interval", "1h", before=before, after=1,
                            preexec_fn=limit)
    out, err = cairn.communicate(b"go on\n", timeout=120)
    assert (cairn.returncode, out) == (0, b"finished\n")
    assert f" allocations {before + 1:,} " in " ".join(err.decode().split())
    said = [line for line in err.decode().splitlines() if line.endswith(" no file has been written")]
    assert len(said) == 1, err.decode()
    assert os.listdir(folder) == ["full"]


def test_a_limit_on_files_is_the_programs_own(scratch):
    """The recorder raises the limit for itself."""
    run = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "out.cairn", "--", "/bin/sh", "-c",
                          "ulimit -f; head -c 100000 /dev/zero > big; kill -l $?"],
                         capture_output=True, text=True, check=False, env=environment(),
                         cwd=scratch, preexec_fn=limit_files, timeout=60)
    assert (run.returncode, run.stdout.split()) == (0, ["16", "XFSZ"]), run.stderr
    assert (scratch / "big").stat().st_size == 8 << 10


@pytest.mark.skipif(os.geteuid() != 0, reason="the number of a user's processes counts all of them")
def test_a_recorder_that_cannot_begin_says_so_at_once():
    user = 54321
    limit = (resource.RLIMIT_NPROC, (2, 2))  # the recorder and the program: no thread for the clock
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        cairn = subprocess.Popen([CAIRN, "record", "-o", f"{folder}/out.cairn", "--", "/bin/cat"], user=user,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=environment(), preexec_fn=lambda: resource.setrlimit(*limit))
        said = read_until(cairn.stderr.fileno(), b"\n")
        assert b"cannot start the recorder's clock" in said and b"the program continues" in said
        assert cairn.communicate(b"all of it", timeout=60) == (b"all of it", b"")
        assert cairn.returncode == 0 and os.listdir(folder) == []


def test_a_damaged_file_opens_up_to_the_last_whole_checkpoint(record, scratch):
    """Truncation at any point: no crash, but a report that says what is missing, or one
    sentence."""
    whole = record(PROGRAMS / "worker", 5000, 5000, stdin=b"\n", is_compared=False,
                   options=["--checkpoint-interval", "10ms"])
    content = whole.path.read_bytes()
    damaged = scratch / "damaged.cairn"
    answers = 0
    for part in some_of(range(1, 40), 12):
        damaged.write_bytes(content[:len(content) * part // 40])
        run = subprocess.run([CAIRN, "report", "--json", "-n", "1", damaged], capture_output=True,
                             check=False, env=environment(), timeout=60)
        assert run.returncode in (0, 2), run.stderr
        if run.returncode == 0:
            answers += 1
            report = json.loads(run.stdout)
            assert report["damage"], part
            assert report["totals"]["allocations"] <= 10_000
        else:
            assert run.stderr.startswith(b"cairn: ") and run.stderr.count(b"\n") == 1
    assert answers > 0


def test_a_flipped_byte_is_noticed(record, scratch):
    whole = record(PROGRAMS / "calls")
    content = bytearray(whole.path.read_bytes())
    damaged = scratch / "damaged.cairn"
    for part in range(1, 20):
        place = len(content) * part // 20
        content[place] ^= 0x55
        damaged.write_bytes(content)
        content[place] ^= 0x55
        run = subprocess.run([CAIRN, "report", "--json", "-n", "1", damaged], capture_output=True,
                             check=False, env=environment(), timeout=60)
        assert run.returncode in (0, 2), run.stderr
        if run.returncode == 0:
            report = Recording(damaged, None).report
            assert report["damage"] or report == whole.report, place


@pytest.mark.parametrize("options", [[], ["--no-symbols"]])
def test_a_small_limit_on_the_stack_is_the_programs_alone(scratch, options):
    """libdw has tables of lines on the stack: larger than the limit for some units of libc."""
    caches = [scratch / "recording", scratch / "reading"]
    settings = [{"env": environment({"XDG_CACHE_HOME": str(cache)}), "check": True, "timeout": 60,
                 "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, -1))}
                for cache in caches]
    for cache in caches:
        cache.mkdir()
    said = subprocess.run([CAIRN, "record", "-q", "-o", scratch / "x.cairn", *options, "--", "sh", "-c",
                           "ulimit -s; ls -l /etc"], stdout=subprocess.PIPE, **settings[0]).stdout
    assert said.startswith(b"128\n")
    report = subprocess.run([CAIRN, "report", "--all", scratch / "x.cairn"], stdout=subprocess.PIPE, **settings[1])
    assert b".c:" in report.stdout, "there are no lines of libc: is its debug information installed?"


def test_a_program_is_entered_with_a_small_stack(scratch):
    """An attach reads code of the allocators, and the page is written deep in the stack."""
    path = scratch / "x.cairn"
    for command in [["record", "-q", "--all-allocators", "-o", path, "--", "ls"],
                    ["export", "--html", "-o", scratch / "x.html", path]]:
        subprocess.run([CAIRN, *command], env=environment(), check=True, timeout=60, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (96 << 10, -1)))


def test_a_limit_on_addresses_of_cairn_itself_is_named(scratch):
    said = subprocess.run([CAIRN, "record", "-o", scratch / "x.cairn", "--", "true"], env=environment(), check=False,
                          timeout=60, stderr=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
    assert said.returncode == 126
    assert b"the limit on addresses is too low to record" in said.stderr and b"(ulimit -v)" in said.stderr


MAPPING = """import mmap, os, resource, sys
if len(sys.argv) > 1:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
child = os.fork()
mmap.mmap(-1, 3 << 30, mmap.MAP_PRIVATE, mmap.PROT_READ)
sys.exit(child != 0 and os.waitpid(child, 0)[1] != 0)
"""


@pytest.mark.parametrize("who", ["shell", "program"])
def test_a_limit_of_addresses_is_the_programs_alone(record, who):
    """What the recording reserves in the program fits into 4 GiB, and would leave too little of them."""
    python = ["/usr/bin/python3", "-S", "-c", MAPPING]
    command = ["sh", "-c", 'ulimit -v 4194304; exec "$@"', "sh", *python] if who == "shell" else [*python, "itself"]
    assert record(*command).finished.returncode == 0
