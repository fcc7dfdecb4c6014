# SPDX-License-Identifier: MIT
"""The file of a recording: its owner and permissions, the files that it never replaces, and the
messages when it cannot be written."""
import os
import pathlib
import pwd
import signal
import stat
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from conversation import Conversation, ctl
from waiting import DEADLINE_SECONDS

NOBODY = pwd.getpwnam("nobody")


def record(folder, *words, env=None, program=("/bin/true",), **settings):
    return subprocess.run([CAIRN, "record", *words, "--", *program], cwd=folder, env=environment(env),
                          capture_output=True, check=False, timeout=120, stdin=subprocess.DEVNULL, **settings)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("words, mode", [((), 0o600), (("--mode", "640"), 0o640), (("--mode", "0644"), 0o644)])
@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_a_recording_is_the_owners_alone_by_default(tmp_path, words, mode, umask):
    done = record(tmp_path, "-q", "-o", "r.cairn", *words, umask=umask)
    assert (done.returncode, done.stderr) == (0, b"")
    assert mode_of(tmp_path / "r.cairn") == mode
    assert [path.name for path in tmp_path.iterdir()] == ["r.cairn"]


def test_what_is_exported_goes_by_the_umask(tmp_path):
    record(tmp_path, "-q", "-o", "r.cairn")
    subprocess.run([CAIRN, "export", "--to", "json", "-o", "r.json", "r.cairn"], cwd=tmp_path, check=True,
                   umask=0o027, timeout=60)
    assert mode_of(tmp_path / "r.json") == 0o640


@pytest.mark.parametrize("mode", ["999", "7", "755", "06000", "", "rw", "200", "0o644"])
def test_modes_that_make_no_sense(tmp_path, mode):
    done = record(tmp_path, "--mode", mode)
    assert done.returncode == 2 and b"--mode" in done.stderr and list(tmp_path.iterdir()) == []


def test_under_sudo_files_are_the_callers(tmp_path):
    """Only root changes the owner of files; for other users sudo's variables have no effect."""
    owner = NOBODY.pw_uid if os.geteuid() == 0 else os.geteuid()
    sudo = {"SUDO_UID": str(NOBODY.pw_uid), "SUDO_GID": str(NOBODY.pw_gid)}
    assert record(tmp_path, "-q", "-o", "r.cairn", env=sudo).returncode == 0
    subprocess.run([CAIRN, "export", "--to", "json", "-o", "r.json", "r.cairn"], cwd=tmp_path, check=True,
                   env=environment(sudo), timeout=60)
    for name in ("r.cairn", "r.json"):
        assert (tmp_path / name).stat().st_uid == owner, name


def test_no_file_but_a_recording_is_overwritten(tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("important\n")
    done = record(tmp_path, "-o", "notes.txt", program=("/bin/sh", "-c", "echo ran"))
    assert (done.returncode, done.stdout) == (2, b""), done
    assert done.stderr.count(b"\n") == 1 and b"notes.txt" in done.stderr
    assert notes.read_text() == "important\n"
    for before in (b"", None):
        target = tmp_path / "again.cairn"
        if before is not None:
            target.write_bytes(before)
        assert record(tmp_path, "-q", "-o", target).returncode == 0
        assert record(tmp_path, "-q", "-o", target).returncode == 0  # a recording is


def test_another_users_link_in_a_public_folder_is_refused(tmp_path):
    """A link of one's own is followed; a test without root can only try that."""
    is_root = os.geteuid() == 0
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o1777)
    target = tmp_path / "mine.cairn"
    assert record(tmp_path, "-q", "-o", target).returncode == 0
    before = target.read_bytes()
    (public / "r.cairn").symlink_to(target)
    assert record(tmp_path, "-q", "-o", public / "r.cairn").returncode == 0 and target.read_bytes() != before
    before = target.read_bytes()
    if is_root:
        os.chown(public / "r.cairn", NOBODY.pw_uid, NOBODY.pw_gid, follow_symlinks=False)
    done = record(tmp_path, "-o", public / "r.cairn", program=("/bin/sh", "-c", "echo ran"))
    assert (done.returncode, target.read_bytes() == before) == ((2, True) if is_root else (0, False))
    assert not is_root or (b"another user" in done.stderr and done.stdout == b"")


def rows_of(path, table):
    """The entries of a table, as dump prints them."""
    printed = subprocess.run([CAIRN, "dump", "-t", table, path], check=True, capture_output=True,
                             timeout=120).stdout.decode().split("\n")[:-1]
    names = printed[0].split("\t")
    return [dict(zip(names, line.split("\t"))) for line in printed[1:]]


