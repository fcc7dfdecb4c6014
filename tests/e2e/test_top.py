# SPDX-License-Identifier: MIT
"""cairn top: its figures against the report's of the same file, and its screen on a real terminal."""
import json
import math
import os
import pathlib
import re
import signal
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from conversation import Conversation, ctl
from screen import Terminal
from waiting import DEADLINE_SECONDS, wait_until

OBEDIENT = PROGRAMS / "obedient"


def top(*words, folder=None, status=0, **settings):
    """Run `cairn top` without a terminal; return its output, or its messages after a failure."""
    run = subprocess.run([CAIRN, "top", *map(str, words)], capture_output=True, text=True, cwd=folder, check=False,
                         timeout=DEADLINE_SECONDS, env=environment(), **{"input": "", **settings})
    assert run.returncode == status, (run.stdout, run.stderr)
    return run.stdout if status == 0 else run.stderr


def as_bytes(count):
    """Three significant digits in binary units, as the report has them."""
    unit, units = 0, ["B", "KiB", "MiB", "GiB"]
    while count >= 1024:
        count, unit = count / 1024, unit + 1
    if unit == 0:
        return f"{count} B"
    digits = 2 if count < 9.995 else 1 if count < 99.95 else 0
    # Half of a digit rounds up (1.625 MiB are 416 pages), where Python rounds to an even digit.
    return f"{math.floor(count * 10**digits + 0.5) / 10**digits:.{digits}f} {units[unit]}"


def rows_of(text):
    """The rows of the last update in plain text: [(live, temporary, allocations, at peak, function)]."""
    update = text.rstrip("\n").split("\n\n")[-1].splitlines()
    begin = next(number for number, line in enumerate(update) if line.lstrip().startswith("LIVE"))
    amount = r"([-+]?[\d.]+ (?:[KMGT]i)?B)"
    row = re.compile(rf" *{amount} +{amount} +[\d.,]+ +([\d,]+) +([\d,]+) +{amount}  (.*?)  \S*$")
    rows = [row.fullmatch(line) for line in update[begin + 1:]]
    assert all(rows), update
    return [(live, int(temporary.replace(",", "")), int(allocations.replace(",", "")), peak, function)
            for live, _, temporary, allocations, peak, function in (match.groups() for match in rows)]


def rows_of_report(path):
    """The same from `cairn report --json`."""
    report = Recording(path, None).report_json("--sort", "allocations", "--full-names")
    return [(as_bytes(site["costs"]["live_bytes"]), site["costs"]["temporary"], site["costs"]["allocations"],
             as_bytes(site["costs"]["peak_bytes"]), site["function"] + " (inlined)" * site["inlined"])
            for site in report["top"]["allocations"]]


# The figures

def test_the_figures_are_those_of_the_report_of_the_same_checkpoint(scratch):
    with Conversation(scratch / "c.cairn", ["--checkpoint-interval", "0"]) as c:
        c.do("a 30 1000", "t 50 10", "f 10")
        text = top("--plain", "--count", "1", c.path)
        assert sorted(rows_of(text)) == sorted(rows_of_report(c.path))
        totals = Recording(c.path, None).totals
        assert f"live heap: {as_bytes(totals['live_bytes'])} in 20 blocks, peak {as_bytes(30000)}\n" in text
        assert "allocations: 80, " in text and ", 50 temporary (62.5%)\n" in text
        assert f"peak {as_bytes(totals['peak_rss_bytes'])}\n" in text
        assert "obedient (process " in text and "): running, " in text
        c.end()


def test_the_figures_of_a_large_program_are_those_of_its_report(scratch):
    path = scratch / "p.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", "perl", "-e", "$h{$_} = [$_] for 1..2000"],
                   env=environment(), check=True)
    text = top("--plain", "--limit", "0", path)
    rows = rows_of(text)
    assert len(rows) > 20 and sorted(rows) == sorted(rows_of_report(path))
    assert "has ended, " in text.splitlines()[0]


def updates_of(stream):
    """Each update of plain text, as it comes."""
    update = ""
    for line in stream:
        update += line
        if line == "\n":
            yield update
            update = ""


