#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sweep: runs every program of a directory bare and recorded, and compares the runs.

usage: tools/sweep.py BUILD [--way version|help|nothing]... [--sample N] [--date YYYY-MM-DD]
                      [--jobs N] [--patience S] [--directory DIR] [PROGRAM...]

Each ELF program of DIR (/usr/bin) runs in a sandbox (sandbox.py) with --version, --help, or without
an argument: twice bare and once under `cairn record -q`, with cairn inside the sandbox too. Lines
that differ between the bare runs (times, process numbers) are not compared. Results:

  same      status and output equal those of the bare runs
  refused   cairn refuses to record it, and binutils and the file's mode confirm the reason
  unstable  more runs, bare or recorded, show that the difference is not reproducible
  left out  the bare run does not end, or writes too much, or leaves running processes, for which
            cairn waits; or it is in LEFT_OUT
  hang      it ends, but not under cairn
  differ    status or output differ
  wrong     refused for a reason that does not hold

The last three are failures. --sample draws that many programs by the date and prints it with them:
`make test` runs other programs each day, and the draw of a day can be repeated.
"""
import argparse
import collections
import concurrent.futures
import datetime
import os
import pathlib
import platform
import random
import re
import shutil
import stat
import subprocess
import sys

from sandbox import RUNS_ON, TOO_MUCH, Sandbox

WAYS = {"version": ["--version"], "help": ["--help"], "nothing": []}
BARE_S = 6
SHORT_S = 15  # in which nearly all recorded runs end, or say for what they wait
FAILURES = ("hang", "differ", "wrong")

# Never run, because of their effects outside of namespaces or on each other.
LEFT_OUT = {
    "reach for the whole machine": """chvt deallocvt halt init loadkeys loginctl mesg openvt poweroff
        reboot runlevel setfont setterm shutdown startx systemctl telinit wall write X Xorg Xvfb""",
    "end or hold processes of others": "kill killall pidwait pkill skill snice",
    "are cairn": "cairn",
}
# Not run without an argument: they list the present processes, and cairn is one of them.
LIST_PROCESSES = "htop lsfd lslogins lsof pidof ps pstree top w".split()


def is_elf(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def may_execute(path):
    """Whether the sandbox's user may execute the file."""
    return os.access(path, os.X_OK) and (os.geteuid() != 0 or bool(os.stat(path).st_mode & stat.S_IXOTH))


def programs_of(directory):
    """Names of the ELF programs that the sandbox's user may execute; one name for each file."""
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    names = {}
    for path in sorted(pathlib.Path(directory).iterdir()):
        real = os.path.realpath(path)
        if path.name not in left_out and real not in names and is_elf(real) and may_execute(real):
            names[real] = path.name
    return sorted(names.values())


def readelf(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], capture_output=True, text=True,
                          errors="replace", check=False).stdout


def has_own_malloc(path):
    """Return whether the executable itself defines a symbol of an allocator."""
    names = r"malloc|(?:je_|_rjem_)?mallctl|mi_malloc|tc_malloc|rallocx|mallocx|scalable_malloc|__asan_init"
    return re.search(rf"^ *\d+: \S+ +\S+ +(?:FUNC|NOTYPE|IFUNC) +\S+ +\S+ +(?!UND)\S+ (?:{names})(?:@|$)",
                     readelf(path, "--syms", "--dyn-syms"), re.M) is not None


def changes_identity(path):
    try:
        has_capabilities = bool(os.getxattr(path, "security.capability"))
    except OSError:
        has_capabilities = False
    return has_capabilities or bool(os.stat(path).st_mode & (stat.S_ISUID | stat.S_ISGID))


# What cairn says while it waits for processes that the program left behind.
LEFT_BEHIND = "still running; recording continues until the end of what it started"

# cairn's reasons for a refusal, and checks whether each holds.
REASONS = (
    ("static Go program; ", lambda path: ".gopclntab" in readelf(path, "-S")),
    ("is a static executable", lambda path: "INTERP" not in readelf(path, "-l")),
    ("is a 32-bit program", lambda path: "ELF32" in readelf(path, "-h")),
    ("another kind of processor",
     lambda path: platform.machine().replace("_", "-").lower() not in
     readelf(path, "-h").replace("_", "-").lower()),
    ("with a libc other than glibc", lambda path: "/ld-linux" not in readelf(path, "-l")),
    ("is built with a sanitizer",
     lambda path: re.search(r"lib[atm]san|lib(?:hwasan)|__[atm]san_init",
                            readelf(path, "-d", "--syms", "--dyn-syms")) is not None),
    ("changes its identity", changes_identity),
    ("has its own malloc built in", has_own_malloc),
    ("found no allocator in the program", lambda path: "INTERP" not in readelf(path, "-l") and not has_own_malloc(path)),
)


def refusal(path, recorded):
    """The reason why cairn refused, and whether it holds; None if cairn did not refuse."""
    said = recorded.err.decode(errors="replace")
    if recorded.status != 126 or recorded.out or not said.startswith("cairn: "):
        return None
    for words, holds in REASONS:
        if words in said:
            return ("refused" if holds(os.path.realpath(path)) else "wrong"), said.strip()
    return "wrong", said.strip()


