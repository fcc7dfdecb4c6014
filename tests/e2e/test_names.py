# SPDX-License-Identifier: MIT
"""Names from a cache, or added after recording: debug information of a program that was stripped,
moved or removed since."""
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import urllib.request

import pytest
import terminal

from cairn_run import BUILD, CAIRN, IS_NIGHTLY, PROGRAMS, ROOT, environment
from waiting import wait_until

SOURCE = """
#include <stdlib.h>
static inline void *innermost(size_t size) { return malloc(size); }
__attribute__((noinline)) static void *middle(size_t size) { void *p = innermost(size); __asm__ volatile("" ::: "memory"); return p; }
int main(int argc, char **argv) { (void)argv; for (int i = 0; i < argc; i++) { void *p = middle(4321); __asm__ volatile("" :: "r"(p)); } return 0; }
"""
NAMED = [("innermost", 3), ("middle", 4), ("main", 5)]


def run(*command, **settings):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True,
                          timeout=120, **settings).stdout


def build_id_of(program):
    return re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", program))[1]


def debug_name(build_id):
    return f".build-id/{build_id[:2]}/{build_id[2:]}.debug"


class Split:
    """A stripped program, and its debug information elsewhere; built once for each choice of flags."""
    built = {}

    def __init__(self, folder, *flags):
        (folder / "app").mkdir(parents=True)
        self.program = folder / "app" / "app"
        self.debug = folder / "app.debug"
        (folder / "app.c").write_text(SOURCE)
        if flags not in Split.built:
            Split.built[flags] = self.build(folder / "app.c", flags)
        for path, (mode, content) in zip((self.program, self.debug), Split.built[flags]):
            path.write_bytes(content)
            path.chmod(mode)

    def build(self, source, flags):
        run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", *flags, source, "-o", self.program)
        run("objcopy", "--only-keep-debug", self.program, self.debug)
        run("strip", self.program)
        return [(path.stat().st_mode, path.read_bytes()) for path in (self.program, self.debug)]

    def offer(self, debug_dir):
        """Put the debug file at the path of its build-id."""
        target = debug_dir / debug_name(build_id_of(self.program))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.debug, target)
        return target


@pytest.fixture(scope="session")
def names_of_libraries(tmp_path_factory):
    """A cache of names that has the system's libraries alone: to read libc's takes most of such a recording."""
    folder = tmp_path_factory.mktemp("libraries")
    cairn("record", "-q", "-o", folder / "x.cairn", "--", PROGRAMS / "objects", env={"XDG_CACHE_HOME": str(folder)})
    return folder / "cairn"


@pytest.fixture(autouse=True)
def no_other_cache(monkeypatch, request, tmp_path_factory):
    """What the other tests have looked up is not known here."""
    folder = BUILD / "tests" / "no_cache"
    if not IS_NIGHTLY:
        folder = tmp_path_factory.mktemp("cache")
        shutil.copytree(request.getfixturevalue("names_of_libraries"), folder / "cairn")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


