# SPDX-License-Identifier: MIT
"""docs/user/attach.md, control.md, export.md, names.md, remote.md and top.md: each command of them runs, in the order
of the page.

The program and the process ids are those of the test, and ssh, scp and flamegraph.pl are interpreted; all else is as it
is printed."""
import os
import re
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, ROOT, Recording, environment
from screen import Terminal
from test_production import commands_of, free_port
from waiting import DEADLINE_SECONDS, wait_until

# A server that works until there is a file `stop`, and has an allocator of its own.
OWN_POSTGRES = f"postgres{os.getpid()}"  # other tests have processes with the name of the guide
SERVER = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cairn.h"
static char pool[1 << 16];
static size_t used;
__attribute__((noinline)) void *my_alloc(size_t size)
{
    void *block = pool + used % (sizeof(pool) / 2);
    used += (size + 15) & ~(size_t)15;
    memset(block, 1, size);
    return block;
}
__attribute__((noinline)) void my_free(void *block) { memset(block, 0, 1); }
__attribute__((noinline)) void *my_resize(void *block, size_t size)
{
    my_free(block);
    return my_alloc(size);
}
void *kept[1000];
int count;
__attribute__((noinline)) void *parse_line(size_t size) { return calloc(1, size); }
__attribute__((noinline)) void *load(size_t size) { void *block = parse_line(size); memset(block, 7, size); return block; }
static void work(int thread)
{
    free(load(100));
    my_free(my_resize(my_alloc(40), 50));
    if (thread == 0 && count < 1000) { kept[count++] = load(1000); }
}
static void *serve(void *argument)
{
    pthread_setname_np(pthread_self(), "worker");
    for (int i = 0; i < 10; i++) { work(1); }
    return argument;
}
int main(void)
{
    pthread_t thread;
    cairn_event("begin", 3);
    pthread_create(&thread, NULL, serve, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 20 || (access("stop", F_OK) != 0 && i < 60000); i++) { work(0); usleep(1000); }
    return 0;
}
"""
SHIMS = {
    # Only the command is run: the host is this one.
    "ssh": 'while [ $# -gt 0 ]; do case "$1" in -L) shift 2;; -*) shift;; *) break;; esac; done\n'
           '[ "$1" = server ] || exit 2\nshift\n[ $# -eq 0 ] || exec "$@"\n',
    "scp": '[ "${1#server:}" != "$1" ] || exit 2\nexec cp "${1#server:}" "$2"\n',
    "flamegraph.pl": "exec awk '!/^.+ [0-9]+$/ { exit 2 } END { if (NR == 0) exit 3; print \"<svg/>\" }'\n",
}


class Guide:
    """A folder with the guide's program under its names, and a shell."""

    def __init__(self, folder, page):
        self.folder, self.text, self.background = folder, (ROOT / f"docs/user/{page}.md").read_text(), []
        self.commands = [line for line in commands_of(self.text) if line.strip()]
        self.settings = environment({"PATH": f"{folder}/bin:{CAIRN.parent}:/usr/bin:/bin", "HOME": str(folder / "home"),
                                     "XDG_CACHE_HOME": ""})
        for name in ("bin", "home"):
            (folder / name).mkdir()
        for name, body in SHIMS.items():
            (folder / "bin" / name).write_text("#!/bin/sh\n" + body)
            (folder / "bin" / name).chmod(0o755)
        (folder / "server.c").write_text(SERVER)
        self.run(f"gcc -g -O1 -pthread -I {ROOT}/include -o server server.c")
        for name in ("server-program", "my-rust-server", "app", OWN_POSTGRES):
            shutil.copy(folder / "server", folder / name)

    def run(self, command, status=0, lines=None):
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.settings, input=lines, capture_output=True,
                              text=True, check=False, timeout=DEADLINE_SECONDS)
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def start(self, command):
        process = subprocess.Popen(command, shell=True, cwd=self.folder, env=self.settings, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.background.append(process)
        return process

    def program(self, name="server"):
        """Start a copy of the program alone; give its process id."""
        process = subprocess.Popen([self.folder / name], cwd=self.folder, env=self.settings, stdin=subprocess.DEVNULL)
        self.background.append(process)
        return process

    def stop(self, is_stopped=True):
        """Let the programs end, and those that start later end at once; or let them work."""
        if not is_stopped:
            (self.folder / "stop").unlink(missing_ok=True)
            return
        (self.folder / "stop").touch()
        for process in self.background:
            process.communicate(timeout=DEADLINE_SECONDS)
        self.background.clear()

    def answer(self, *words):
        done = subprocess.run([CAIRN, "ctl", *words], cwd=self.folder, env=self.settings, capture_output=True, text=True,
                              check=False, timeout=DEADLINE_SECONDS)
        return done.stdout if done.returncode == 0 else ""

    def show(self, command):
        """Run `cairn analyze` until it has said its address."""
        server = self.start(f"exec {command}")
        address = server.stdout.readline()
        assert "http://127.0.0.1:" in address and "token=" in address, address
        server.terminate()
        assert server.wait(DEADLINE_SECONDS) == 0
        self.background.remove(server)
        server.stdout.close()


@pytest.fixture(name="guide")
def fixture_guide(request, tmp_path):
    guide = Guide(tmp_path, request.param)
    yield guide
    guide.stop()


def of(page):
    return pytest.mark.parametrize("guide", [page], indirect=True)


@pytest.mark.nightly
@of("export")
def test_each_command_of_the_guide_of_exports_runs(guide):
    guide.stop()
    guide.run("cairn record --blocks -o server.cairn -- ./server")
    formats = re.findall(r"^\| `([a-z-]+)` \|", guide.text.partition("## Options")[0], re.M)
    listed = guide.run("cairn export --list")
    assert len(formats) == 16 and all(re.search(rf"^\W*{name}\b", listed, re.M) for name in formats)
    questions = guide.text.partition("```sql\n")[2].partition("```")[0]
    seen = 0
    for command in guide.commands:
        if "FORMAT" in command:
            for name in formats:
                options = f"-o out.{name}{'.gz' if name == 'heaptrack' else ''}"
                guide.run(command.replace("FORMAT", name).replace("[options]", options).replace("FILE", "server.cairn"))
        elif command.startswith("sqlite3"):
            answers = guide.run(command, lines=questions.replace("load", "parse_line"))
            assert "Error" not in answers and "parse_line" in answers and answers.count("┌") >= 10
        else:
            out = guide.run(command)
            seen += "parse_line" in out
        named = re.search(r"(?:-o|>) (\S+)", command)
        assert named is None or (guide.folder / named.group(1)).stat().st_size > 0
    assert seen >= 2  # go tool pprof and callgrind_annotate name it


@pytest.mark.nightly
@of("names")
def test_each_command_of_the_guide_of_names_runs(guide):
    guide.stop()
    guide.run("cp app app.kept && strip app && cairn record -q -o run.cairn ./app")
    (guide.folder / "app.py").write_text("print(len([str(i) for i in range(1000)]))\n")
    advice = guide.text.partition("```\n")[2].partition("```")[0]
    reports = []
    for command in guide.commands:
        if command.startswith("objcopy"):
            guide.run("cp app.kept app")
        latest = max(guide.folder.glob("*.cairn"), key=os.path.getmtime).name
        out = guide.run(command.replace("FILE", latest))
        reports += [out] if command.startswith("cairn report") else []
    stripped, with_debug_file, python = reports
    for line in advice.splitlines():
        assert re.sub(r"\d+", "N", line) in re.sub(r"\d+", "N", stripped), stripped
    assert "parse_line" not in stripped and "parse_line" in with_debug_file and "app.py:1" in python
    assert "parse_line" in guide.run("cairn report --all run.cairn")  # it was written into the file


@of("control")
def test_each_command_of_the_guide_of_control_runs(guide):
    report = ""
    guide.stop()  # what is not started in the background ends at once
    for command in guide.commands:
        if command.endswith("&"):
            guide.stop(False)
            guide.start(command.rstrip("& "))
            wait_until(lambda: "not started" in guide.answer("s.cairn", "status"), "the recorder listens")
            continue
        if "--duration" in command:
            guide.stop()
        out = guide.run(command)
        report = out if command.startswith("cairn report") else report
    assert len(list(guide.folder.glob("s*.cairn"))) >= 2  # rotate keeps one under another name
    marks = Recording(guide.folder / "s.cairn", None).report["marks"]
    assert [mark["kind"] for mark in marks] == ["stop", "start", "mark", "stop", "start"]
    said = guide.text.partition("```\n")[2].partition("```")[0].splitlines()
    assert re.sub(r"[\d.]+ (ms|s|min \d+ s)", "T", said[0])[:40] in re.sub(r"[\d.]+ (ms|s|min \d+ s)", "T", report)
    assert [line.split("  ")[-1] for line in report.partition("\nMARKS")[2].splitlines()[1:] if "recording" in line][:2] == \
        ["recording stopped", "recording started"]


@of("remote")
def test_each_command_of_the_guide_of_remote_machines_runs(guide):
    guide.stop()
    for command in guide.commands:
        command = command.replace("/var/tmp/", f"{guide.folder}/far/")
        (guide.folder / "far").mkdir(exist_ok=True)
        if " analyze " in command:
            guide.show(command.replace("--port 8080", f"--port {free_port()}") + ("" if "--no-browser" in command else " --no-browser"))
        else:
            guide.run(command)
    assert (guide.folder / "run.html").stat().st_size > 100000


def on_terminal(guide, command):
    """Run `cairn top` on a terminal until it shows the program's call site, and leave it."""
    with Terminal(["/bin/sh", "-c", command], guide.settings, folder=guide.folder) as terminal:
        terminal.wait_for("parse_line")
        terminal.press("q")
        assert terminal.end_status() == 0


@pytest.mark.nightly
@of("top")
def test_each_command_of_the_guide_of_top_runs(guide):
    for command in guide.commands:
        guide.stop()
        guide.stop(False)
        if "--plain" in command:
            guide.stop()
            assert "allocations" in guide.run(command)
        elif command.startswith("cairn record"):
            guide.start(command)
            wait_until(lambda: guide.answer("s.cairn", "status") != "", "the recorder listens")
            assert guide.commands[guide.commands.index(command) + 1] == "cairn top s.cairn"
            on_terminal(guide, "cairn top s.cairn")
        elif command != "cairn top s.cairn":
            program = None
            if "4711" in command and "-p" in command.split():
                program = guide.program()
            elif "4711" in command:
                guide.start("cairn record -q -o cairn.server.4711.cairn ./server")
                wait_until(lambda: guide.answer("cairn.server.4711.cairn", "status") != "", "the recorder listens")
            on_terminal(guide, command.replace("-p 4711", f"-p {program.pid if program else 0}"))


@of("attach")
def test_each_command_of_the_guide_of_attaching_runs(guide):
    config = [line for line in guide.commands if line.startswith(("[record]", "allocator ="))]
    guide.commands = [line for line in guide.commands if line not in config]
    for command in guide.commands:
        if command.endswith("detach") or command == "cairn report s.cairn":
            continue  # below, while its recording runs, and for each of them
        guide.stop()
        guide.stop(False)
        if " -p " not in command and "--name" not in command:
            guide.stop()
            assert "parse_line" in guide.run(command + " && cairn report --all $(ls -t *.cairn | head -1)")
            continue
        command = command.replace("--name postgres", f"--name {OWN_POSTGRES}")
        name = OWN_POSTGRES if "--name" in command else "my-rust-server" if "pidof" in command else "server"
        programs = [guide.program(name) for _ in range(max(1, command.count("471")))]
        for number, program in zip(("4711", "4712", "4713"), programs):
            command = command.replace(number, str(program.pid))
        recorder = guide.start(command + ("" if " -o " in command else " -o s.cairn"))
        wait_until(lambda: re.search(r"^allocations +[1-9]", guide.answer("s.cairn", "status"), re.M), "it has allocated")
        if "--duration" in command:
            assert "cairn ctl s.cairn detach" in guide.commands
            guide.run("cairn ctl s.cairn detach")
            recorder.communicate(timeout=DEADLINE_SECONDS)
            assert programs[0].poll() is None  # it runs on
        guide.stop()
        assert "cairn report s.cairn" in guide.commands
        report = guide.run("cairn report s.cairn && cairn report --all s.cairn && rm s.cairn")
        assert ("my_alloc" if "my_alloc" in command else "parse_line") in report
    (guide.folder / "cairn.toml").write_text("\n".join(config) + "\n")
    guide.stop(False)
    recorder = guide.start(f"cairn record -o s.cairn -p {guide.program().pid}")
    wait_until(lambda: "recording" in guide.answer("s.cairn", "status"), "it is attached")
    guide.stop()
    assert "my_alloc" in guide.run("cairn report --all s.cairn")
