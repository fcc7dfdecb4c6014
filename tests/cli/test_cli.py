# SPDX-License-Identifier: MIT
"""The command line on drawn recordings: words, widths, JSON fields, hostile names."""
import collections
import json
import os
import re
import signal
import subprocess

import pytest

from drawn import CAIRN, ROOT, cairn, counters, environment, json_of, on_terminal, text_of

COMMANDS = ("record", "report", "diff", "check", "top", "analyze", "export", "symbolize", "cache", "help",
            "version")

SERVER = """\
!program /usr/bin/server
!command_line server --threads 2
!host buildbox
!peak_time_ms 1234
!runtime_ms 5678
!start_unix_ms 1790000000000
!unknown_frees 3
!rss 100 0 90000000
!advice 1 install the package with its debug information
!loss lost_events 0 events that were lost
!note unnamed_code 2 frames in code without a file
process server
thread main
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 10000 100000000 4000 40000000 2000 20000 6000 60000000 60000000
@0 6000 60000000 0 0 2000
@1 4000 40000000 4000 40000000 0
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:10)=>push(/src/vec.h:7)=>operator new(unsigned long)(new.h:1) 5 500 5 500 5 500 0 0 100
thread worker-1
/opt/bin/server!start;/opt/bin/server!work(app.c:20);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 3 30 3 30 0 0 0 0 30
process helper
thread main
/opt/bin/helper!spin(l.c:1);/opt/bin/helper!spin(l.c:1) 8 64 8 64 0 0 0 0 64
"""


@pytest.fixture
def server(draw):
    return draw(SERVER)


# Mistakes and help