@pytest.fixture
def no_cache(no_other_cache, monkeypatch):
    """Nor what this test has: a file is in the way."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(BUILD / "tests" / "no_cache"))


@pytest.fixture
def split(scratch):
    return Split(scratch / "split")


@pytest.fixture
def cache(scratch):
    """An environment with its own cache."""
    (scratch / "xdg").mkdir()
    return {"XDG_CACHE_HOME": str(scratch / "xdg")}


def names_of(recording, *options):
    """Functions and lines of the only stack with a block of 4321 bytes, inside the program."""
    stacks = [frames for costs, frames in stacks_of(recording, *options)
              if costs["allocated_bytes"] == 4321]
    assert len(stacks) == 1
    return [(frame["function"], frame["line"]) for frame in stacks[0]
            if frame["module"].endswith("app")][:3]


def stacks_of(recording, *options):
    for site in recording.report_json(*options)["top"]["allocations"]:
        for stack in site["stacks"]:
            yield stack["costs"], stack["frames"]


def test_what_was_read_once_is_known_when_the_debug_file_is_gone(record, split, cache):
    linked = split.program.parent / "app.debug"
    shutil.copy(split.debug, linked)
    run("objcopy", f"--add-gnu-debuglink={linked}", split.program)
    assert names_of(record(split.program, env=cache)) == NAMED
    os.remove(linked)
    again = record(split.program, env=cache)
    assert names_of(again) == NAMED
    (module,) = [module for module in again.report["modules"] if module["path"] == str(split.program)]
    assert (module["symbol_source"], module["symbol_advice"]) == (str(linked), "")
    assert names_of(record(split.program)) != NAMED


def test_a_program_without_a_build_id_that_was_built_again_is_read_again(record, scratch, cache):
    other = SOURCE.replace("middle", "central")
    source = scratch / "app.c"
    for text in (SOURCE, other, other):
        source.write_text(text)
        run("gcc", "-O2", "-g", "-Wl,--build-id=none", source, "-o", scratch / "app")
        want = [(name.replace("middle", "central") if text is other else name, line)
                for name, line in NAMED]
        assert names_of(record(scratch / "app", env=cache)) == want


def test_what_debug_information_does_not_name_is_called_the_same_each_time(record, scratch, cache):
    """Assembler without symbols, in a program with debug information."""
    code = scratch / "code.s"
    source = scratch / "app.c"
    code.write_text(".globl allocate\n.text\nallocate:\n.cfi_startproc\nsub $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
                    "call malloc@PLT\nadd $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
                    '.section .note.GNU-stack,"",@progbits\n')
    source.write_text("#include <stddef.h>\nvoid *allocate(size_t);\n"
                      "int main(void) { return allocate(4321) == 0; }\n")
    run("gcc", "-O1", "-g", "-Wl,--build-id=sha1", source, code, "-o", scratch / "app")
    run("objcopy", "--strip-symbol=allocate", scratch / "app")
    names = [names_of(record(scratch / "app", env=cache)) for _ in range(2)]
    assert names[0] == names[1]
    assert re.fullmatch(r"app\+0x[0-9a-f]+", names[0][0][0]) and names[0][1] == ("main", 3)


@pytest.mark.parametrize("kind", ["program", "library"])
def test_a_forged_build_id_changes_the_names_of_no_other_file(record, scratch, cache, kind):
    """A file that others may write claims the build-id of one that they may not, before and after."""
    build_id = "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567"
    main = scratch / "main.c"
    main.write_text("int work(int, char **); int main(int argc, char **argv) { return work(argc, argv); }")
    for folder, name, mode in (("other", "evil", 0o777), ("own", "middle", 0o755)):
        (scratch / folder).mkdir()
        source = scratch / folder / "app.c"
        source.write_text(SOURCE.replace("middle", name).replace("main", "main" if kind == "program" else "work"))
        built = scratch / folder / "app"
        if kind == "program":
            run("gcc", "-O2", "-g", build_id, source, "-o", built)
        else:
            built = scratch / folder / "libapp"
            run("gcc", "-O2", "-g", "-shared", "-fPIC", build_id, source, "-o", built)
            run("gcc", main, built, "-o", scratch / folder / "app")
        os.chmod(built, mode)
    last = "main" if kind == "program" else "work"
    for folder, name in (("other", "evil"), ("own", "middle"), ("other", "evil"), ("own", "middle")):
        recording = record(scratch / folder / "app", env=cache)
        assert names_of(recording)[:3] == [("innermost", 3), (name, 4), (last, 5)]


@pytest.mark.parametrize("damage", [b"", b"cairnnam", b"\xff" * 5000], ids=["empty", "cut", "other"])
def test_a_damaged_cache_is_made_again(record, split, cache, scratch, damage):
    linked = split.program.parent / "app.debug"
    shutil.copy(split.debug, linked)
    run("objcopy", f"--add-gnu-debuglink={linked}", split.program)
    names_of(record(split.program, env=cache))
    (kept,) = (scratch / "xdg/cairn").glob(build_id_of(split.program) + "*")
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert names_of(record(split.program, env=cache)) == NAMED
    assert kept.read_bytes() == whole


def report(path, *options, env=None, check=True):
    finished = subprocess.run([CAIRN, "report", "--all", *options, path], env=environment(env), capture_output=True,
                              text=True, timeout=120, check=False)
    assert not check or finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.usefixtures("no_cache")
def test_a_report_names_what_the_recording_could_not(record, split, scratch):
    recording = record(split.program)
    assert names_of(recording) != NAMED
    before = recording.path.read_bytes()
    split.offer(scratch / "debug")
    assert names_of(recording, "--debug-dir", scratch / "debug") == NAMED
    assert names_of(recording) != NAMED
    os.remove(split.program)  # the debug file is enough
    assert names_of(recording, "--debug-dir", scratch / "debug") == NAMED
    assert recording.path.read_bytes() == before


def test_a_debug_file_may_lie_in_a_folder_by_the_programs_name(record, split, scratch):
    recording = record(split.program)
    assert names_of(recording, "--debug-dir", split.debug.parent) == NAMED


def test_an_executable_dir_holds_programs_by_path_or_by_name(record, scratch):
    source = scratch / "app.c"
    source.write_text(SOURCE)
    whole = scratch / "whole" / "app"
    whole.parent.mkdir()
    run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", source, "-o", whole)
    stripped = scratch / "app"
    run("strip", "-o", stripped, whole)
    recording = record(stripped)
    assert names_of(recording) != NAMED
    assert names_of(recording, "--executable-dir", whole.parent) == NAMED
    root = scratch / "root"
    (root / str(scratch)[1:]).mkdir(parents=True)
    shutil.move(whole, root / str(stripped)[1:])
    os.remove(stripped)
    assert names_of(recording, "--executable-dir", root) == NAMED


def test_another_build_gives_no_names(record, split, scratch):
    recording = record(split.program)
    want = names_of(recording)
    other = Split(scratch / "other", "-O1")
    shutil.copy(other.debug, scratch / "app.debug")
    target = scratch / "debug" / debug_name(build_id_of(split.program))
    target.parent.mkdir(parents=True)
    shutil.copy(other.debug, target)
    shutil.copy(other.program, scratch / "app")
    assert names_of(recording, "--debug-dir", scratch, "--debug-dir", scratch / "debug",
                    "--executable-dir", scratch) == want


def test_a_folder_that_is_none_is_refused(record, split):
    recording = record(split.program)
    for option in ("--debug-dir", "--executable-dir"):
        finished = report(recording.path, option, "/no/such", check=False)
        assert finished.returncode == 2
        assert finished.stderr == f"cairn: {option}: directory '/no/such' does not exist\n"


@pytest.mark.usefixtures("no_cache")
def test_every_reader_names_again(record, split, scratch):
    old = record(split.program).path
    new = record(split.program, "and", "more").path
    split.offer(scratch / "debug")
    options = ["--debug-dir", scratch / "debug"]
    for command in (["export", "--to", "folded"], ["diff"], ["report", "--diff", old, "--functions"],
                    ["check", "--baseline", old, "--max-growth", "0"]):
        recordings = [old, new] if command == ["diff"] else [new]
        texts = [subprocess.run([CAIRN, *command, *more, *recordings], env=environment(),
                                capture_output=True, text=True, timeout=120, check=False).stdout
                 for more in ([], options)]
        assert ["innermost" in text for text in texts] == [False, True], command


class Server(http.server.ThreadingHTTPServer):
    """Answers like debuginfod(8); `begin` may act before the answer."""

    def __init__(self, files, begin=None):
        super().__init__(("127.0.0.1", 0), Answer)
        self.files = {f"/buildid/{build_id}/debuginfo": content for build_id, content in files.items()}
        self.begin = begin
        self.asked = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        if self.server.begin is not None:
            self.server.begin(self)
        content = self.server.files.get(self.path)
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *_):
        pass


def asking(scratch, server):
    return {"DEBUGINFOD_URLS": f"http://127.0.0.1:{server.server_port}/",
            "DEBUGINFOD_CACHE_PATH": str(scratch / "debuginfod"), "HOME": str(scratch)}


def names_with(path, env):
    report_json = json.loads(report(path, "--json", "-n", "0", env=env).stdout)
    return [(frame["function"], frame["line"]) for site in report_json["top"]["allocations"]
            for stack in site["stacks"] if stack["costs"]["allocated_bytes"] == 4321
            for frame in stack["frames"] if frame["module"].endswith("app")][:3]


def test_debuginfod_is_asked_where_its_variable_says_so(record, split, scratch):
    build_id = build_id_of(split.program)
    with Server({build_id: split.debug.read_bytes()}) as server:
        env = asking(scratch, server)
        recording = record(split.program, env=env)
        assert server.asked == [], "a program's end does not wait for the network"
        assert names_with(recording.path, {}) != NAMED
        assert names_with(recording.path, env) == NAMED
        assert f"/buildid/{build_id}/debuginfo" in server.asked
        assert len(set(server.asked)) == len(server.asked)
    # debuginfod's cache keeps a fetched file, for the next recording too.
    del env["DEBUGINFOD_URLS"]
    assert names_with(recording.path, env) == NAMED
    assert names_of(record(split.program, env=env)) == NAMED


@pytest.mark.parametrize("folder, variables", [
    ("chosen", {"DEBUGINFOD_CACHE_PATH": "{}/chosen"}),
    ("home/.debuginfod_client_cache", {"HOME": "{}/home", "XDG_CACHE_HOME": "{}/xdg"}),
    ("xdg/debuginfod_client", {"HOME": "{}/home", "XDG_CACHE_HOME": "{}/xdg"}),
    ("home/.cache/debuginfod_client", {"HOME": "{}/home", "XDG_CACHE_HOME": ""}),
])
def test_what_debuginfod_has_fetched_is_found_where_it_puts_it(record, split, scratch, folder, variables):
    recording = record(split.program)
    kept = scratch / folder / build_id_of(split.program) / "debuginfo"
    kept.parent.mkdir(parents=True)
    shutil.copy(split.debug, kept)
    env = {name: text.format(scratch) for name, text in variables.items()}
    assert names_with(recording.path, env) == NAMED
    kept.write_bytes(b"")  # the cache's mark for a file that no server has
    assert names_with(recording.path, {**env, "XDG_CACHE_HOME": "/dev/null"}) != NAMED


def test_a_server_s_wrong_answer_gives_no_names(record, split, scratch):
    other = Split(scratch / "other", "-O1")
    recording = record(split.program)
    want = names_of(recording)
    for content in (other.debug.read_bytes(), b"", b"no ELF file" * 100):
        with Server({build_id_of(split.program): content}) as server:
            assert names_with(recording.path, asking(scratch, server)) == want
            said = report(recording.path, env=asking(scratch, server)).stderr
            assert said == ("cairn: debuginfod's servers gave a file that was not asked for; names may be missing\n"
                            if content else "")
        shutil.rmtree(scratch / "debuginfod")


def test_a_server_that_has_nothing_has_answered(record, split, scratch):
    with Server({}) as server:
        assert report(record(split.program).path, env=asking(scratch, server)).stderr == ""
        assert len(server.asked) == 1


def test_a_server_that_is_not_there_costs_a_sentence(record, split, scratch):
    with Server({}) as server:
        env = asking(scratch, server)
    finished = report(record(split.program).path, env=env)
    assert finished.stderr == "cairn: debuginfod's servers do not answer; names may be missing\n"


def test_a_server_that_is_silent_costs_a_sentence(record, split, scratch):
    """libdebuginfod would ask three times, and may begin its second attempt. The variable shortens the 30 seconds."""
    may_end = threading.Event()
    with Server({}, lambda _: may_end.wait(60)) as server:
        finished = report(record(split.program).path, env={**asking(scratch, server), "DEBUGINFOD_TIMEOUT": "1"})
        may_end.set()
    assert finished.stderr == "cairn: debuginfod's servers do not answer; names may be missing\n"
    assert len(server.asked) < 3


def test_a_redirection_without_end_costs_a_sentence(record, split, scratch):
    """libdebuginfod follows each, and counts no byte. The variable shortens the 30 seconds."""
    def redirect(answer):
        answer.send_response(302)
        answer.send_header("Location", f"/{len(server.asked)}")
        answer.end_headers()

    with Server({}, redirect) as server:
        finished = report(record(split.program).path, env={**asking(scratch, server), "DEBUGINFOD_TIMEOUT": "1"})
    assert finished.stderr in ("cairn: debuginfod's servers do not answer; names may be missing\n",
                               "cairn: asking debuginfod failed; names may be missing\n")
    assert finished.returncode == 0


def test_a_request_that_fails_costs_a_sentence(record, split, scratch):
    """libdebuginfod cannot create its cache, and is not asked for the next library."""
    with Server({build_id_of(split.program): split.debug.read_bytes()}) as server:
        env = {**asking(scratch, server), "DEBUGINFOD_CACHE_PATH": "/dev/null/cache"}
        finished = report(record(split.program).path, env=env)
    assert finished.stderr == "cairn: asking debuginfod failed; names may be missing\n"
    assert finished.returncode == 0


@pytest.mark.nightly
def test_a_long_wait_for_a_server_is_said_without_a_terminal(record, split, scratch):
    may_end = threading.Event()
    recording = record(split.program)
    with Server({}, lambda _: may_end.wait(60)) as server:
        with subprocess.Popen([CAIRN, "report", recording.path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=environment(asking(scratch, server))) as process:
            said = process.stderr.readline()
            may_end.set()
            assert process.wait(60) == 0
    assert said == "cairn: asking debuginfod for names (Ctrl-C: do without)\n"


@pytest.mark.parametrize("command", ["report", "analyze"])
def test_ctrl_c_ends_the_asking_and_not_the_command(record, split, scratch, command):
    recording = record(split.program)
    has_begun, may_end = threading.Event(), threading.Event()

    def begin(answer):
        answer.send_response(200)
        answer.send_header("Content-Length", "1000000")
        answer.end_headers()
        answer.wfile.write(b"\x7fELF")
        has_begun.set()
        may_end.wait(60)

    with Server({}, begin) as server:
        process = subprocess.Popen([CAIRN, command, recording.path], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   env=environment({**asking(scratch, server), "DISPLAY": ""}))
        assert has_begun.wait(60)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        may_end.set()
    assert process.returncode == 0, err
    assert err.startswith("cairn: debuginfod is no longer asked; names may be missing\n")
    # The same Ctrl-C stops a server of analyze that has started.
    assert ("4.22 KiB" if command == "report" else "http://127.0.0.1:") in out
    assert len(server.asked) == 1


@pytest.fixture
def whole(scratch):
    """A program with its debug information in it."""
    source = scratch / "app.c"
    source.write_text(SOURCE)
    program = scratch / "bin" / "app"
    program.parent.mkdir()
    run("gcc", "-O2", "-g", "-Wl,--build-id=sha1", source, "-o", program)
    return program


def has_no_symbols(path):
    """Return whether the file itself has no symbols: a reader without the program sees none."""
    return run(CAIRN, "dump", "--table", "symbols", path).count("\n") <= 1


def cairn(*words, env=None, check=True):
    finished = subprocess.run([CAIRN, *words], env=environment(env), capture_output=True, text=True,
                              timeout=120, check=False)
    assert not check or finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.nightly
@pytest.mark.usefixtures("no_cache")
def test_names_may_be_left_for_later(record, whole):
    recording = record(whole, options=["--no-symbols"])
    assert has_no_symbols(recording.path) and not has_no_symbols(record(whole).path)
    assert names_of(recording) == NAMED
    summary = cairn("-o", recording.path, "--no-symbols", whole).stderr
    assert "4.22 KiB  app+0x" in summary
    assert cairn("verify", recording.path).stdout.startswith("sound")
    os.rename(whole, whole.with_name("elsewhere"))
    assert names_of(recording) != NAMED


def table_of(path, name):
    """The rows of a table of the file itself."""
    names, *rows = (line.split("\t") for line in cairn("dump", "--table", name, path).stdout.split("\n")[:-1])
    return [dict(zip(names, row)) for row in rows]


def frames_of(path):
    """What the file says of each frame, by its place in the code."""
    modules, symbols = table_of(path, "modules"), table_of(path, "symbols")
    found = {}
    for frame in table_of(path, "frames"):
        first, count = int(frame["symbol_first"]), int(frame["symbol_count"])
        place = modules[int(frame["module"])]["path"] if int(frame["module"]) < len(modules) else "", frame["offset"]
        found[place] = (frame["flags"], frame["function_start"], [tuple(row.values()) for row in symbols[first:first + count]])
    return found


@pytest.mark.parametrize("flag", ["-g", "-s"])
def test_names_of_later_are_those_of_at_once(record, whole, flag):
    """The same frames, files and lines, and the beginnings of functions without a name."""
    run("gcc", "-O2", flag, "-Wl,--build-id=sha1", whole.parents[1] / "app.c", "-o", whole)
    at_once, later = record(whole).path, record(whole, options=["--no-symbols"]).path
    unnamed = frames_of(later)
    run("/bin/sh", "-c", 'exec "$0" "$@" <&-', CAIRN, "symbolize", later)  # files may get descriptor 0
    wanted = frames_of(at_once)
    assert frames_of(later) == wanted != unnamed
    assert cairn("symbolize", later).stdout.endswith("nothing new was found; the file is unchanged\n")
    of_program = [begin for (module, _), (_, begin, _) in wanted.items() if module == str(whole)]
    assert of_program and any(int(begin) > 0 for begin in of_program) == (flag == "-s")
    columns = ("path", "build_id", "symbol_source", "frames", "frames_with_function", "frames_with_line")
    assert ([[row[name] for name in columns] for row in table_of(later, "modules")]
            == [[row[name] for name in columns] for row in table_of(at_once, "modules")])


def test_a_program_that_was_built_again_gives_no_names_later(record, scratch):
    """Without a build-id, the program's time shows the change."""
    source = scratch / "app.c"
    source.write_text(SOURCE)
    build = ["gcc", "-O2", "-g", "-Wl,--build-id=none", source, "-o", scratch / "app"]
    run(*build)
    recording = record(scratch / "app", options=["--no-symbols"])
    assert names_of(recording) == NAMED
    run(*build)
    assert [function for function, _ in names_of(recording)] != [function for function, _ in NAMED]