def test_modules_count_their_frames_that_have_names(tmp_path):
    """Of inlined functions the outermost counts, which is the last of a frame's symbols."""
    record(tmp_path, program=(PROGRAMS / "temporary",))
    (path,) = tmp_path.glob("*.cairn")
    symbols = rows_of(path, "symbols")
    wanted = [[0, 0, 0] for _ in rows_of(path, "modules")]
    for frame in rows_of(path, "frames"):
        last = int(frame["symbol_first"]) + int(frame["symbol_count"]) - 1
        real = symbols[last] if int(frame["symbol_count"]) > 0 else {"function": "", "line": "0"}
        if int(frame["module"]) < len(wanted):
            counts = wanted[int(frame["module"])]
            counts[0] += 1
            counts[1] += real["function"] != ""
            counts[2] += real["function"] != "" and real["line"] != "0"
    found = [[int(module[name]) for name in ("frames", "frames_with_function", "frames_with_line")]
             for module in rows_of(path, "modules")]
    assert found == wanted
    assert found[0][0] >= found[0][1] > found[0][2] > 0  # _start has no line


@pytest.mark.parametrize("name", ["plain-1.0_a,b:c@d+f.cairn", "two words.cairn", "it's $HOME.cairn", "`id`;#.cairn",
                                  'a"b\\c.cairn', "umlaut-\u00e4.cairn", "*.cairn", "''.cairn"])
def test_the_last_line_is_a_command_that_reads_the_recording(tmp_path, name):
    """Oracle: a shell."""
    said = record(tmp_path, "-o", name).stderr.decode()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    command = said.splitlines()[-1].strip()
    assert command.startswith("cairn report ")
    ran = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=False, timeout=60, capture_output=True,
                         env=environment({"PATH": f"{CAIRN.parent}:/usr/bin:/bin"}))
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == subprocess.run([CAIRN, "report", name], cwd=tmp_path, check=True, timeout=60,
                                        capture_output=True, env=environment()).stdout


@pytest.mark.parametrize("words, status", [((), 3), (("-q",), 3), (("--strict",), 2), (("-q", "--strict"), 2)])
def test_a_recording_that_cannot_be_written_is_reported(tmp_path, words, status):
    """The program removes the folder of the recording."""
    folder = tmp_path / "gone"
    folder.mkdir()
    done = record(tmp_path, "-o", folder / "r.cairn", *words,
                  program=("/bin/sh", "-c", f"rm -r {folder}; exit 3"))
    assert done.returncode == status, done
    assert b"cannot" in done.stderr and str(folder).encode() in done.stderr


def replace_by_a_link(output, target):
    output.unlink()
    output.symlink_to(target)


REPLACED = {
    "pipe": (lambda o: (o.unlink(), os.mkfifo(o)), "no regular file"),
    "link to a pipe": (lambda o: (os.mkfifo(o.with_name("pipe")), replace_by_a_link(o, "pipe")), "no regular file"),
    "device": (lambda o: replace_by_a_link(o, "/dev/null"), "no regular file"),
    "descriptor": (lambda o: replace_by_a_link(o, "/proc/self/fd/1"), "no regular file"),
    "folder": (lambda o: (o.unlink(), o.mkdir()), "Is a directory"),
    "link to nowhere": (lambda o: replace_by_a_link(o, "missing/r.cairn"), "No such file"),
    "moved folder": (lambda o: o.parent.rename(o.parent.with_name("elsewhere")), "No such file"),
}


@pytest.mark.parametrize("how", REPLACED)
def test_an_output_that_is_replaced_in_mid_run_is_said_once(tmp_path, how):
    """Neither a checkpoint nor the end waits for a reader, and SIGTERM ends the program as without cairn."""
    replace, reason = REPLACED[how]
    folder = tmp_path / "o"
    folder.mkdir()
    with Conversation(folder / "r.cairn", ["--checkpoint-interval", "0"]) as c:
        c.do("a 3 100")
        c.ctl("checkpoint")
        replace(c.path)
        for _ in range(2):
            assert reason in ctl(c.process.pid, "checkpoint", status=1)
        c.process.send_signal(signal.SIGTERM)
        out, said = c.process.communicate(timeout=DEADLINE_SECONDS)
        assert (c.process.returncode, out) == (-signal.SIGTERM, b"")
    assert said.count(b"\n") == 1 and reason in said.decode(), said
    assert said.endswith(b"the program continues, the file with its last checkpoint is not there any more\n"), said


@pytest.mark.parametrize("is_strict", [False, True])
def test_an_output_that_is_a_pipe_at_the_end_is_said(tmp_path, is_strict):
    """There was no checkpoint: the program itself makes the pipe."""
    script = "rm -f r.cairn; mkfifo r.cairn; exit 3"
    done = record(tmp_path, "-q", "-o", "r.cairn", "--checkpoint-interval", "0", *["--strict"] * is_strict,
                  program=("/bin/sh", "-c", script))
    assert done.returncode == (2 if is_strict else 3)
    assert done.stderr == b"cairn: cannot write 'r.cairn': it is no regular file; no file has been written\n"