def test_changes_and_rates_are_differences_of_checkpoints(scratch):
    """An update that was written before a command may be read after it."""
    with Conversation(scratch / "c.cairn", ["--checkpoint-interval", "0"]) as c, \
            subprocess.Popen([CAIRN, "top", "--plain", "-d", "100ms", "--filter", "KEEP", c.path],
                             stdout=subprocess.PIPE, text=True, env=environment()) as watching:
        c.do("a 10 100")
        updates = updates_of(watching.stdout)
        first = next(update for update in updates if "live heap: " in update)
        changes = [re.search(r"heap: (\S+ B|\S+ KiB) since", first).group(1)]
        for command, live in (("a 20 100", 3000), ("f 15", 1500)):
            c.do(command)
            update = next(update for update in updates if f"live heap: {as_bytes(live)} in" in update)
            changes.append(re.search(r"heap: (\S+ B|\S+ KiB) since", update).group(1))
        c.do("t 1 1")
        next(update for update in updates if ", 1 temporary (" in update)
        watching.terminate()
    base = int(re.search(r"live heap: (\d+) B", first).group(1))  # some of what came before
    assert changes[0] == "0 B"
    assert changes[1:] == [f"+{as_bytes(live - base)}" for live in (3000, 1500)]


def test_an_update_is_limited_sorted_and_filtered(scratch):
    with Conversation(scratch / "c.cairn") as c:
        c.do("a 1 1000", "t 5 10")
        names = [row[4] for row in rows_of(top("--plain", "--count", "1", c.path))]
        assert names[0] == "keep" and "churn" in names
        by_calls = rows_of(top("--plain", "--count", "1", "--sort", "temporary", "-n", "1", c.path))
        assert [row[4] for row in by_calls] == ["churn"]
        assert [row[4] for row in rows_of(top("--plain", "--count", "1", "--filter", "KEEP", c.path))] == ["keep"]
        assert "0 of 0 call sites" in top("--plain", "--count", "1", "--filter", "nothing", c.path)
        c.end()


def test_a_reader_that_goes_away_ends_top_and_not_the_program(scratch):
    os.mkfifo(scratch / "commands")
    with subprocess.Popen([CAIRN, "top", "--plain", "-d", "100ms", "-o", "x.cairn", OBEDIENT, "commands"], cwd=scratch,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()) as watching, \
            open(scratch / "commands", "w", encoding="ascii"):
        watching.stdout.readline()
        watching.stdout.close()
        assert "and its recording go on" in watching.stderr.read()
        assert json.loads(ctl(scratch / "x.cairn", "status", "--json"))["state"] == "recording"


# Programs that top starts

def test_a_short_program_ends_as_without_top(scratch):
    text = top("--plain", "-o", "x.cairn", "sh", "-c", "echo said; echo complained >&2; exit 3", folder=scratch, status=3)
    assert "the recording is " in text
    assert (scratch / "x.output").read_text() == "said\ncomplained\n"
    assert Recording(scratch / "x.cairn", None).report["run"]["state"] == "finished"


def test_names_of_files_have_the_process_id_of_the_recorder(scratch):
    top("--plain", "true", folder=scratch)
    recording, = scratch.iterdir()  # without output, there is no other file
    assert re.fullmatch(r"cairn\.true\.\d+\.cairn", recording.name)
    top("--plain", "-o", "sub/a%%b.cairn", "--program-output", "said", "echo", "yes", folder=scratch)
    assert (scratch / "sub" / "a%b.cairn").exists() and (scratch / "said").read_text() == "yes\n"


def test_what_another_user_planted_for_the_output_is_refused(scratch):
    """An own link is followed; a test without root can only try that."""
    public, victim = scratch / "public", scratch / "victim"
    is_root = os.geteuid() == 0
    public.mkdir()
    public.chmod(0o1777)
    for kind in ("link", "pipe") if is_root else ("link",):
        trap = public / f"{kind}.output"
        victim.write_text("important\n")
        if kind == "link":
            trap.symlink_to(victim)
        else:
            os.mkfifo(trap, 0o666)
        if is_root:
            os.chown(trap, 65534, 65534, follow_symlinks=False)
        said = top("--plain", "-o", f"{kind}.cairn", "echo", "text", folder=public, status=2 if is_root else 0)
        assert victim.read_text() == ("important\n" if is_root else "text\n")
        assert not is_root or (said.count("\n") == 1 and "that another user has put there" in said), said