@pytest.mark.parametrize("options", [[], ["--no-symbols"], ["--blocks"]], ids=str)
def test_symbolize_writes_the_names_and_nothing_else(record, split, scratch, options):
    recording = record(split.program, options=options)
    before = json.loads(cairn("report", "--json", "-n", "0", recording.path).stdout)
    os.chmod(recording.path, 0o640)
    nothing = cairn("symbolize", recording.path, "--executable-dir", scratch)
    assert nothing.stdout.endswith("nothing new was found; the file is unchanged\n") or options
    split.offer(scratch / "debug")
    reported = cairn("symbolize", "--debug-dir", scratch / "debug", recording.path)
    assert re.search(r": \d+ places named, \d+ modules? with debug information\n$", reported.stdout)
    written = recording.path.read_bytes()
    again = cairn("symbolize", "--debug-dir", scratch / "debug", recording.path)
    assert again.stdout == f"{recording.path}: nothing new was found; the file is unchanged\n"
    assert recording.path.read_bytes() == written
    shutil.rmtree(scratch / "debug")
    os.remove(split.program)
    assert names_of(recording) == NAMED
    assert os.stat(recording.path).st_mode & 0o777 == 0o640
    assert cairn("verify", recording.path).stdout.startswith("sound")
    after = json.loads(cairn("report", "--json", "-n", "0", recording.path).stdout)
    for part in ("run", "totals", "processes", "threads", "counters", "rss"):
        assert after.get(part) == before.get(part), part
    if options == ["--blocks"]:
        assert "4.22 KiB" in cairn("report", "--all", "--blocks", recording.path).stdout
    assert not list(scratch.glob("*.tmp"))


