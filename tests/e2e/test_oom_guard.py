# SPDX-License-Identifier: MIT
"""`--oom-guard`: the file shows the heap of the last second before a kill for lack of memory. The
groups are folders of the test in the form of /sys/fs/cgroup; the limit and the use are its words.

So little is left that cairn saves each rest of a second, too: on a slow machine there are more checkpoints
than those that the test causes. So it waits for what the file says, and counts none."""
import pathlib
import signal
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment
from conversation import Conversation
from waiting import DEADLINE_SECONDS, wait_until


class Group:
    """The group that /proc/self/cgroup names, in a folder of the test."""

    def __init__(self, root):
        lines = [line.split(":", 2) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines()]
        own = next(((path, "") for number, names, path in lines if "memory" in names.split(",")), None)
        path, self.version = (own[0], 1) if own else (next(path for _, names, path in lines if not names), 2)
        self.folder = pathlib.Path(f"{root}{'/memory' if self.version == 1 else ''}{path}")
        self.folder.mkdir(parents=True)
        self.write({1: "memory.limit_in_bytes", 2: "memory.max"}[self.version], 1000000)
        self.use(100000)

    def write(self, name, number):
        beside = self.folder / "new"
        beside.write_text(f"{number}\n")
        beside.rename(self.folder / name)  # a reader finds the old or the new one, and no empty file

    def use(self, number):
        self.write({1: "memory.usage_in_bytes", 2: "memory.current"}[self.version], number)


class Guarded(Conversation):
    """A conversation whose recorder finds the groups beside its file."""

    def command(self, options, program):
        return ["/usr/bin/env", f"CAIRN_CGROUP_ROOT={self.path.parent / 'cgroup'}", *super().command(options, program)]

    def wait_for_file(self, condition):
        """The file of the first checkpoint of which that is true."""
        def look():
            file = Recording(self.path, None)
            return file if condition(file) else None
        return wait_until(look, "a checkpoint")


@pytest.fixture(name="group")
def fixture_group(scratch):
    return Group(scratch / "cgroup")


def test_the_file_has_the_heap_before_the_kill(group, scratch):
    group.use(930000)  # more than a sixteenth is left, and it does not grow
    with Guarded(scratch / "c.cairn", ["--checkpoint-interval", "0", "--oom-guard"]) as c:
        c.do("a 10 100")
        c.ctl("checkpoint")  # the recorder has looked at the group before it answers
        assert c.status()["marks"] == 0
        c.do("a 1 100")
        group.use(950000)
        first = c.wait_for_file(lambda file: file.report["marks"])
        assert first.totals["allocations"] == 11 and first.totals["live_bytes"] == 1100
        assert [mark["text"] for mark in first.report["marks"]] == ["memory limit near"]
        c.do("a 5 100")
        group.use(990000)  # it grows: once more, after a second
        c.wait_for_file(lambda file: file.totals["live_bytes"] == 1600)
        c.process.send_signal(signal.SIGKILL)  # the whole group, the recorder too
        c.process.wait(timeout=DEADLINE_SECONDS)
        last = Recording(c.path, None)
    assert last.report["run"]["state"] == "running" and last.totals["live_bytes"] == 1600


def test_fast_growth_is_noticed_early(group, scratch):
    with Guarded(scratch / "c.cairn", ["--checkpoint-interval", "0", "--oom-guard"]) as c:
        c.ctl("checkpoint")  # the recorder has looked at the group before it answers
        c.do("a 10 100")
        group.use(930000)  # most of the limit between two looks, up to eleven seconds apart
        assert c.wait_for_file(lambda file: file.report["marks"]).totals["allocations"] == 10
        c.end()


def test_without_the_option_nothing_is_written(group, scratch):
    with Guarded(scratch / "c.cairn", ["--checkpoint-interval", "0"]) as c:
        group.use(999999)
        c.do("a 10 100")
        c.ctl("checkpoint")
        assert c.status()["checkpoints"] == 1 and c.status()["marks"] == 0
        c.end()


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_kill_for_lack_of_memory_is_said_first(group, scratch, is_counted):
    """With the limit, the heap, and who held it; a SIGKILL alone is none."""
    kills = {1: "memory.oom_control", 2: "memory.events"}[group.version]
    (group.folder / kills).write_text("oom_kill_disable 0\noom_kill 3\n")
    with Guarded(scratch / "c.cairn") as c:
        c.do("a 10 100000")
        c.ctl("checkpoint")
        if is_counted:
            (group.folder / "new").write_text("oom_kill_disable 0\noom_kill 4\n")
            (group.folder / "new").rename(group.folder / kills)
        subprocess.run(["kill", "-KILL", str(c.status()["program_pid"])], check=True)
        c.process.wait(timeout=DEADLINE_SECONDS)
        recording = Recording(c.path, None)
    report = recording.report
    assert report["run"]["oom_limit_bytes"] == (1000000 if is_counted else 0)
    text = subprocess.run([CAIRN, "report", c.path], capture_output=True, text=True, check=True, env=environment()).stdout
    first = text.splitlines()[0]
    assert first.startswith("!! out of memory: limit 977 KiB, heap 977 KiB; ") == is_counted, first
    assert [entry["kind"] for entry in report["findings"]["items"] if entry["kind"] == "oom"] == ["oom"] * is_counted
