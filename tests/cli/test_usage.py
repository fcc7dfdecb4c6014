# SPDX-License-Identifier: MIT
"""Command lines that are refused: the exit status, the whole message, nothing on stdout; and the
nearest command lines that are accepted."""
import pytest
from drawn import cairn

DRAWING = """\
process server
thread main
app!main;app!load 10 1000 5 500 2 20 5 500 500
@0 5 500 0 0 1
@3 5 500 5 500 1
"""

# FILE is the recording.
REFUSED = [
    ("record -o - /bin/true", "--output: standard output belongs to the program; give a file name"),
    ("record -o x%q.cairn /bin/true", "--output: in 'x%q.cairn', % must be followed by p, h or %"),
    ("record -o x% /bin/true", "--output: in 'x%', % must be followed by p, h or %"),
    ("record", "no PROGRAM given"),
    ("record --", "no PROGRAM given"),
    *((f"record --mode {mode} /bin/true", f"--mode: '{mode}' is not a mode such as 600, 640 or 644")
      for mode in ("400", "601", "610", "700", "777", "1600", "0o600", "6OO", "8", "x", "-600", "600x")),
    ("record --events --overflow sample /bin/true",
     "--events and --overflow=sample cannot be combined"),
    ("record --max-memory 67108863 /bin/true", "--max-memory: the recorder needs at least 64MiB"),
    ("record --delay 1s --start-paused /bin/true", "--delay and --start-paused cannot be combined"),
    ("analyze --port 65536 FILE", "--port: 65536 is not a port; write 1 to 65535"),
    ("analyze -", "analyze cannot read standard input; write it to a file first"),
    ("cache forget", "the action must be list, size, clear or limit SIZE"),
    ("cache limit", "the action must be list, size, clear or limit SIZE"),
    ("cache list all", "the action must be list, size, clear or limit SIZE"),
    ("cache limit 1MiB 2MiB", "the action must be list, size, clear or limit SIZE"),
    ("cache limit much", "limit: 'much' is not a size such as 64MiB or 0"),
    ("store", "the action must be add, list, top, diff, query or prune"),
    ("store forget", "the action must be add, list, top, diff, query or prune"),
    ("store add", "add takes FILE..."),
    ("store diff 1.0", "diff takes two versions: OLD and NEW"),
    ("store list --json --csv", "--json and --csv cannot be combined"),
    ("store list --since soon", "--since: 'soon' is not a time such as 2026-01-31, @1790000000 or 7d"),
    ("store top --recording 7", "--recording: '7' is not a recording_id of `cairn store list`"),
    ("store prune --recording 0000000000000000",
     "--recording: '0000000000000000' is not a recording_id of `cairn store list`"),
    ("check --max-growth=5% FILE", "budgets for growth require --baseline FILE"),
    ("check --per 10 FILE", "budgets for growth require --baseline FILE"),
    ("check FILE", "no budget given; an example is --max-peak 64MiB"),
    ("check --baseline FILE --max-growth=5% --per minute FILE",
     "per: 'minute' is not second or a count such as 1000 or 900:1000"),
    ("diff --per minute FILE FILE",
     "--per: 'minute' is not second or a count such as 1000 or 900:1000"),
    ("ctl", "FILE or PID and ACTION are required"),
    ("ctl FILE", "FILE or PID and ACTION are required"),
    ("ctl FILE halt", "unknown action 'halt'"),
    ("ctl FILE stop now", "'stop' takes nothing more"),
    ("ctl FILE mark", "'mark' takes one text; quote it"),
    ("ctl FILE mark two words", "'mark' takes one text; quote it"),
    ("top", "no PROGRAM, FILE or --pid given"),
    ("top -p 1 FILE", "--pid and a PROGRAM or FILE contradict each other"),
    ("top --interval 99ms FILE", "--interval: the shortest is 100ms"),
    ("top --count 1 FILE", "--count needs --plain"),
    ("top --sort beauty FILE", "--sort: 'beauty' is not one of"),
    ("export --to nothing FILE", "--to: unknown format 'nothing'; --list prints the formats"),
    ("export --to folded --at peak FILE", "--at does not apply to folded"),
    ("export --to pprof --cost peak FILE", "--cost: pprof always contains all of its costs"),
    ("report --time 1..1 FILE", "--time: a range is required: FROM..TO"),
    ("report --classes in_in FILE", "--classes says which blocks of a --time FROM..TO count"),
    ("report --time 0..0.2 --classes in_on FILE",
     "--classes: 'in_on' is not a list of in_in, in_out, out_in and out_out"),
]


@pytest.fixture(name="file", scope="module")
def fixture_file(draw_once):
    return draw_once(DRAWING)


@pytest.mark.parametrize("words, message", REFUSED)
def test_refused(file, tmp_path, words, message):
    run = cairn(*words.replace("FILE", str(file)).split(), cwd=tmp_path)
    assert run.returncode == 2
    assert run.stdout == b""
    print(run.stderr.decode())
    assert message in run.stderr.decode().splitlines()[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [
    "record --mode 600 /bin/true", "record --mode 0666 /bin/true", "record --max-memory 67108864 /bin/true",
    "record --start-paused /bin/true", "record --delay 1s /bin/true",
    "record --overflow sample /bin/true", "record --events /bin/true",
    "report --time 0..0.1 FILE", "report --time 0..0.2 --classes in_in,out_out FILE",
    "diff --per 10 FILE FILE", "diff --per second FILE FILE",
    "check --baseline FILE --max-growth=5% --per 10 FILE", "export --to pprof --at peak FILE",
])
def test_accepted(file, tmp_path, words):
    run = cairn(*words.replace("FILE", str(file)).split(), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