def test_symbolize_adds_names_to_an_older_version_s_file(scratch):
    source = ROOT / "tests" / "recording" / "version1.cairn"
    path = scratch / "old.cairn"
    shutil.copy(source, path)
    reported = cairn("symbolize", path).stdout
    assert reported == f"{path}: nothing new was found; the file is unchanged\n"
    assert path.read_bytes() == source.read_bytes()


def test_symbolize_refuses_what_it_would_lose_something_of(record, split, scratch):
    recording = record(split.program, options=["--no-symbols"])
    content = recording.path.read_bytes()
    cut = scratch / "cut.cairn"
    foreign = scratch / "foreign.massif"
    cut.write_bytes(content[:-100])
    foreign.write_text("desc: none\ncmd: x\ntime_unit: i\n#-----------\nsnapshot=0\n#-----------\ntime=0\n"
                       "mem_heap_B=0\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=empty\n")
    for path, reason in ((cut, "is incomplete"), (foreign, "not a cairn recording"),
                         (scratch / "none", "cannot open")):
        before = path.read_bytes() if path.exists() else None
        finished = cairn("symbolize", path, check=False)
        assert (finished.returncode, finished.stdout) == (2, "")
        assert reason in finished.stderr and finished.stderr.count("\n") == 1
        assert before is None or path.read_bytes() == before


