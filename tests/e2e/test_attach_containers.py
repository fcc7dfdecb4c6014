# SPDX-License-Identifier: MIT
"""Attaching from outside to programs in containers: other namespaces, another root, another libc.
Nothing of cairn is inside. The counts are the test's own commands; the names of functions come from
files that only the container has."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from cairn_run import PROGRAMS, assert_totals
from test_attach import Attachable
from waiting import wait_until

MUSL = pathlib.Path("/lib/ld-musl-x86_64.so.1")
NAMESPACES = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--time", "--fork",
              "--mount-proc"]
ROOT = ["bwrap", "--unshare-all", "--bind", "{root}", "/", "--proc", "/proc", "--dev", "/dev"]
SYSTEM = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
          "--ro-bind", PROGRAMS, PROGRAMS]  # they may be in /tmp


def libraries_of(program):
    """The files that its loader maps, by their paths."""
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    words = [word for line in listing.splitlines() for word in line.split()]
    return [pathlib.Path(word) for word in words if word.startswith("/")]


def make_root(folder, program):
    """A root with /app/PROGRAM and what it needs, and nothing else; return the program's path there."""
    needed = [MUSL] if "musl" in program.name else libraries_of(program)
    for file in [program, *needed]:
        place = folder / (f"app/{file.name}" if file == program else str(file)[1:])
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, place)  # follows links
    for name in ("proc", "dev"):
        (folder / name).mkdir()
    return f"/app/{program.name}"


@pytest.fixture
def podman(scratch):
    """The command that runs a program in a container of podman, with its usual filter of system calls and
    its usual capabilities, and writes the number of its process to the file "pid". The limits are low
    enough for a user that may not raise them."""
    with tempfile.TemporaryDirectory(prefix="cairn-") as state:  # podman wants a short name
        store = ["--root", scratch / "store", "--runroot", state, "--storage-driver=vfs"]
        runtime = ["--runtime=runc"] if shutil.which("runc") else []
        yield ["env", "-u", "XDG_CONFIG_HOME", "podman", *store, *runtime, "run", "--rm", "-i", "--network=none",
               "--pidfile", scratch / "pid", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024", "--rootfs"]


def innermost(pid):
    """The last process of a chain of children."""
    while True:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        if not children:
            return pid
        (pid,) = map(int, children)


class Contained(Attachable):
    """`begin` attaches to the program itself, the innermost process."""

    def attach(self, *options):
        self.begin(*options, "-p", str(innermost(self.process.pid)))


WAYS = {"namespaces": NAMESPACES, "users": [*NAMESPACES, "--user", "--map-root-user"], "bubblewrap": SYSTEM}


def assert_a_part_is_counted(program, attach):
    """Record a part of the program `obedient`."""
    program.do("a 5 100")
    attach()
    program.do("a 7 1000", "f 6", "t 3 10")
    recording = program.detach()
    program.do("a 1 100")
    program.end()
    assert_totals(recording, {"allocations": 10, "allocated_bytes": 7030, "frees": 4, "unknown_frees": 5})
    assert any("keep" in [frame["function"] for frame in frames] for _, frames in recording.stacks())


@pytest.mark.parametrize("way", WAYS)
def test_a_program_in_other_namespaces(scratch, way):
    with Contained(scratch, [*WAYS[way], PROGRAMS / "obedient"]) as program:
        assert_a_part_is_counted(program, program.attach)


def test_the_program_of_another_root_has_its_names(scratch):
    """The path is none outside, and its libc is another file."""
    (scratch / "root").mkdir()
    inside = make_root(scratch / "root", PROGRAMS / "obedient")
    copy = scratch / "root" / inside[1:]  # without what would find it elsewhere, or in the cache of names
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", copy], check=True)
    assert not os.path.exists(inside)
    way = [word.format(root=scratch / "root") for word in ROOT]
    with Contained(scratch, [*way, inside]) as program:
        program.attach()
        program.do("a 7 1000")
        recording = program.detach()
        program.end()
    assert_totals(recording, {"allocations": 7, "allocated_bytes": 7000})
    (main,) = recording.report["processes"]
    assert main["executable"] == inside
    (functions,) = [[frame["function"] for frame in frames] for _, frames in recording.stacks()]
    assert "keep" in functions and "main" in functions


def test_the_program_of_another_root_with_another_libc(scratch):
    """musl, dynamically linked: one round is 280 allocations of 41370 bytes."""
    (scratch / "root").mkdir()
    inside = make_root(scratch / "root", PROGRAMS / "attach" / "musl_dynamic")
    way = [word.format(root=scratch / "root") for word in ROOT]
    with Contained(scratch, [*way, inside]) as program:
        program.do("r")
        program.attach()
        program.do("r", "r")
        recording = program.detach()
        program.do("r")
        program.end()
    assert_totals(recording, {"allocations": 2 * 280, "allocated_bytes": 2 * 41370, "frees": 2 * 280})


def test_the_container_can_end_while_it_is_recorded(scratch):
    """Its files go with its root; what was read before stays."""
    with Contained(scratch, [*WAYS["namespaces"], PROGRAMS / "obedient"]) as program:
        program.attach()
        program.do("a 3 100")
        inner = innermost(program.process.pid)
        program.end()
        wait_until(lambda: not os.path.exists(f"/proc/{inner}"), "the end of the program")
        recording = program.finish()
    assert recording.totals["allocations"] >= 3


@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed")
def test_a_program_in_podman(scratch, podman):
    (scratch / "root").mkdir()
    inside = make_root(scratch / "root", PROGRAMS / "obedient")
    trial = subprocess.run([*podman, scratch / "root", "/none"], capture_output=True, check=False, timeout=60)
    if trial.returncode != 127:
        pytest.skip(f"podman runs no containers here: {trial.stderr.decode()}")
    with Attachable(scratch, [*podman, scratch / "root", inside]) as program:
        assert_a_part_is_counted(
            program, lambda: program.begin("-p", (scratch / "pid").read_text(encoding="ascii")))
