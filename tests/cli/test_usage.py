# SPDX-License-Identifier: MIT
"""Command lines that are refused: the exit status, the whole message, nothing on stdout; and the
nearest command lines that are accepted."""
import os

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
    ("record --max-memory 67108863 /bin/true", "--max-memory: the recorder needs at least 64MiB"),
    ("record --delay 1s --start-paused /bin/true", "--delay and --start-paused cannot be combined"),
    ("record --sample=15 /bin/true", "--sample: give 16B to 64MiB"),
    ("record --sample=67108865 /bin/true", "--sample: give 16B to 64MiB"),
    ("record --sample 1000", "--sample: write --sample=BYTES, in one word"),
    ("record --sample --overflow sample /bin/true", "--sample and --overflow=sample cannot be combined"),
    ("record --all-allocators --force /bin/true", "--all-allocators and --force cannot be combined"),
    ("record --keep 1h /bin/true", "--keep and --max-disk need --rotate or --follow"),
    ("record --max-disk 1G /bin/true", "--keep and --max-disk need --rotate or --follow"),
    ("record --rotate soon /bin/true", "--rotate: 'soon' is neither a time such as 1h nor a size such as 512M"),
    ("record --rotate 0B /bin/true", "--rotate: '0B' is neither a time such as 1h nor a size such as 512M"),
    ("record --rotate 999ms /bin/true", "--rotate: the shortest time is a second"),
    ("record --rotate 1h --keep 1d /bin/true",
     "--keep and --max-disk need --output with a name without %p, so that the files of earlier runs are found"),
    ("record --rotate 1h --max-disk 1G -o %p.cairn /bin/true",
     "--keep and --max-disk need --output with a name without %p, so that the files of earlier runs are found"),
    ("record --follow", "--follow needs --name"),
    ("record --follow -p 1", "--pid and --follow cannot be combined"),
    ("record --follow --name=", "--name: the name is empty"),
    ("record --name=", "--name: the name is empty"),
    *((f"record -p {pids}", f"--pid: '{pids}' is not a whole number of at least 1, or a list of such numbers like 17,18")
      for pids in ("0", "2147483648", "1,", ",1", "1,,2", "1x", "x", "-1")),
    ("record -p 1 /bin/true", "--pid or --name and a PROGRAM contradict each other"),
    ("record --token-file x /bin/true", "--token-file, --no-token and --tls need --listen"),
    ("record --tls x /bin/true", "--token-file, --no-token and --tls need --listen"),
    ("record --no-token /bin/true", "--token-file, --no-token and --tls need --listen"),
    ("record --listen 127.0.0.1:1 --token-file x --no-token /bin/true",
     "--token-file and --no-token cannot be combined"),
    *((f"record {option} /bin/true", "--label, --push-auth, --push-ca and --push-spool need --push")
      for option in ("--label a=b", "--push-auth x", "--push-ca x", "--push-spool x")),
    ("record --push http://127.0.0.1:1 --push-interval 99ms /bin/true",
     "--push-interval, --push-timeout: the shortest time is 100ms"),
    ("record --push http://127.0.0.1:1 --push-timeout 99ms /bin/true",
     "--push-interval, --push-timeout: the shortest time is 100ms"),
    ("record --push http://127.0.0.1:1/?x /bin/true", "--push: the URL must have no query"),
    ("record --push http://127.0.0.1:1/#x /bin/true", "--push: the URL must have no query"),
    ("record --push http://127.0.0.1:1 " + "--label a=b " * 17 + "/bin/true", "--label: at most 16 labels"),
    ("record --push http://127.0.0.1:1 --label a=b --label ab=c --label a=d /bin/true", "'a=d' names a label a second time"),
    ("record --push http://127.0.0.1:1 --label __name__=x /bin/true", "names that begin with '__' are the collector's own"),
    ("record --push http://127.0.0.1:1 --label service_name=g++ /bin/true", "has letters, digits and _-./ only"),
    ("record --push http://127.0.0.1:1 --label a=" + "b" * 255 + " /bin/true", "has more than 256 bytes"),
    ("record --output", "--output needs a value"),
    ("record -o", "-o needs a value"),
    ("record --output= /bin/true", "-o, --output: the name is empty"),
    ("check --max-peak 1 -o= --junit= -- /bin/true", "--junit: the name is empty"),
    ("export --to folded --output= FILE", "-o, --output: the name is empty"),
    ("store list --store=", "--store: the name is empty"),
    ("record --quiet=1 /bin/true", "--quiet=1 takes no value"),
    ("help recrod", "unknown command 'recrod'; did you mean 'record'?"),
    ("help nothing-like-it", "unknown command 'nothing-like-it'; 'cairn help' lists them"),
    ("analyze --port 65536 FILE", "--port: 65536 is not a port; write 1 to 65535"),
    ("analyze -", "analyze cannot read standard input; write it to a file first"),
    ("analyze --store FILE", "--store takes neither a FILE nor --diff; a store is named by --store=URL"),
    ("analyze --store --diff FILE", "--store takes neither a FILE nor --diff; a store is named by --store=URL"),
    ("analyze --store=x FILE", "--store takes neither a FILE nor --diff"),
    ("analyze", "no FILE given"),
    ("analyze FILE FILE", "only one FILE can be given; --diff OLD compares two"),
    ("verify", "no FILE given"),
    ("verify FILE FILE", "only one FILE can be given"),
    ("cache forget", "the action must be list, size, clear or limit SIZE"),
    ("cache limit", "the action must be list, size, clear or limit SIZE"),
    ("cache list all", "the action must be list, size, clear or limit SIZE"),
    ("cache limit 1MiB 2MiB", "the action must be list, size, clear or limit SIZE"),
    ("cache limit much", "limit: 'much' is not a size such as 64MiB or 0"),
    ("store", "the action must be add, list, top, diff, query, prune, schema or serve"),
    ("store forget", "the action must be add, list, top, diff, query, prune, schema or serve"),
    ("store add", "add takes FILE..."),
    ("store diff 1.0", "diff takes two versions: OLD and NEW"),
    ("store diff 1.0 1.1 1.2", "diff takes two versions: OLD and NEW"),
    *((f"store {action} x", f"{action} takes no operand") for action in ("list", "top", "prune")),
    *((f"store query{words}", "query takes growth, hosts, history, oom or a SELECT") for words in ("", " growth 1 2 3")),
    ("store list --until 2026-13-01", "--until: '2026-13-01' is not a time such as 2026-01-31, @1790000000 or 7d"),
    ("store list --since 2026-01-31x", "--since: '2026-01-31x' is not a time such as 2026-01-31, @1790000000 or 7d"),
    ("store list --since @", "--since: '@' is not a time such as 2026-01-31, @1790000000 or 7d"),
    ("store list --recording 00000000000000001",
     "--recording: '00000000000000001' is not a recording_id of `cairn store list`"),
    ("store list --recording 000000000000000g",
     "--recording: '000000000000000g' is not a recording_id of `cairn store list`"),
    ("store list --cost beauty", "--cost: 'beauty' is not one of"),
    ("store list -n -1", "--limit: "),
    ("store --store=ftp://x/y list", "--store takes a path, http://... or https://..."),
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
    ("export --to json --no-builtin-suppressions FILE", "--no-builtin-suppressions: only html and sarif leave out such leaks"),
    ("export --to csv --no-embedded-suppressions FILE", "--no-embedded-suppressions: only html and sarif leave out such leaks"),
    ("export --to pprof", "no FILE given"),
    ("export --to pprof FILE FILE", "only one FILE can be given"),
    ("export FILE", "--to FORMAT is required; --list prints the formats"),
    ("export --html --to pprof FILE", "--html and --to cannot be combined"),
    ("export --to pprof --at 1s --time 1s..2s FILE", "--at TIME cannot be combined with --time"),
    ("export --to pprof --at noon FILE", "--at: 'noon' is not peak, end or a time such as 90s"),
    ("export --to massif --lifetime ..1s FILE",
     "--lifetime: massif is a series over time, and a recording does not say when blocks of one lifetime were allocated"),
    *((f"export --to dhat-adhoc {filter_} FILE", "--to dhat-adhoc: filters do not apply to the program's own events")
      for filter_ in ("--time 0..1s", "--size 1", "--lifetime 1s", "--filter-function x", "--file x", "--module x",
                      "--thread x", "--process 1")),
    ("export --to heaptrack -o x.txt FILE", "--output: the name of a file for heaptrack must end in .gz or .zst"),
    ("export --to folded -o FILE FILE", "' is the recording itself"),
    ("report --diff FILE --group-by thread FILE",
     "--diff can only be combined with --tree, --functions or --callers"),
    ("report --diff FILE --histogram FILE", "--diff can only be combined with --tree, --functions or --callers"),
    ("report --width 59 FILE", "--width must be between 60 and 10000"),
    ("report --width 10001 FILE", "--width must be between 60 and 10000"),
    ("report --blocks --functions FILE", "--blocks cannot be combined with other views"),
    ("report --blocks --diff FILE FILE", "--blocks cannot be combined with other views"),
    ("report --csv -p -a FILE", "--csv writes one table: choose one section or view"),
    ("report --csv --functions --histogram FILE", "--csv writes one table: choose one section or view"),
    ("report --csv --sort peak -p FILE", "--csv writes one table: choose one section or view"),
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