@pytest.mark.parametrize("arguments, words", [
    (["--no-such-option"], ["--no-such-option", "help record"]),
    (["-Z"], ["-Z"]),
    (["-o"], ["-o needs a value"]),
    (["record"], ["PROGRAM"]),
    (["record", "--", ], ["PROGRAM"]),
    (["record", "--max-frames", "0", "true"], ["--max-frames", "at least 8"]),
    (["record", "--max-frames=4294967296", "true"], ["--max-frames"]),
    (["record", "--checkpoint-interval", "5 parsecs", "true"], ["--checkpoint-interval", "500ms"]),
    (["record", "--checkpoint-interval", "99999999h", "true"], ["--checkpoint-interval"]),
    (["record", "--overflow", "panic", "true"], ["--overflow", "wait", "sample"]),
    (["-p", "x"], ["-p", "whole number"]),
    (["-p1", "true"], ["contradict"]),
    (["--interpret", "x"], ["cairn report"]),
    (["--debug", "true"], ["gdb"]),
    (["--use-inject", "true"], ["leave the option out"]),
    (["--asan", "true"], ["AddressSanitizer"]),
    (["--quiet=yes", "true"], ["takes no value"]),
    (["report"], ["FILE"]),
    (["report", "a", "b"], ["only one FILE"]),
    (["report", "--sort", "beauty", "x"], ["--sort", "beauty", "peak"]),
    (["report", "--filter-function", "(", "x"], ["--filter-function", "regular expression"]),
    (["report", "--module", "[z-a]", "x"], ["--module", "regular expression"]),
    (["report", "--process", "0", "x"], ["--process"]),
    (["report", "-n", "-1", "x"], ["-n"]),
    (["report", "/nowhere/x.cairn"], ["/nowhere/x.cairn", "No such file"]),
    (["report", "/"], ["directory"]),
    (["report", "/etc/passwd"], ["/etc/passwd", "not a recording"]),
    (["analyze"], ["FILE"]),
    (["--analyze", "/nowhere/x.cairn"], ["/nowhere/x.cairn"]),
    (["help", "reprot"], ["did you mean 'report'"]),
    (["help", "zzzzzz"], ["unknown command"]),
])
def test_mistakes_get_one_sentence(tmp_path, arguments, words):
    run = cairn(*arguments, cwd=tmp_path)
    said = run.stderr.decode()
    assert (run.returncode, run.stdout) == (2, b""), said
    assert said.startswith("cairn: ") and said.count("\n") == 1, said
    for word in words:
        assert word in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("typed, meant", [
    ("reprot", "report"), ("repot", "report"), ("recrod", "record"), ("analyse", "analyze"),
])
def test_a_mistyped_command_is_guessed(tmp_path, typed, meant):
    run = cairn(typed, "x", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (127, b"")
    assert f"did you mean 'cairn {meant}'?" in run.stderr.decode()


def test_no_words_at_all_print_the_overview():
    run = cairn()
    assert (run.returncode, run.stderr) == (2, b"")
    assert run.stdout == cairn("--help").stdout == cairn("help").stdout == cairn("-h").stdout
    for command in COMMANDS:
        assert f"  {command} ".encode() in run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    run = cairn("help", command)
    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout == cairn(command, "--help").stdout == cairn(command, "-h").stdout
    text = run.stdout.decode()
    assert text.startswith(f"Usage: cairn {command}")
    assert max(map(len, text.splitlines())) <= 80, max(text.splitlines(), key=len)


@pytest.mark.parametrize("command, option", [("report", "--sort"), ("export", "--cost")])
def test_the_help_names_every_cost(command, option):
    text = " ".join(cairn("help", command).stdout.decode().split())
    said = cairn(command, option, "beauty").stderr.decode()
    names = said.partition("is not one of ")[2].partition(";")[0].split()
    assert len(names) == 11
    for name in names:
        assert re.search(rf"{option}.*[ ,]{name}[ ,.]", text), name


def test_the_version_is_a_version():
    for form in ("--version", "-v", "version"):
        assert re.fullmatch(rb"cairn \d+\.\d+\.\d+\n", cairn(form).stdout)


# What opens

@pytest.mark.parametrize("form", [["--analyze"], ["-a"], ["analyze"], []])
def test_forms_that_show_a_recording(server, form):
    """A page if this build has a viewer, else the report."""
    with subprocess.Popen([CAIRN, *form, server, *(["--no-browser"] if form else [])],
                          env=environment({"DISPLAY": "", "WAYLAND_DISPLAY": ""}),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as run:
        first = run.stdout.readline()
        run.send_signal(signal.SIGTERM)
        rest = run.stdout.read()
        assert run.wait(timeout=60) in (0, -signal.SIGTERM)
    if first.startswith(b"http://127.0.0.1:"):
        assert re.fullmatch(rb"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}\n", first)
        assert rest == b""
    else:
        assert (first + rest).decode() == text_of(server)


def test_options_may_follow_the_file(server):
    assert text_of(server, "-n", "1") == text_of("-n", "1", server)


def test_an_executable_recording_is_taken_for_a_program(server):
    server.chmod(0o755)
    run = cairn(server)
    assert run.returncode != 0 and run.stdout == b""


@pytest.mark.parametrize("content, word", [
    (b"", "empty"), (b"hello\n", "not a recording"),
    (b"v 10500 9\nx /usr/bin/app\nX app\nI 1000 1f40\n", "heaptrack"),
])
def test_files_that_are_no_recordings(tmp_path, content, word):
    path = tmp_path / "given.cairn"
    path.write_bytes(content)
    for form in (["report"], ["-a"], []):
        run = cairn(*form, path)
        assert (run.returncode, run.stdout) == (2, b"")
        assert word in run.stderr.decode() and run.stderr.count(b"\n") == 1


def test_a_cut_file_is_shown_as_far_as_it_goes(server):
    content = server.read_bytes()
    server.write_bytes(content[:len(content) * 9 // 10])
    run = cairn("report", "--all", server)
    if run.returncode == 0:
        assert run.stdout.startswith(b"!! ")
        assert json_of(server)["damage"]
    else:
        assert (run.returncode, run.stdout) == (2, b"")
        assert run.stderr.startswith(b"cairn: ") and run.stderr.count(b"\n") == 1


def test_every_cut_gives_a_report_or_a_sentence(server):
    content = server.read_bytes()
    shown = 0
    for size in range(0, len(content), max(1, len(content) // 60)):
        server.write_bytes(content[:size])
        run = cairn("report", "--json", server)
        assert run.returncode in (0, 2), (size, run)
        if run.returncode == 0:
            shown += 1
            assert json.loads(run.stdout)["version"] == 3
        else:
            assert run.stdout == b"" and run.stderr.startswith(b"cairn: ")
    assert shown > 0


def test_a_running_checkpoint_is_said_to_be_one(draw):
    path = draw(SERVER + "!state 0\n")
    assert "was still running when" in text_of(path).splitlines()[0]
    run = cairn("report", "--json", path)
    assert b"was still running when" in run.stderr
    assert json.loads(run.stdout)["run"]["state"] == "running"


def test_losses_come_first(draw):
    path = draw(SERVER.replace("lost_events 0", "lost_events 17"))
    first = text_of(path).splitlines()[0]
    assert first == "!! events were lost: events that were lost (17)"
    run = cairn("report", "--json", path)
    assert b"events were lost" in run.stderr
    assert counters(json.loads(run.stdout), "loss") == {"lost_events": 17}


# The text

def test_the_report_of_a_server(server):
    text = text_of("-n", "1", "-s", "1", server)
    for line in (
            "server --threads 2",
            "  2026-09-21 14:13:20 +0000, on buildbox, for 5.68 s, exit status 0",
            "  2 processes, 3 threads, 4 call stacks",
            "  peak heap      57.2 MiB  60,000,000 bytes after 1.23 s",
            "  allocated      95.4 MiB  100,000,594 bytes",
            "  leaked         57.2 MiB  60,000,000 bytes in 6,000 blocks",
            "  peak RSS       85.8 MiB  90,000,000 bytes",
            "  1.   57.2 MiB   100%  load",
            "                        app.c:10 in server, 6,000 blocks",
            "        strdup  [libc.so.6]",
            "        load    app.c:10 [server]",
            "        main    app.c:1",
            "      3 by 1 more stack",
    ):
        assert line in text.splitlines(), line
    assert "install the package with its debug information" in text
    assert text.endswith("    frames in code without a file: 2\n")


@pytest.mark.parametrize("drawing, why", [
    ("process nothing\nthread main\n", "cairn's library was not loaded. Programs that are static or setuid"),
    ("!state 0\nprocess nothing\nthread main\n", "No allocation has been recorded so far."),
])
@pytest.mark.parametrize("view", [(), ("--tree=top-down",), ("--histogram",)])
def test_a_recording_without_allocations_says_why(draw, drawing, why, view):
    text = text_of(*view, draw(drawing))
    assert why in " ".join(text.split())
    for title in ("PEAK MEMORY", "ALLOCATIONS", "LEAKED", "TREE", "SIZES"):
        assert title not in text


@pytest.mark.parametrize("runtime_ms, allocations, rate", [(1000, 5, 5), (500, 7, 14), (4000, 8000, 2000),
                                                           (90_000, 4_500_000, 50_000)])
def test_the_rate_is_for_a_second_of_the_run(draw, runtime_ms, allocations, rate):
    path = draw(f"!runtime_ms {runtime_ms}\nprocess app\nthread main\nmain {allocations} {allocations}\n")
    (line,) = [line for line in text_of(path).splitlines() if line.startswith("  allocations ")]
    assert line.split() == ["allocations", f"{allocations:,}", f"{rate:,}", "a", "second"]


@pytest.mark.parametrize("peaks", [[30, 70], [70, 30], [30, 70, 50], [50, 70, 50, 30]], ids=str)
def test_processes_stand_with_the_largest_peak_first(draw, peaks):
    """Equal ones stand in the order of the recording."""
    path = draw("".join(f"process p{at}\nthread main\nmain 1 1\n!process_peak {at} {peak}\n"
                        for at, peak in enumerate(peaks)))
    text = text_of(path)
    lines = [line for line in text[text.index("\nPROCESSES"):].splitlines() if "at its peak" in line]
    wanted = sorted(enumerate(peaks), key=lambda one: -one[1])
    assert [line.split() for line in lines] == [
        [str(peak), "B", "at", "its", "peak,", "1", "allocation", str(1000 + at), f"p{at}"]
        for at, peak in wanted], text
    assert [process["process_peak_bytes"] for process in json_of(path)["processes"]] == peaks


@pytest.mark.parametrize("count, more", [(40, None), (41, 1), (1234, 1194)])
def test_marks_beyond_the_first_are_counted(draw, count, more):
    marks = "".join(f"!mark {i} step-{i}\n" for i in range(count))
    text = text_of(draw(f"!runtime_ms 5000\n{marks}process app\nthread main\nmain 1 1\n"))
    assert text.count("  step-") == min(count, 40)
    assert (f"  and {more:,} more\n" in text) if more else "  and " not in text[text.index("MARKS"):]


SLICES = 40


def site(name, line, blocks, size):
    """A call site and its blocks, (born, freed or None) by slice of 100 ms."""
    freed = [block for block in blocks if block[1] is not None]
    yield (f"app!main;app!{name}(a.c:{line}) {len(blocks)} {len(blocks) * size} "
           f"{len(freed)} {len(freed) * size} 0 0 1 {size} {size}\n")
    for i in range(SLICES):
        born = sum(block[0] == i for block in blocks)
        died = sum(block[1] == i for block in blocks)
        if born + died:
            yield f"@{i} {born} {born * size} {died} {died * size} 0\n"
    for (born, died), count in sorted(collections.Counter(blocks).items(),
                                      key=lambda item: (item[0][0], item[0][1] or SLICES)):
        if died is None or died > born:
            yield f"cohort {born} {'-' if died is None else died} {count} {count * size}\n"


def curves():
    """The live bytes of each call site develop in another way."""
    yield "process app\nthread main\n"
    yield from site("leak", 1, [(i, None) for i in range(SLICES)], 10)
    yield from site("table", 2, [(0, None), (0, None)], 70)
    yield from site("warm_up", 3, [(i, None) for i in range(15)], 10)
    yield from site("cache", 4, [(i, i + 1 if i + 1 < SLICES else None) for i in range(SLICES)], 60)
    yield from site("late", 5, [(SLICES - 1, None)] * 2, 20)
    yield from site("single", 6, [(20, None)], 30)


def test_leaks_are_reported_from_what_only_fills_up(draw):
    path = draw("".join(curves()))
    lines = text_of("--sort", "leaked", path).splitlines()
    said = {re.split(" +", line)[-1]: lines[i + 2].strip()
            for i, line in enumerate(lines) if re.match(r" +\d\. ", line)}
    assert said == {"leak": "still growing, by 100 B a second over the last 2.00 s",
                    "table": "allocated at start-up and kept",
                    "warm_up": "not growing any more, since 1.50 s",
                    "cache": "renewed all the time, but not growing",
                    "late": "allocated just before the end: too late to tell",
                    "single": "one block, allocated once"}
    for sort in ("leaked", "leaked-blocks"):
        sites = json_of("--sort", sort, path)["leaks"]["leaks"]
        assert {site["function"]: site["growth"] for site in sites} == {
            "leak": "growing", "table": "start_up", "warm_up": "stopped", "cache": "bounded",
            "late": "late", "single": "once"}
        assert {site["function"]: site["slope_bytes_per_s"] for site in sites} == {
            "leak": 100, **dict.fromkeys(["table", "warm_up", "cache", "late", "single"])}
        assert [site["slope_ms"] for site in sites if site["slope_ms"] is not None] == [SLICES * 100 // 2]
        assert {site["function"] for site in sites if site["growth_confidence"] == "low"} == {"late"}
    for options in ((), ("--sort", "peak"), ("--sort", "leaked", "--time", "100ms..300ms")):
        assert json_of(*options, path)["leaks"] is None


def test_growth_is_that_of_the_time_with_work(draw):
    """The process allocates nothing in the last 15 of 40 slices, but once at its end."""
    end = f"app!main;app!exit 1 1 1 1\n@{SLICES - 1} 1 1 1 1 0\n"
    leak = "".join(site("leak", 1, [(i, None) for i in range(25)], 10_000_000))
    work = "".join(site("request", 2, [(i, i) for i in range(25)] * 3, 20))
    for others, said, until in ((work, r"grew by 9\.\d\d MiB|grew by 9\d\.\d MiB", 2500), ("", "not growing any more", None)):
        path = draw("process app\nthread main\n" + leak + others + end)
        text = " ".join(text_of("--sort", "leaked", path).split())
        assert re.search(said, text), text
        (row,) = [row for row in json_of("--sort", "leaked", path)["leaks"]["leaks"] if row["function"] == "leak"]
        assert row["grew_until_ms"] == until
        assert ("a second until 2.50 s, while there was work" in text) == (until is not None)
        assert ("not growing any more, since 2.50 s, but there was no work since" in text) == (until is None)
        assert "it is not sure whether they grow with the work" in text
        assert row["growth_confidence"] == "low"  # few slices, or nothing else was done


def test_what_several_processes_hold_alike_is_one_line(draw):
    kinds = "0 0 0 {mapped} 0 {file} 0 0 0"
    path = draw("".join((
        "process parent\nthread main\napp!main(a.c:1) 1 10 0 0 0 0 1 10 10\n",
        "process child\nthread main\napp!main(a.c:1);app!map 1 10 0 0 0 0 1 10 10\n",
        f"!snapshot 100 0 1 {kinds.format(mapped=3 << 20, file=5 << 20)}\n",
        f"!snapshot 100 1 1 {kinds.format(mapped=1 << 20, file=9 << 20)}\n",
        f"!part 0 4 2 {3 << 20} {4 << 20}\n",
        f"!part 0 6 0 {3 << 20} {8 << 20} /lib/small.so\n",
        f"!part 0 6 0 {2 << 20} {8 << 20} /lib/both.so\n",
        f"!part 1 4 2 {1 << 20} {4 << 20}\n",
        f"!part 1 6 0 {9 << 20} {16 << 20} /lib/both.so\n")))
    text = text_of(path)
    section = [line.split() for line in text[text.index("  mapped by"):].splitlines() if line]
    assert section[:5] == [
        "mapped by the program".split(), "4.00 MiB of 8.00 MiB map app".split(), ["files"],
        "11.0 MiB of 24.0 MiB /lib/both.so".split(), "3.00 MiB of 8.00 MiB /lib/small.so".split()]


def test_inlined_frames_are_marked(server):
    text = text_of("--filter-function", "push", server)
    assert re.search(r"operator new\(unsigned long\) \(inlined\) +new\.h:1 \[server\]", text)
    assert re.search(r"push \(inlined\) +vec\.h:7\n +load +app\.c:10\n", text)
    assert re.search(r"1\. .*  push \(inlined\)\n", text)


def test_the_error_of_the_peak_is_shown(draw):
    path = draw(SERVER + "!peak_error_bytes 4096\n")
    assert "60,000,000 bytes, at least 59,995,904, at most 60,004,096 after" in text_of("--width=100", path)
    # A part never held more than the 30 or 64 bytes that it allocated.
    assert "  0 bytes, at least 0, at most 30 after" in text_of("--filter-function", "^start$", path)
    totals = json.loads(text_of("--json", "--filter-function", "^spin$", path))["totals"]
    assert (totals["peak_at_least_bytes"], totals["peak_bytes"], totals["peak_at_most_bytes"]) == (0, 0, 64)


def test_deep_stacks_are_cut_in_the_middle(draw):
    frames = ";".join(f"app!f{n}(a.c:{n})" for n in range(1, 101))
    path = draw(f"process app\nthread main\n{frames} 1 10 0 0 0 0 1 10 10\n")
    text = text_of("--sort", "peak", "--max-depth", "10", path)
    assert "... 90 more frames" in text
    assert re.search(r"\n +f1 +a\.c:1 \[app\]\n", text), "the outermost frame stays"
    assert "f91 " not in text and "f92 " in text
    assert text_of("--sort", "peak", "--max-depth", "0", path).count("a.c:") == 101
    assert len(json_of(path)["top"]["peak_bytes"][0]["stacks"][0]["frames"]) == 100


LONG = ("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> > "
        "company::product::component::Repository<company::product::model::Customer, "
        "std::vector<company::product::model::Order, std::allocator<int> > >::find_or_create"
        "(std::map<int, std::pair<int, char const*>, std::less<int> > const&, unsigned long) const")


def long_names():
    other = "Ψυχή::数据库::загрузить_все_данные_из_хранилища_без_исключения(int)"
    return (f"!command_line {'x' * 300}\n!host {'h' * 90}\nprocess app\nthread main\n"
            f"/opt/{'d' * 200}/{'m' * 100}!{LONG}(/{'s' * 200}/{'f' * 90}.cpp:123456);"
            f"app!{other}(数据库数据库数据库数据库数据库数据库数据库数据库.cpp:99)=>{LONG}(x.h:1);"
            f"lib!{'n' * 300} 1234567890 12345678901234 0 0 123456789 1234567 99999999 12345678901 1\n"
            f"lib!inner(/{'s' * 200}/{'f' * 90}.cpp:123456) 1234567890 12345678901234 "
            "0 0 123456789 1234567 99999999 12345678901 1\n")


@pytest.mark.parametrize("sort", ["peak", "allocations", "temporary", "leaked", "allocated"])
def test_no_line_is_longer_than_80_columns(draw, sort):
    def columns(line):
        return sum(2 if "\u1100" <= c <= "\uffdc" else 1 for c in line)
    text = text_of("--sort", sort, draw(long_names()))
    widest = max(text.splitlines(), key=columns)
    assert columns(widest) <= 80, widest


def test_long_names_are_shortened_by_default(draw):
    path = draw(long_names())
    assert LONG not in text_of(path)
    whole = text_of("--full-names", path)
    assert LONG in whole and "/" + "s" * 200 + "/" + "f" * 90 + ".cpp:123456" in whole


# Numbers of options

def test_the_limits_limit(server):
    report = json_of("-n", "1", "-s", "1", server)
    assert {len(sites) for sites in report["top"].values()} == {1}
    assert {len(site["stacks"]) for sites in report["top"].values() for site in sites} == {1}
    assert report["top"]["allocations"][0]["stack_count"] == 2
    assert report["top"]["allocations"][0]["stacks_shown"] == 1
    assert len(json_of("-n", "0", server)["top"]["allocations"]) == 3


def test_json_leaves_stacks_out_by_default_and_counts_them(draw):
    """A site with a million stacks must not make a report of gigabytes, and the reader must see
    that stacks are omitted."""
    path = draw("".join(f"main(a.c:1);way{i}(a.c:{i + 2});site(a.c:1) 1 16\n"
                        for i in range(250)))
    for options, shown in (((), 100), (("-s", "7"), 7), (("-s", "300"), 250), (("-s", "0"), 250)):
        site = json_of(*options, path)["top"]["allocations"][0]
        assert site["stack_count"] == 250
        assert len(site["stacks"]) == shown
        assert site["stacks_shown"] == shown


def test_json_counts_the_call_sites_that_it_leaves_out(draw):
    path = draw("".join(f"main(a.c:1);site{i}(a.c:{i + 2}) 1 16 {i % 2} {16 * (i % 2)}\n" for i in range(30)))
    for options, shown in (((), 10), (("-n", "7"), 7), (("-n", "0"), 30)):
        report = json_of(*options, path)
        assert len(report["top"]["allocations"]) == shown
        assert report["top_counts"]["allocations"] == 30
    assert report["top_counts"]["live_bytes"] == len(report["top"]["live_bytes"])


@pytest.mark.parametrize("options, allocations", [
    ([], 10016), (["--filter-function", "^load$"], 10008), (["--filter-function", "push"], 5),
    (["--thread", "worker-1"], 3), (["--thread", "work*"], 3), (["--module", "libc"], 10003),
    (["--module", "helper"], 8), (["--filter-function", "nobody"], 0),
    (["--thread", "main", "--module", "libc"], 10000),
    (["--thread", "main", "--filter-function", "^(push|spin)$"], 13),
])
def test_filters_compose(server, options, allocations):
    report = json_of("-n", "0", *options, server, status=0 if allocations > 0 else 1)
    assert report["totals"]["allocations"] == allocations
    assert sum(site["costs"]["allocations"] for site in report["top"]["allocations"]) == allocations
    for kind in ("processes", "threads", "modules"):
        assert sum(entry["costs"]["allocations"] for entry in report[kind]) == allocations


def test_a_process_is_chosen_by_its_pid(server):
    pid = json_of(server)["processes"][1]["pid"]
    assert json_of("--process", pid, server)["totals"]["allocations"] == 8
    assert "Only data that matches the filter" in text_of("--process", pid, server)


@pytest.mark.parametrize("sort, key", [
    ("peak", "peak_bytes"), ("allocations", "allocations"), ("temporary", "temporary"),
    ("leaked", "live_bytes"), ("allocated", "allocated_bytes"), ("peak-blocks", "peak_blocks"),
    ("leaked-blocks", "live_blocks"), ("temporary-bytes", "temporary_bytes"),
    ("own-peak", "own_peak_bytes"), ("frees", "frees"), ("freed", "freed_bytes")])
def test_every_sort_gives_its_section(server, sort, key):
    assert list(json_of("--sort", sort, server)["top"]) == [key]
    assert text_of("--sort", sort, server).count("\n  1. ") == 1


# JSON

def documented_fields():
    """{table: {field}} of docs/format/json.md, one set for each table of fields: named by the
    heading above it, or by its own head ("field of a node")."""
    heading, fields = "", {}
    for line in (ROOT / "docs" / "format" / "json.md").read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").strip("`")
        elif line.startswith(("| field of a", "| class of")):
            heading = re.match(r"\| (?:field of a|class of) `?(\w+)", line).group(1)
        elif line.startswith("| `"):
            fields.setdefault(heading, set()).update(re.findall(r"`(\w+)`", line.split("|")[1]))
    return fields


VIEWS = {"leaks", "adhoc", "blocks", "rss", "groups", "functions", "callers", "tree", "sizes", "lifetimes"}
TABLES = {"suppressions", "processes", "threads", "modules"}


def test_json_has_the_documented_fields_and_no_others(server):
    wanted = documented_fields()
    costs = wanted["Costs"]
    sampled = {"totals_errors", "baseline_totals_errors", "errors", "slope_error", "variance", "inverse_lengths", "shortest_length"}
    report = json_of("--tree", "top-down", "--sort", "leaked", server)
    assert set(report) == {"version", "selection"} | wanted["summary"] | TABLES | VIEWS
    selection = report["selection"]
    assert set(selection) == wanted["selection"] - sampled and set(selection["filter"]) == wanted["filter"]
    assert set(selection["totals"]) == set(selection["estimated"]) == costs
    assert set(report["run"]) == wanted["run"]
    assert set(report["totals"]) == wanted["totals"] | costs - {"own_peak_bytes"}
    assert list(report["top"]) == ["live_bytes"]
    for site in report["top"]["live_bytes"]:
        assert set(site) == wanted["call_sites"] - sampled
        assert set(site["costs"]) == costs
        for stack in site["stacks"]:
            assert set(stack) == {"costs", "frames"}
            assert {field for frame in stack["frames"] for field in frame} == wanted["Code"]
    for kind in ("processes", "threads", "modules"):
        for entry in report[kind]:
            assert set(entry) == wanted[kind]
            assert set(entry["costs"]) == costs
    assert set(report["tree"]) == wanted["tree"] - sampled
    assert {field for node in report["tree"]["nodes"] for field in node} == wanted["node"] - {"matched", "location"} - sampled
    assert set(report["rss"]) == wanted["rss"]
    for entry in report["rss"]["breakdowns"]:
        assert set(entry) == wanted["breakdown"]
    for entry in report["leaks"]["leaks"] if report["leaks"] else []:
        assert set(entry) == wanted["leaks"] - sampled


def test_json_values(server):
    report = json_of(server)
    assert report["version"] == 3 and report["damage"] is None
    assert counters(report, "loss") == {"lost_events": 0}
    assert counters(report, "note") == {"unnamed_code": 2}
    assert all(type(value) is int for value in report["totals"].values())
    totals = report["totals"]
    assert (totals["peak_bytes"], totals["peak_time_ms"], totals["peak_rss_bytes"],
            totals["unknown_frees"], totals["runtime_ms"]) == (60000000, 1234, 90000000, 3, 5678)
    frames = report["top"]["temporary"][1]["stacks"][0]["frames"]
    assert [(f["function"], f["file"], f["line"], f["inlined"]) for f in frames] == [
        ("operator new(unsigned long)", "new.h", 1, True), ("push", "/src/vec.h", 7, True),
        ("load", "/src/app.c", 10, False), ("main", "/src/app.c", 1, False)]


# Hostile names

HOSTILE = [
    (b"\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
    (b"\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    (b"bell\x07back\x08tab\x09return\x0d", "bell\\x07back\\x08tab\\x09return\\x0d"),
    (b"\xc2\x9b31m", "\\u{9b}31m"),
    (b"\xff\xfe no utf-8 \xc0\x80", "\\xff\\xfe no utf-8 \\xc0\\x80"),
    ("\u202egnirts".encode(), "\\u{202e}gnirts"),
    ("zero\u200bwidth".encode(), "zero\\u{200b}width"),
    ("naïve_функция".encode(), "naïve_функция"),
    (b"\x7fdel", "\\x7fdel"),
    (b"%s%n%1000000d", "%s%n%1000000d"),
]


@pytest.mark.parametrize("name, shown", HOSTILE)
def test_hostile_names_are_shown_not_obeyed(draw, name, shown):
    path = draw(b"!command_line " + name + b"\nprocess " + name + b"\nthread " + name +
                b"\nprocess b\nthread main\n/x/" + name + b"!" + name + b"(" + name +
                b":3) 5 50 0 0 5 50 5 50 50\n")
    for options in ([], ["--full-names"]):
        run = cairn("report", "--all", *options, path)
        assert run.returncode == 0
        text = run.stdout.decode()
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202e]", text)
        if not shown.startswith(("bell", "\\xff")) or options:
            assert shown in text
    json_of(path)


def test_hostile_arguments_are_shown_not_obeyed():
    said = cairn("report", "--all", "/\x1b[31mgone\n").stderr
    assert b"\x1b" not in said and b"\\x1b[31mgone\\x0a" in said and said.count(b"\n") == 1


# Colours and pipes

def test_colours_only_on_a_terminal_that_wants_them(server):
    assert "\x1b" not in text_of(server)
    assert b"\x1b[" in on_terminal("report", "--all", server)
    for more in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}, {"TERM": None}):
        assert b"\x1b" not in on_terminal("report", "--all", server, more=more)
    assert b"\x1b" not in on_terminal("report", "--all", "--no-color", server)
    assert b"\x1b" in on_terminal("report", "--all", server, more={"NO_COLOR": ""})
    plain = re.sub(rb"\x1b\[\d*m|\r", b"", on_terminal("report", "--all", "-s", "5", server))
    assert plain.decode() == text_of(server)


def test_dump_writes_what_would_end_a_field_as_a_number(draw):
    run = cairn("dump", "-t", "strings", draw(b"a\\b\tc\x1bd\x7fe\x03f~ 1 8\n"))
    assert (run.returncode, run.stderr) == (0, b"")
    assert rb"a\x5cb\x09c\x1bd\x7fe\x0af~" in run.stdout.splitlines()


def test_dump_writes_what_a_terminal_would_obey_as_a_number(draw):
    hostile = "app!\u009b31m\u0085\u202eäf(a.c:1)".encode() + b"\xff\xed\xa0\x80(a.c:1) 1 8 0 0 0 0 1 8 8\n"
    run = cairn("dump", "-t", "strings", draw(b"process app\nthread main\n" + hostile))
    assert (run.returncode, run.stderr) == (0, b"")
    assert "\\u{9b}31m\\u{85}\\u{202e}äf(a.c:1)\\xff\\xed\\xa0\\x80" in run.stdout.decode()


def test_json_has_nothing_that_a_terminal_would_obey(draw):
    names = draw("process app\nthread main\napp!\u009b31m\u0085\u202ef(a.c:1) 1 8 0 0 0 0 1 8 8\n".encode())
    run = cairn("report", "--json", names)
    assert rb"\u009b31m\u0085\u202ef" in run.stdout
    assert json.loads(run.stdout)["top"]["allocations"][0]["function"] == "\u009b31m\u0085\u202ef"


def test_a_report_beyond_the_limit_of_files_is_a_sentence(server, tmp_path):
    for limit in (0, 64):
        with open(tmp_path / "report", "wb") as out:
            run = subprocess.run(["sh", "-c", f'trap - XFSZ; ulimit -c 0; exec prlimit --fsize={limit} "$0" report "$1"',
                                  CAIRN, server], stdout=out, stderr=subprocess.PIPE, check=False, timeout=60)
        assert (run.returncode, run.stderr) == (2, b"cairn: cannot write the output: File too large\n")


def test_a_reader_that_goes_away_is_no_error(draw):
    frames = "".join(f"app!f{n}(a.c:{n}) 1 10 0 0 0 0 1 10 10\n" for n in range(4000))
    path = draw("process app\nthread main\n" + frames)
    for options in (["-n", "0"], ["-n", "0", "--json"]):
        reader, writer = os.pipe()
        run = subprocess.Popen([CAIRN, "report", "--all", *options, path], stdout=writer,
                               stderr=subprocess.PIPE, env=environment())
        os.close(writer)
        assert os.read(reader, 10)
        os.close(reader)
        assert run.communicate(timeout=60)[1] == b""


def test_a_full_disk_is_reported(server):
    if not os.path.exists("/dev/full"):
        pytest.fail("this system has no /dev/full")
    with open("/dev/full", "wb") as full:
        run = subprocess.run([CAIRN, "report", "--all", server], stdout=full, stderr=subprocess.PIPE,
                             check=False, env=environment(), timeout=60)
    assert run.returncode == 2
    assert b"No space left" in run.stderr and run.stderr.count(b"\n") == 1
