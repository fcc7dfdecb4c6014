# SPDX-License-Identifier: MIT
"""cairn is upgraded while programs are recorded: a package manager replaces its files between an attach and the detach,
before a recorded program executes another one, and between two recordings of one process.

The new files are those of the build without debug information: other bytes and another build-id. A library of another
version of the session is refused by `unit.target.session_join`."""
import os
import shutil
import subprocess

import pytest

import conversation
import test_attach
from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment
from test_attach import Attachable
from waiting import DEADLINE_SECONDS, read_until


class Installed:
    """A copy of cairn, in folders as a package has them."""

    def __init__(self, root):
        self.root, self.cairn = root, root / "bin/cairn"
        for folder in ("bin", "lib/cairn"):
            shutil.copytree(CAIRN.parent.parent / folder, root / folder)

    def upgrade(self):
        """Put other files in the place of each, as dpkg does: a new file, which is renamed."""
        for path in [self.cairn, *(self.root / "lib/cairn").iterdir()]:
            new = path.with_suffix(".dpkg-new")
            subprocess.run(["objcopy", "--strip-debug", "--remove-section", ".note.gnu.build-id", path, new], check=True)
            assert new.read_bytes() != path.read_bytes()
            os.replace(new, path)


@pytest.fixture(name="installed")
def fixture_installed(scratch, monkeypatch):
    installed = Installed(scratch / "usr")
    monkeypatch.setattr(test_attach, "CAIRN", installed.cairn)
    monkeypatch.setattr(conversation, "CAIRN", installed.cairn)
    return installed


def test_the_files_are_replaced_between_attach_and_detach(installed, scratch):
    with Attachable(scratch) as program:
        program.attach()
        program.do("a 3 100")
        installed.upgrade()
        program.do("a 4 1000", "t 2 10")
        program.ctl("checkpoint")  # the new cairn asks the old recorder
        recording = program.detach()
        assert_totals(recording, {"allocations": 9, "allocated_bytes": 4320, "frees": 2})
        program.attach()  # the new one, where the old one was
        program.do("a 5 200", "f 1")
        recording = program.detach()
        program.do("a 1 10")
        program.end()
    assert_totals(recording, {"allocations": 5, "allocated_bytes": 1000})


def test_a_started_program_executes_another_after_the_upgrade(installed, scratch):
    """The other one loads the new library, and the old recorder records it."""
    path = scratch / "x.cairn"
    words = [installed.cairn, "record", "-q", "-o", path, "--", "sh", "-c", f"echo one; read line; exec {PROGRAMS}/malloc_family"]
    with subprocess.Popen(words, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        read_until(run.stdout.fileno(), b"one\n")
        installed.upgrade()
        _, errors = run.communicate(b"go on\n", timeout=DEADLINE_SECONDS)
    assert (run.returncode, errors) == (0, b"")
    recording = Recording(path, None)
    recording.assert_whole()
    assert recording.notes.get("unrecorded_processes", 0) == 0
    assert any(frame["function"] == "main" and frame["module"].endswith("malloc_family")
               for _, frames in recording.stacks() for frame in frames)