# A program that does not exist is looked for after all options were found to be right.
@pytest.mark.parametrize("options", [
    "--sample=16", "--sample=64MiB", "--rotate 1s", "--rotate 1B", "--rotate 1h --keep 1d -o x.cairn",
    "--rotate 512M --max-disk 1G -o x%h.cairn", "--mode 666", "--max-memory 64MiB",
    "--push http://127.0.0.1:1 --push-interval 100ms --push-timeout 100ms " + "".join(f"--label a{i}=b " for i in range(16)),
])
def test_accepted_before_the_program_is_missed(tmp_path, options):
    run = cairn("record", *options.split(), "./missing", cwd=tmp_path)
    assert run.returncode == 127
    assert b"'./missing'" in run.stderr.splitlines()[0]
    assert list(tmp_path.iterdir()) == []


def test_the_size_of_the_cache_is_a_sum(tmp_path):
    def said(*words, status=0, more=None):
        run = cairn("cache", *words, more={"XDG_CACHE_HOME": str(tmp_path), **(more or {})})
        assert run.returncode == status, run.stderr
        return (run.stdout + run.stderr).decode().replace(str(tmp_path), "CACHE")
    assert said("size") == "0 B of 256 MiB in 0 files, CACHE/cairn\n"
    assert said() == said("size")
    folder = tmp_path / "cairn"
    folder.mkdir()
    for name, size, seconds in (("old.names", 1000, 86400), ("new.names", 24, 2 * 86400), ("it.names", 1, 86460)):
        (folder / name).write_bytes(bytes(size))
        os.utime(folder / name, (seconds, seconds))
        assert said("size").split(" in ")[1] == {1: "1 file", 2: "2 files", 3: "3 files"}[
            len(list(folder.iterdir()))] + ", CACHE/cairn\n"
    assert said("list") == ("      size  last used           places  module\n"
                            "      24 B  1970-01-03 00:00         -  (no longer used)\n"
                            "       1 B  1970-01-02 00:01         -  (no longer used)\n"
                            "    1000 B  1970-01-02 00:00         -  (no longer used)\n"
                            "1.00 KiB of 256 MiB in 3 files, CACHE/cairn\n")
    assert said("limit", "1024") == "25 B of 1.00 KiB in 2 files, CACHE/cairn\n"
    assert said("limit", "24") == "24 B of 24 B in 1 file, CACHE/cairn\n"
    assert said("clear") == "1 file removed\n"
    assert said("clear") == "0 files removed\n"
    assert said("limit", "0") == "0 B of 0 B in 0 files, CACHE/cairn\n"
    nowhere = {"XDG_CACHE_HOME": "", "HOME": ""}
    assert said(status=2, more=nowhere) == "cairn: there is no cache: HOME is not set\n"


