#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""record_screens: writes docs/user/first-screens.md: six programs, and what cairn says of them first.

usage: tools/record_screens.py BUILD OUT.md

Records each program with BUILD/bin/cairn and prints the head of the report. Beside each program is its
culprit: the function that a reader should find. It was written down before the run. If the first finding
does not name it, the tool fails and writes nothing. Needs redis, g++, perl and node; takes a minute.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
COLUMNS = 96
SENTENCES = """Each screen is the head of `cairn report` for a program that holds, loses or wastes memory in one known
place. Read the first finding, then follow the option in brackets for the stacks.
`tools/record_screens.py` wrote this page. It refuses to do so if the first finding of a program does not name
the function that is known to be the cause."""

REDIS = """redis-server --save '' --port 0 --unixsocket redis.sock >log &
server=$!
until redis-cli -s redis.sock ping >/dev/null 2>&1; do kill -0 $server || exit 1; done
redis-cli -s redis.sock eval "for i = 1, 200000 do
    redis.call('SET', 'session:' .. i, string.rep('x', 200)) end" 0 >reply
redis-cli -s redis.sock shutdown nosave
wait
"""

# title, files to write, the command that is recorded, culprit, how to read it
SCREENS = (
    ("redis: 200,000 strings", {"fill.sh": REDIS}, ["sh", "fill.sh"], "createStringObject",
     "A script stores 200,000 sessions and never removes one. redis allocates by `zmalloc`; cairn passes over it "
     "and names the function that makes the values."),
    ("cc1plus: a compiler with an allocator of its own", {"all.cpp": "#include <bits/stdc++.h>\n"},
     ["g++", "-c", "-o", "all.o", "all.cpp"], "make_node",
     "The compiler's garbage collector maps its memory itself, so the heap is a small part of RSS. The finding says "
     "so before anything about the heap, and names who mapped most: the nodes of the syntax tree."),
    ("perl: a file in an array", {"log.pl": "open my $out, '>', 'log' or die;\n"
                                            "print $out 'x' x 300, $_, \"\\n\" for 1 .. 100_000;\nclose $out;\n"
                                            "open my $in, '<', 'log' or die;\nmy @lines = <$in>;\n"
                                            "print scalar @lines, \"\\n\";\n"},
     ["perl", "log.pl"], "Perl_sv_gets|Perl_do_readline",
     "The program reads a whole file although it needs a line at a time. perl's own `Perl_safesysmalloc` and "
     "`Perl_safesysrealloc` only pass the allocation on; the finding names the function that reads lines."),
    ("node: buffers that are kept", {"keep.js": "const kept = [];\nfor (let i = 0; i < 4000; i++) kept.push("
                                               "Buffer.alloc(16384, i));\nconsole.log(kept.length);\n"},
     ["node", "keep.js"], "NodeArrayBufferAllocator|ArrayBuffer",
     "Buffers of node are outside the heap of JavaScript, which V8 maps itself. Here they are nearly everything."),
    ("A server that leaks", {}, ["./leaking_server"], "open_session",
     "`examples/leaking_server.c` forgets the session of each failed login. The slope tells a leak from memory that "
     "is merely not freed at the end."),
    ("The demo", {}, ["./shop"], "session_cache::visit",
     "`demo/shop.cpp`, which `make demo` also shows: a cache that is never emptied holds most of the peak."),
)


def prepare(folder):
    """The environment of a run in `folder`, with the programs that are not installed ones."""
    for source, name, compiler in (("examples/leaking_server.c", "leaking_server", ["gcc", "-O1"]),
                                   ("demo/shop.cpp", "shop", ["g++", "-O2", "-pthread"])):
        subprocess.run([*compiler, "-g", "-o", folder / name, ROOT / source], check=True)
    return {name: value for name, value in os.environ.items() if name not in ("CAIRN_OPTIONS", "LD_PRELOAD")}


def screen_of(cairn, folder, environment, screen):
    """The head of the report, up to the end of the first list."""
    title, files, command, culprit, _ = screen
    for name, text in files.items():
        (folder / name).write_text(text)
    subprocess.run([cairn, "record", "-q", "-o", "x.cairn", "--", *command], cwd=folder, env=environment, check=True,
                   stdout=subprocess.DEVNULL, timeout=600)
    report = subprocess.run([cairn, "report", f"--width={COLUMNS}", "x.cairn"], cwd=folder, env=environment, check=True,
                            capture_output=True, text=True, timeout=100).stdout
    head = report[:report.index("\n\n  most allocations")]
    first = re.search(r"FINDINGS\n  \w+\n((?:    .*\n)+)", head)
    if not first or not re.search(culprit, first.group(1)):
        sys.exit(f"record_screens: {title}: the first finding does not name {culprit}:\n{head}")
    return "\n".join(line for line in head.splitlines() if not line.startswith("!!")).replace(str(folder), "")


def main(build, out):
    """Write the page."""
    cairn = pathlib.Path(build).resolve() / "bin/cairn"
    text = f"# What the first screen says\n\n{SENTENCES}\n"
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        environment = prepare(folder)
        for screen in SCREENS:
            shown = screen_of(cairn, folder, environment, screen)
            title, files, command, _, how = screen
            text += f"\n## {title}\n\n{how}\n"
            for name, content in files.items():
                text += f"\n`{name}`:\n\n" + "".join(f"    {line}\n" for line in content.splitlines())
            text += f"\n`cairn record -o x.cairn -- {' '.join(command)}`, then `cairn report x.cairn`:\n\n"
            text += "".join(f"    {line}".rstrip() + "\n" for line in shown.splitlines())
    pathlib.Path(out).write_text(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