def test_an_output_that_is_not_a_regular_file_stays(scratch):
    """Also if the program prints nothing, or cannot be recorded."""
    os.mkfifo(scratch / "pipe")
    reader = os.open(scratch / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    for words, status in ((["true"], 0), (["./missing"], 127)):
        top("--plain", "-o", "x.cairn", "--program-output", "pipe", *words, folder=scratch, status=status)
        assert (scratch / "pipe").is_fifo()
    assert b"missing" in os.read(reader, 1000)
    os.close(reader)


def test_standard_input_is_empty(scratch):
    top("--plain", "-o", "x.cairn", "cat", folder=scratch, input="text")
    assert not (scratch / "x.output").exists()


@pytest.mark.parametrize("words, status, said", [
    (["./missing"], 127, "missing"),
    ([str(ROOT / "README.md")], 126, "is not executable"),
    (["-o", "x%q.cairn", "true"], 2, "% must be followed by p, h or %"),
    (["-o", "/proc/x.cairn", "true"], 2, "/proc/"),
    (["--program-output", "/proc/x", "true"], 2, "/proc/x"),
])
def test_what_cannot_be_recorded_is_reported_as_by_record(scratch, words, status, said):
    (scratch / "old.cairn").touch()  # another recording does not count
    message = top("--plain", *words, folder=scratch, status=status)
    assert message.startswith("cairn: ") and said in message, message
    assert [entry.name for entry in scratch.iterdir()] == ["old.cairn"]


def test_a_file_that_is_no_recording_is_reported(scratch):
    assert "you have no running recording" in top("--plain", scratch / "none.cairn", status=2)
    (scratch / "bad.cairn").write_text("x" * 10000)
    assert top("--plain", scratch / "bad.cairn", status=2).count("\n") == 1


def test_a_file_of_any_name_is_shown_or_refused_as_what_it_is(scratch):
    """Whole, cut, and of another tool."""
    subprocess.run([CAIRN, "record", "-q", "-o", "x.cairn", "true"], cwd=scratch, env=environment(), check=True)
    (scratch / "whole").write_bytes((scratch / "x.cairn").read_bytes())
    assert "has ended" in top("--plain", "whole", folder=scratch)
    (scratch / "short").write_bytes((scratch / "x.cairn").read_bytes()[:100])
    message = top("--plain", "short", folder=scratch, status=2)
    assert "executable" not in message and "'short'" in message and message.count("\n") == 1, message
    (scratch / "massif.out.1").write_text("desc: --massif\ncmd: ./app\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\n"
                                          "time=0\nmem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n")
    assert "live heap: " in top("--plain", "massif.out.1", folder=scratch)


# The terminal

class Run:
    """`cairn top` on a terminal, and the program that it starts, which obeys the test."""

    def __init__(self, scratch, *words, **settings):
        self.folder = scratch
        os.mkfifo(scratch / "commands")
        command = [CAIRN, "top", "-d", "100ms", "-o", "x.cairn", *words, OBEDIENT, "commands"]
        self.terminal = Terminal(command, environment(), folder=scratch, **settings)
        self.commands = os.open(scratch / "commands", os.O_WRONLY)  # waits for the program
        self.done = 0
        self.program = json.loads(ctl(scratch / "x.cairn", "status", "--json"))["program_pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.commands)  # the program ends
        self.terminal.__exit__()
        wait_until(lambda: not self.is_running(), "the program's end")

    def is_running(self):
        try:
            return pathlib.Path(f"/proc/{self.program}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):  # ended before or after the file was opened
            return False

    def do(self, *lines):
        for line in lines:
            os.write(self.commands, line.encode() + b"\n")
            self.done += 1
            wait_until(lambda: (self.folder / "x.output").read_text().count("done") == self.done, "the program")


@pytest.fixture(name="run")
def fixture_run(scratch):
    with Run(scratch) as running:
        yield running


def row(lines, function):
    """The line of a call site on the screen."""
    return next((line for line in lines if re.search(rf"\b{function}\b +\S+$", line)), "")


def test_the_screen_shows_totals_charts_and_call_sites(run):
    run.do("a 10 1000", "t 20 100", "f 2")
    lines = run.terminal.wait_for_all(
        rf"\Acairn top: obedient \(process {run.program}\).* running",
        r"^Heap +7\.81 KiB +[▁▂▃▄▅▆▇█ ]+ +peak 9\.86 KiB",
        r"^RSS +\S+ MiB +[▁▂▃▄▅▆▇█ ]+ +peak \S+ MiB",
        r"^8 live blocks, 30 allocations \(\S+/s\), 66\.7% temporary",
        r"^ 7\.81 KiB .* keep +obedient\.c:\d+$",
        r" 20 .* churn +obedient\.c:\d+$",
        r"F10 Quit\Z")
    assert len(lines) == 24 and max(map(len, lines)) <= 80


def test_keys_sort_filter_and_open_stacks(run):
    run.do("a 10 1000", "t 20 100")
    screen = run.terminal

    def first_is(function):
        return lambda lines: lines[9].rstrip().endswith(row(lines, function)) and row(lines, function) != ""

    screen.wait(first_is("keep"), "the order by live bytes")
    screen.press("t")
    screen.wait(first_is("churn"), "the order by temporary allocations")
    screen.press("l")
    screen.wait(first_is("keep"), "the order by live bytes")
    screen.press("/", "chu", "enter")
    screen.wait(lambda lines: row(lines, "churn") and not row(lines, "keep"), "the filter")
    screen.press("f5")
    screen.wait_for_all("Call stacks", r"^    churn +obedient\.c:\d+$", r"^    main +obedient\.c:\d+$")
    screen.press("enter")
    screen.wait(lambda lines: "FUNCTION" in lines[8], "the list")
    screen.press("escape")
    screen.wait(first_is("keep"), "all call sites")
    screen.press("f1")
    screen.wait_for("ALLOC/S  allocations per second")
    screen.press("f1")
    screen.wait(first_is("keep"), "the list")


@pytest.mark.parametrize("keys, head, first", [
    (["r"], "ALLOC/Sv", None),
    (["g"], "CHANGEv", "keep"),
    (["a"], "ALLOCSv", "churn"),
    (["p"], "AT PEAKv", "keep"),
    (["t", "l"], "LIVEv", "keep"),
    (["I"], "LIVE^", None),
    ([">"], "CHANGEv", "keep"),
    ([".", "right", "f6"], "TEMPv", "churn"),
    (["<"], "AT PEAKv", "keep"),
    ([",", "left"], "ALLOCSv", "churn"),
    (["f1", "t"], "TEMPv", "churn"),
    (["enter", "t"], "TEMPv", "churn"),
])
def test_each_key_for_the_order_is_obeyed(run, keys, head, first):
    run.do("a 10 1000", "t 20 100")
    run.terminal.wait(lambda lines: row(lines, "keep") and row(lines, "churn"), "the call sites")
    run.terminal.press(*keys)
    run.terminal.wait(lambda lines: head in lines[8] and first in (None, lines[9].split()[-2]), f"{head} and {first}")


@pytest.mark.parametrize("key", ["f3", "f4", "/", "\\"])
def test_each_key_for_the_filter_is_obeyed(run, key):
    run.do("a 10 1000", "t 20 100")
    run.terminal.press(key)
    run.terminal.wait_for("Filter: _")
    run.terminal.press("KEEPx", "backspace")
    run.terminal.wait(lambda lines: row(lines, "keep") and not row(lines, "churn") and "Filter: KEEP_" in lines[-1],
                      "the filter")
    run.terminal.press("enter")
    run.terminal.wait_for_all("call sites match(es)? 'KEEP'", r"F10 Quit\Z")


def test_f7_marks_and_f8_pauses_and_space_updates(run):
    screen = run.terminal
    run.do("a 10 1000")
    screen.wait(lambda lines: "9.77 KiB" in row(lines, "keep"), "the first blocks")
    screen.press("f7")
    screen.wait_for("since the mark at")
    screen.press("f8")
    screen.wait_for("paused")
    run.do("a 10 100")
    screen.press(" ")
    screen.wait_for_all("paused", r"^ 10\.7 KiB +\+1000 B .* keep ")
    run.do("a 10 100")
    screen.press("f8")
    screen.wait_for_all("running", r"^ 11\.7 KiB +\+1\.95 KiB .* keep ")


def test_a_mark_is_the_base_of_changes(run):
    run.do("a 10 1000")
    screen = run.terminal
    screen.wait(lambda lines: "9.77 KiB" in row(lines, "keep"), "the first blocks")
    screen.press("m")
    screen.wait_for("since the mark at")
    run.do("a 10 100")
    screen.wait_for_all(r"^Change \+1000 B since the mark at", r"^ 10\.7 KiB +\+1000 B .* keep ")


def test_a_pause_stops_the_updates(run):
    run.terminal.wait_for("running")
    run.terminal.press("z")
    run.terminal.wait_for("paused")
    run.do("a 10 100")
    run.terminal.press("m", "m")  # a key is handled, and nothing is read for it
    run.terminal.wait_for("since the mark at")
    assert row(run.terminal.lines(), "keep") == ""
    run.terminal.press("z")
    run.terminal.wait(lambda lines: "1000 B" in row(lines, "keep"), "the blocks")


def waits(process):
    """The number of different system calls in which the two threads wait; 0 while one of them runs. The thread
    that brings samples waits for an answer as the other one waits for keys, and otherwise in another way."""
    calls = [path.read_text().split()[0] for path in pathlib.Path(f"/proc/{process}/task").glob("*/syscall")]
    return len(set(calls)) if len(calls) == 2 and "running" not in calls else 0


def test_a_pause_holds_back_what_the_recorder_answers_late(run):
    """The recorder is asked before the pause, and answers when it has begun."""
    run.terminal.wait_for("running")
    recorder = json.loads(ctl(run.folder / "x.cairn", "status", "--json"))["recorder_pid"]
    os.kill(recorder, signal.SIGSTOP)
    run.do("a 10 100")
    wait_until(lambda: waits(run.terminal.process) == 1, "the question")
    run.terminal.press("z")
    run.terminal.wait_for("paused")
    os.kill(recorder, signal.SIGCONT)
    wait_until(lambda: waits(run.terminal.process) == 2, "the answer")
    run.terminal.press("m", "m")
    run.terminal.wait_for("since the mark at")
    assert row(run.terminal.lines(), "keep") == ""
    run.terminal.press(" ")
    run.terminal.wait(lambda lines: "1000 B" in row(lines, "keep"), "the blocks")


@pytest.mark.parametrize("way", ["q", "f10", "ctrl-c", signal.SIGTERM, signal.SIGHUP], ids=str)
def test_the_program_runs_on_when_the_user_quits(run, way):
    run.do("a 3 100")
    run.terminal.wait(lambda lines: "300 B" in row(lines, "keep"), "the figures")
    if isinstance(way, str):
        run.terminal.press(way)
    else:
        os.kill(run.terminal.process, way)
    assert run.terminal.end_status() == 0
    text = run.terminal.text()
    assert f"cairn: process {run.program} and its recording go on" in text
    assert "x.cairn" in text and "x.output" in text and "F10" not in text.partition("cairn: ")[2]
    run.do("a 4 100")  # the program obeys
    again = top("--plain", "--count", "1", "-p", run.program)
    assert rows_of(again)[0][:3] == ("700 B", 0, 7)


def test_the_program_runs_on_when_the_terminal_is_gone(run):
    run.terminal.wait_for("running")
    os.close(run.terminal.end)
    run.terminal.end = os.open("/dev/null", os.O_RDONLY)
    _, status = os.waitpid(run.terminal.process, 0)
    run.terminal.status = status
    run.do("a 4 100")
    assert rows_of(top("--plain", "--count", "1", run.folder / "x.cairn"))[0][:3] == ("400 B", 0, 4)


def test_the_end_of_the_program_is_shown(run):
    run.do("a 10 100", "f 4")
    os.write(run.commands, b"q\n")
    run.terminal.wait_for_all("has ended", r"^    600 B .* keep ")
    run.terminal.press("q")
    assert run.terminal.end_status() == 0
    assert "go on" not in run.terminal.text()
    assert Recording(run.folder / "x.cairn", None).totals["live_bytes"] == 600


@pytest.mark.parametrize("keys", [["f9", "y"], ["k", "Y"], ["z", "k", "y"]])
def test_the_program_can_be_ended(run, keys):
    run.terminal.wait_for("running")
    run.terminal.press("k")
    run.terminal.wait_for("End the program (SIGTERM)? y/n")
    run.terminal.press("n")
    run.terminal.wait_for("F10 Quit")
    run.do("p")
    run.terminal.press(*keys)
    run.terminal.wait_for("has ended")
    run.terminal.press("q")
    assert run.terminal.end_status() == 128 + signal.SIGTERM


def test_the_death_of_the_recorder_is_shown(run):
    run.do("a 10 100")
    run.terminal.wait(lambda lines: "1000 B" in row(lines, "keep"), "the figures")
    recorder = json.loads(ctl(run.folder / "x.cairn", "status", "--json"))["recorder_pid"]
    os.kill(recorder, signal.SIGKILL)
    lines = run.terminal.wait_for("recorder has died")
    assert "1000 B" in row(lines, "keep")
    run.do("a 10 100")  # the program goes on
    run.terminal.press("q")
    assert run.terminal.end_status() == 128 + signal.SIGKILL


@pytest.mark.parametrize("columns, height", [(40, 10), (120, 50), (20, 3)])
def test_the_screen_follows_the_size_of_the_terminal(run, columns, height):
    run.do("a 10 100")
    run.terminal.wait(lambda lines: "1000 B" in row(lines, "keep"), "the figures")
    run.terminal.set_size(columns, height)
    lines = run.terminal.wait(lambda lines: lines[0].startswith("cairn top") and len(lines[0]) <= columns and
                              (height < 6 or lines[-1].startswith("F1 Help")), "the new size")
    assert len(lines) == height
    run.terminal.press("q")
    assert run.terminal.end_status() == 0


def test_a_terminal_that_claims_a_huge_size_is_left_at_once(scratch):
    """Three copies of 5,000 x 5,000 cells would be more than 2 GiB."""
    with Conversation(scratch / "c.cairn") as c:
        with Terminal([CAIRN, "top", c.path], environment(), columns=5000, lines=5000) as screen:
            while screen.received == 0:
                assert screen.read(DEADLINE_SECONDS)
            most = re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{screen.process}/status").read_text())
            assert int(most.group(1)) < 500 << 10
            screen.press("q")
            assert screen.end_status() == 0
        c.end()


def test_an_update_without_news_is_small(scratch):
    """Over ssh, what did not change is not sent again: each update sends the time and little more."""
    with Conversation(scratch / "c.cairn") as c:
        c.do("a 10 100", "t 10 10")
        with Terminal([CAIRN, "top", "-d", "100ms", c.path], environment()) as screen:
            screen.wait(lambda lines: "1000 B" in row(lines, "keep"), "the figures")
            times, begin = set(), screen.received
            screen.wait(lambda lines: times.add(lines[0]) or len(times) > 3, "three updates")
            assert (screen.received - begin) / 3 < 500
            screen.press("q")
            assert screen.end_status() == 0
        assert c.status()["state"] == "recording"  # only looked at
        c.end()


def test_a_terminal_without_utf8_has_a_chart_of_ascii(scratch):
    with Conversation(scratch / "c.cairn") as c:
        c.do("a 10 100")
        with Terminal([CAIRN, "top", c.path], {**environment(), "LC_ALL": "C"}) as screen:
            lines = screen.wait_for_all(r"^Heap +1000 B +[ .:=+*#-]*##", r"^   1000 B .* keep ")
            assert "".join(lines).isascii()


@pytest.mark.parametrize("name", ["dumb", "unknown-to-all", ""])
def test_a_terminal_that_cannot_show_a_screen_is_refused(scratch, name):
    with Terminal([CAIRN, "top", "true"], environment(), folder=scratch, name=name) as screen:
        assert screen.end_status() == 2
        assert f"the terminal '{name or '(not set)'}' cannot show a screen; --plain" in " ".join(screen.lines())
    assert list(scratch.iterdir()) == []  # nothing was started


def test_without_a_terminal_the_screen_is_refused(scratch):
    assert "are not a terminal; --plain writes lines" in top("true", folder=scratch, status=2)
    assert list(scratch.iterdir()) == []