@pytest.mark.parametrize("name, is_recording", [
    ("x.cairn", True), (".cairn", True), ("heaptrack.x.1", True), ("heaptrack.", True), ("heaptrack_x", False),
    ("heaptracks", False), ("cairn", False), ("x.cairns", False),
])
def test_files_that_are_opened_and_not_run(tmp_path, name, is_recording):
    (tmp_path / name).write_bytes(b"no recording")
    run = cairn(f"./{name}", cwd=tmp_path)
    assert run.returncode == (2 if is_recording else 126)
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    (tmp_path / name).write_bytes(b"#!/bin/false\n")
    (tmp_path / name).chmod(0o700)  # a program, by whatever name
    assert cairn("record", "--mode", "1", f"./{name}", cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("words", [
    "record --mode 600 /bin/true", "record --mode 0666 /bin/true", "record --max-memory 67108864 /bin/true",
    "record --start-paused /bin/true", "record --delay 1s /bin/true",
    "record --overflow sample /bin/true",
    "report --time 0..0.1 FILE", "report --time 0..0.2 --classes in_in,out_out FILE",
    "diff --per 10 FILE FILE", "diff --per second FILE FILE",
    "check --baseline FILE --max-growth=5% --per 10 FILE", "export --to pprof --at peak FILE",
])
def test_accepted(file, tmp_path, words):
    run = cairn(*words.replace("FILE", str(file)).split(), cwd=tmp_path)
    assert run.returncode == 0, run.stderr