def without(text, *beginnings):
    """The lines of `text` that begin with none of these."""
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(beginnings))


def seen_through(recorded):
    """The output of the recorded run without cairn's notes, and without its variables if the
    program prints its environment."""
    own = (b"LD_PRELOAD=", b"CAIRN_SESSION=")
    return recorded._replace(out=without(recorded.out, *own),
                             err=without(recorded.err, *own, b"cairn: "))


def stable_lines(texts):
    """The lines that are equal in all texts, by number; None if the texts have different
    lengths."""
    every = [text.splitlines() for text in texts]
    if len({len(lines) for lines in every}) != 1:
        return None
    return {number: line for number, line in enumerate(every[0])
            if all(lines[number] == line for lines in every)}


def difference(bare_runs, recorded):
    """The difference between the recorded run and what all bare runs have in common, or None."""
    if len({run.status for run in bare_runs}) == 1 and recorded.status != bare_runs[0].status:
        return f"status {recorded.status}, not {bare_runs[0].status}: {recorded.err[-200:]!r}"
    for name in ("out", "err"):
        texts = [getattr(run, name) for run in bare_runs]
        text = getattr(recorded, name)
        stable = stable_lines(texts)
        if text in texts or stable is None:
            continue
        lines = text.splitlines()
        if len(lines) != len(texts[0].splitlines()):
            return f"std{name}: {len(lines)} lines, not {len(texts[0].splitlines())}: {text[-200:]!r}"
        for number, line in stable.items():
            if lines[number] != line:
                return f"std{name}, line {number + 1}: {lines[number]!r}, not {line!r}"
    return None


# Fails if there are more processes than before: each line of /proc counts, and no shell is started.
COUNTS_PROCESSES = """
before=0
for process in /proc/[0-9]*; do before=$((before + 1)); done
"$@"
for process in /proc/[0-9]*; do before=$((before - 1)); done
[ $before -eq 0 ] || exit 99
"""


def leaves_processes(sandbox, command):
    """Return whether the bare program ends before all processes that it starts. Needs
    namespaces."""
    run = sandbox.run(["sh", "-c", COUNTS_PROCESSES, "sh", *command], BARE_S)
    return sandbox.has_namespaces and run.status == 99


def examine(sandbox, path, arguments, patience_s):
    """(result, reason) of one program."""
    if not arguments and path.name in LIST_PROCESSES:
        return "left out", "lists processes"
    command = [str(path), *arguments]
    bare = [sandbox.run(command, BARE_S, behind) for behind in (0, 3)]
    for run in bare:
        if run.status in (RUNS_ON, TOO_MUCH):
            return "left out", run.status
    record = [sandbox.cairn, "record", "-q", "-o", "/tmp/recording.cairn" if sandbox.has_namespaces
              else "recording.cairn", "--", *command]
    recorded = sandbox.run(record, min(patience_s, SHORT_S))
    if recorded.status == RUNS_ON:
        if LEFT_BEHIND.encode() in recorded.err and leaves_processes(sandbox, command):
            return "left out", "leaves processes that run on"
        recorded = sandbox.run(record, patience_s)
    if recorded.status == RUNS_ON:
        return "hang", f"not at its end in {patience_s} s: {recorded.err[-200:]!r}"
    refused = refusal(path, recorded)
    if refused is not None:
        return refused
    recorded = seen_through(recorded)
    if difference(bare, recorded) is None:
        return "same", ""
    more = [sandbox.run(command, BARE_S, behind) for behind in (1, 2, 5)]
    again = seen_through(sandbox.run(record, patience_s))
    why = difference(bare + more, recorded)
    comes_and_goes = why is None or difference(bare + more, again) is None
    return "unstable" if comes_and_goes else "differ", why or ""


def sweep(sandbox, names, way, options):
    """Run them all and print the failed, refused and left out programs. Return the counts."""
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = {name: pool.submit(examine, sandbox, pathlib.Path(options.directory) / name, WAYS[way],
                                  options.patience)
                for name in names}
        for name, task in work.items():
            result, why = task.result()
            counts[result] += 1
            if result != "same":
                print(f"{result:9} {name} {' '.join(WAYS[way])}  {why}", flush=True)
    every = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    print(f"{way}: {len(names)} programs: {every}", flush=True)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--date", default=os.environ.get("CAIRN_SWEEP_DATE"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--patience", type=float, default=90, help="seconds for a recorded run")
    parser.add_argument("--directory", default="/usr/bin")
    options = parser.parse_intermixed_args()
    names = options.programs or programs_of(options.directory)
    if options.sample is not None and options.sample < len(names):
        date = options.date or datetime.datetime.now(datetime.timezone.utc).date().isoformat()
        names = sorted(random.Random(date).sample(names, options.sample))
        print(f"drawn for {date}: {' '.join(names)}")
    for tool in ("readelf", "unshare", "setpriv", "prlimit"):
        if shutil.which(tool) is None:
            parser.error(f"{tool} is not installed")
    sandbox = Sandbox(options.build)
    counts = collections.Counter()
    try:
        for way in options.way or WAYS:
            counts += sweep(sandbox, names, way, options)
    finally:
        sandbox.close()
    failed = sum(counts[result] for result in FAILURES)
    print(f"{sum(counts.values()) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