def test_an_output_that_becomes_a_link_without_a_target_is_written_there(tmp_path):
    """The link stays."""
    with Conversation(tmp_path / "r.cairn", ["--checkpoint-interval", "0"]) as c:
        c.do("a 3 100")
        c.ctl("checkpoint")
        replace_by_a_link(c.path, "other.cairn")
        c.do("a 4 100")
        c.end()
    assert c.path.is_symlink() and Recording(tmp_path / "other.cairn", None).totals["allocations"] == 7


@pytest.fixture(name="sealed")
def sealed_folder(tmp_path):
    """(folder, function that makes it read-only): by a mount, as no permission hinders root."""
    def mount(*words):
        return subprocess.run(["mount", *words, folder], check=False, capture_output=True, timeout=60).returncode == 0
    folder = tmp_path / "o"
    folder.mkdir()
    if os.geteuid() != 0:
        yield folder, lambda: folder.chmod(0o500)
        folder.chmod(0o700)
    elif not mount("-t", "tmpfs", "tmpfs"):
        pytest.skip("root may not mount here")
    else:
        yield folder, lambda: mount("-o", "remount,ro")
        subprocess.run(["umount", "-l", folder], check=True, timeout=60)


def test_a_folder_that_becomes_read_only_is_said_once(sealed):
    folder, seal = sealed
    with Conversation(folder / "r.cairn", ["--checkpoint-interval", "0"]) as c:
        c.do("a 3 100")
        c.ctl("checkpoint")
        seal()
        for _ in range(2):
            assert "cannot create" in c.ctl("checkpoint", status=1)
        _, said = c.process.communicate(b"q\n", timeout=DEADLINE_SECONDS)
    assert (c.process.returncode, said.count(b"\n")) == (0, 1), said
    assert said.endswith(b"the program continues, the file keeps its last checkpoint\n"), said
    assert Recording(c.path, None).report["run"]["state"] == "running"


def test_standard_output_is_the_programs(tmp_path):
    done = record(tmp_path, "-o", "-", program=("/bin/sh", "-c", "echo ran"))
    assert (done.returncode, done.stdout) == (2, b"") and b"standard output belongs to the program" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [("report", "--json"), ("export", "--to", "folded"), ("check", "--max-peak", "1G")])
def test_a_recording_is_read_from_standard_input(tmp_path, command):
    path = tmp_path / "r.cairn"
    assert record(tmp_path, "-q", "-o", path, program=("/bin/sh", "-c", "true")).returncode == 0
    by_name = subprocess.run([CAIRN, *command, path], capture_output=True, check=True, timeout=60)
    for as_pipe in (True, False):
        given = {"input": path.read_bytes()} if as_pipe else {"stdin": path.open("rb")}
        done = subprocess.run([CAIRN, *command, "-"], capture_output=True, check=True, timeout=60, **given)
        assert done.stdout == by_name.stdout
    bad = subprocess.run([CAIRN, *command, "-"], capture_output=True, check=False, timeout=60, input=b"no recording")
    assert bad.returncode == 2 and bad.stderr.count(b"\n") == 1


def test_what_analyze_shows_must_be_a_file():
    done = subprocess.run([CAIRN, "analyze", "-"], capture_output=True, check=False, timeout=60, input=b"")
    assert done.returncode == 2 and b"analyze cannot read standard input" in done.stderr


def test_the_first_checkpoint_comes_within_a_second(tmp_path):
    """A recorder that is killed early leaves a file: the program kills it once the file exists."""
    wait = "i=0; until [ -e r.cairn ]; do i=$((i+1)); [ $i -lt 6000 ] || exit 9; read -t 0.01 x; done; kill -9 $PPID"
    fifo = tmp_path / "never"
    os.mkfifo(fifo)
    never = os.open(fifo, os.O_RDWR)
    done = subprocess.run([CAIRN, "record", "-q", "-o", "r.cairn", "--", "/bin/bash", "-c", wait], cwd=tmp_path,
                          env=environment(), stdin=never, capture_output=True, check=False, timeout=120)
    os.close(never)
    assert done.returncode == -9
    said = subprocess.run([CAIRN, "report", "--json", tmp_path / "r.cairn"], capture_output=True, check=True,
                          timeout=60)
    assert b'"state":"running"' in said.stdout.replace(b" ", b"")
    assert pathlib.Path(tmp_path / "r.cairn").stat().st_size > 0