def test_the_cache_can_be_looked_after(record, whole, cache):
    def cached(*words, check=True):
        return cairn("cache", *words, env=cache, check=check)

    assert cached("size").stdout.startswith("0 B of 256 MiB in 0 files")
    record(whole, env=cache)
    listed = cached().stdout.splitlines()
    assert listed[0].split() == ["size", "last", "used", "places", "module"]
    assert any(line.endswith(f"  {whole}") for line in listed)
    files = int(re.search(r" in (\d+) files?,", listed[-1])[1])
    assert files == len(listed) - 2
    assert cached("limit", "1KiB").stdout.split(" in ")[0].endswith("of 1.00 KiB")
    cached("limit", "64MiB")
    record(whole, env=cache)
    removed = re.fullmatch(r"(\d+) files? removed\n", cached("clear").stdout)
    assert removed and int(removed[1]) == files
    assert cached("size").stdout.startswith("0 B of 64.0 MiB in 0 files")
    assert cached("limit", "0").stdout.startswith("0 B of 0 B")
    record(whole, env=cache)
    assert cached("size").stdout.startswith("0 B of 0 B in 0 files")
    for words in (["limit"], ["limit", "much"], ["grow"], ["size", "now"]):
        wrong = cached(*words, check=False)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)


@pytest.mark.nightly
def test_analyze_names_again(record, split, scratch):
    recording = record(split.program)
    split.offer(scratch / "debug")
    page = scratch / "page.html"
    finished = cairn("export", "--html", "--debug-dir", scratch / "debug", "-o", page, recording.path,
                     check=False)
    command = subprocess.Popen([CAIRN, "analyze", "--no-browser", "--debug-dir", scratch / "debug",
                                recording.path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment(), text=True)
    address = command.stdout.readline().strip()
    token = address.partition("token=")[2]
    base = address.partition("?")[0]

    def ask(route):
        request = urllib.request.Request(f"{base}api/v1/{route}", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()
    assert b"innermost" in ask("functions")
    os.replace(record(split.program, "and", "more").path, recording.path)  # read again, and named again
    wait_until(lambda: json.loads(ask("meta"))["generation"] == 2, "the second recording")
    assert b"innermost" in ask("functions")
    command.send_signal(signal.SIGINT)
    assert command.wait(60) == 0
    assert finished.returncode != 0 or "innermost" in page.read_text(errors="replace")


def test_a_terminal_sees_that_a_server_is_asked(record, split, scratch):
    recording = record(split.program)
    is_shown = threading.Event()
    with Server({build_id_of(split.program): split.debug.read_bytes()},
                lambda _: is_shown.wait(60)) as server:
        status, seen = terminal.run(
            [CAIRN, "report", "--all", recording.path], environment({**asking(scratch, server), "TERM": "xterm"}),
            see=lambda written: b"asking debuginfod for names" in written and is_shown.set())
    assert (status, is_shown.is_set()) == (0, True)
    assert b"innermost" in seen


def names_section(path, env=None):
    text = report(path, "--no-color", env=env).stdout
    section = text.partition("\nNAMES: where they are missing, and how to get them\n")[2].partition("\n\n")[0]
    return " ".join(section.split())


@pytest.fixture
def system_recording(record):
    """A recording of a stripped program of the system, and its package."""
    recording = record("/usr/bin/ls", "/", is_compared=False)
    return recording, "coreutils"


def test_the_hint_names_the_package(system_recording):
    recording, package = system_recording
    owner = run("dpkg-query", "-S", "/bin/ls").partition(":")[0]  # the oracle
    assert owner == package
    section = names_section(recording.path)
    assert section.startswith("ls: ") and f"{package}-dbgsym" in section
    assert "set DEBUGINFOD_URLS to your distribution's debuginfod server" in section
    assert section.endswith("no new recording is needed")
    # A server that was asked without success is not advised.
    with Server({}) as server:
        section = names_section(recording.path, asking(recording.path.parent, server))
    assert "DEBUGINFOD_URLS" not in section and f"{package}-dbgsym" in section


# Longer than a tool may sleep.
BUSY_TOOL = """#!/usr/bin/python3
import os, sys, time
end = time.monotonic() + 2.2
while time.monotonic() < end:
    pass
os.execv("/usr/bin/dpkg-query", sys.argv)
"""


@pytest.mark.nightly
def test_a_package_tool_that_works_is_waited_for(system_recording, scratch):
    """On a busy machine it may lack a processor for seconds."""
    recording, package = system_recording
    (scratch / "dpkg-query").write_text(BUSY_TOOL)
    (scratch / "dpkg-query").chmod(0o755)
    assert f"{package}-dbgsym" in names_section(recording.path, {"PATH": f"{scratch}:/usr/bin:/bin"})


@pytest.mark.parametrize("script", [
    "#!/bin/sh\nexec sleep 1000\n", "#!/bin/sh\nyes 'a b: /bin/ls'\n", "#!/bin/sh\nexit 1\n",
    "#!/bin/sh\necho 'diversion by x from: /bin/ls'; echo ': /bin/ls'; head -c 300 /dev/zero | tr '\\0' p; echo ': /bin/ls'\n",
    "no program", None], ids=["hangs", "endless", "fails", "nonsense", "broken", "none"])
def test_the_hint_needs_no_package_tool(system_recording, scratch, script):
    recording, package = system_recording
    tools = scratch / "tools"
    tools.mkdir()
    if script is not None:
        (tools / "dpkg-query").write_text(script)
        (tools / "dpkg-query").chmod(0o755)
    path = f"{tools}:/usr/bin:/bin" if script is not None else str(tools)
    section = names_section(recording.path, {"PATH": path})
    assert "install the debug symbols of its package, or set DEBUGINFOD_URLS" in section
    assert package not in section


@pytest.mark.nightly
def test_where_rpm_rules_it_is_asked(system_recording, scratch):
    recording, _ = system_recording
    tools = scratch / "tools"
    tools.mkdir()
    (tools / "rpm").write_text("#!/bin/sh\n/usr/bin/printf 'made-%s\\n' \"${4##*/}\"\n")
    (tools / "rpm").chmod(0o755)
    assert "'dnf debuginfo-install made-ls'" in names_section(recording.path, {"PATH": str(tools)})


def test_a_path_that_is_a_pattern_is_not_asked_for(record, scratch):
    asked = scratch / "asked"
    tools = scratch / "tools"
    tools.mkdir()
    (tools / "dpkg-query").write_text(f'#!/bin/sh\necho "$@" >> {asked}\n')
    (tools / "dpkg-query").chmod(0o755)
    program = scratch / "l*[s]"
    shutil.copy("/usr/bin/ls", program)
    recording = record(program, "/", is_compared=False)
    names_section(recording.path, {"PATH": f"{tools}:/usr/bin:/bin"})
    assert "l*" not in asked.read_text() and "libselinux" in asked.read_text()
