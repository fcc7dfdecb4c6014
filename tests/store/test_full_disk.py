# SPDX-License-Identifier: MIT
"""`cairn store` on a disk without one free block: what is read, what makes room, and what a death leaves.

Oracles: the kernel's count of free blocks, Python's sqlite3, and the drawings. Where mounting is not allowed, a limit
on the size of files is what is left to test: it says so, and nothing changes.
"""
import contextlib
import os
import pathlib
import resource
import signal
import sqlite3
import subprocess

import pytest

from drawn import CAIRN, draw_to, environment
from fleet import Fleet, Store

DISK_BYTES = 2 << 20


@pytest.fixture(name="fleet", scope="module")
def fixture_fleet(tmp_path_factory):
    return Fleet(tmp_path_factory.mktemp("fleet"))


@pytest.fixture(name="disk")
def fixture_disk(tmp_path):
    """A folder on a small file system of its own; None if this machine does not allow that."""
    folder = tmp_path / "disk"
    folder.mkdir()
    is_mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", folder],
                                capture_output=True, check=False).returncode == 0
    yield folder if is_mounted else None
    if is_mounted:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture(name="aside", autouse=True)
def fixture_aside(tmp_path, monkeypatch):
    """Where the log goes: a disk that is not full."""
    folder = tmp_path / "aside"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def fill(disk):
    with open(disk / "filler", "ab", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    assert free_blocks(disk) == 0


def free_blocks(disk):
    return os.statvfs(disk).f_bfree


def check_limit(fleet, folder):
    """Without a disk of its own: prune under a limit on the size of files."""
    store = Store(folder / "store.db")
    fleet.add(store)
    message = store.run("prune", "--version", "1.1", status=2, preexec_fn=lambda: (
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))))
    assert "File too large" in message or "a limit on the size of files (ulimit -f)" in message, message
    assert len(store.rows("list", "-n", "0")) == len(fleet.recordings)


def check(store, disk, aside, count):
    """That the store has `count` sound recordings, and that nothing else is left."""
    assert len(store.rows("list", "-n", "0")) == count
    assert {path.name for path in disk.iterdir()} - {"store.db-shm"} == {"store.db", "filler"}
    assert list(aside.iterdir()) == []
    (disk / "filler").unlink()
    with contextlib.closing(sqlite3.connect(store.place)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_full_disk_can_be_read_and_emptied(fleet, disk, aside, tmp_path):
    if disk is None:
        check_limit(fleet, tmp_path)
        return
    store = Store(disk / "store.db")
    fleet.add(store)
    size = store.place.stat().st_size
    fill(disk)
    more = tmp_path / "more.cairn"
    draw_to(more, "main;f 1 8 0 0 0 0 1 8 8\n")
    before = store.rows("list", "-n", "0")
    assert len(before) == len(fleet.recordings)
    assert store.run("add", more, status=2) == f"cairn: the disk of the store '{store.place}' is full\n"
    assert store.run("prune", "--version", "1.1") == "8 removed\n"
    assert store.rows("list", "-n", "0") == [row for row in before if row["version"] != "1.1"]
    fill(disk)
    assert store.run("prune", "--since", "2020-01-01") == "16 removed\n"
    assert store.place.stat().st_size < size
    assert free_blocks(disk) * os.statvfs(disk).f_frsize >= size - store.place.stat().st_size
    check(store, disk, aside, 0)


def test_a_log_that_the_disk_cannot_take_back_moves_too(fleet, disk, aside, tmp_path):
    """A writer that died has left in the log what it committed, and the store has no room for that."""
    if disk is None:
        check_limit(fleet, tmp_path)
        return
    store = Store(disk / "store.db")
    fleet.add(store)
    script = ("import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('CREATE TABLE large(a)'); "
              "db.execute('INSERT INTO large VALUES(zeroblob(700000))'); db.commit(); os._exit(0)")
    subprocess.run(["/usr/bin/python3", "-c", script, store.place], check=True)
    assert pathlib.Path(f"{store.place}-wal").stat().st_size > 700000 > store.place.stat().st_size
    fill(disk)
    assert store.run("prune", "--version", "1.1") == "8 removed\n"
    with contextlib.closing(sqlite3.connect(f"file:{store.place}?mode=ro&immutable=1", uri=True)) as database:
        assert database.execute("SELECT length(a) FROM large").fetchall() == [(700000,)]
    check(store, disk, aside, len(fleet.recordings) - 8)


DEATHS = [("symlink", 1), ("rename", 1), ("unlink", 1), ("unlink", 2), ("rmdir", 1), ("ftruncate", 1),
          *(("fsync", number) for number in (1, 2, 3)), *(("pwrite64", number) for number in (1, 2, 3, 6, 10, 20, 40))]


@pytest.mark.parametrize("call, number", DEATHS)
def test_a_death_at_any_write_leaves_all_or_none(fleet, disk, tmp_path, call, number):
    """The next command finds the log, wherever it is, and prune can be run again."""
    if disk is None:
        check_limit(fleet, tmp_path)
        return
    store = Store(disk / "store.db")
    fleet.add(store)
    fill(disk)
    subprocess.run(["strace", "-q", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                    f"inject={call}:signal=KILL:when={number}", CAIRN, "store", "prune", "--store", store.place,
                    "--version", "1.1"], env=environment({"ASAN_OPTIONS": "detect_leaks=0"}), capture_output=True,
                   check=False)
    left = len(store.rows("list", "-n", "0"))
    assert left in (len(fleet.recordings), len(fleet.recordings) - 8)
    assert store.run("prune", "--version", "1.1") == f"{left - len(fleet.recordings) + 8} removed\n"
    assert len(store.rows("list", "-n", "0")) == len(fleet.recordings) - 8
    assert {path.name for path in disk.iterdir()} - {"store.db-shm"} == {"store.db", "filler"}
    with contextlib.closing(sqlite3.connect(f"file:{store.place}?mode=ro&immutable=1", uri=True)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_only_a_link_of_this_user_leads_to_a_log(fleet, tmp_path):
    """To a private folder of his; else the store says what is missing, and nothing at the link's end changes."""
    store = Store(tmp_path / "store.db")
    fleet.add(store)
    victim = tmp_path / "open" / "wal"
    victim.parent.mkdir(mode=0o755)
    victim.write_text("not a log")
    log = pathlib.Path(f"{store.place}-wal")
    for target in (victim, tmp_path / "gone" / "wal", tmp_path / "file"):
        log.symlink_to(target)
        expected = f"cairn: the store '{store.place}' needs its log '{target}', which is gone or another user's\n"
        assert store.run("list", status=2) == expected
        assert store.run("prune", "--version", "1.1", status=2) == expected
        log.unlink()
    assert victim.read_text() == "not a log"
    assert len(store.rows("list", "-n", "0")) == len(fleet.recordings)
