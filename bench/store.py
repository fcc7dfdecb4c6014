#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""store.py: measures `cairn store` with many recordings: additions a second, queries, sizes.

usage: bench/store.py BUILD [RECORDINGS [STACKS [URL]]]

The recordings are drawn: a service on 20 hosts in 10 versions, with stacks of 12 frames of 400
functions. Times are processor time of cairn, so they hold on a busy machine, too; "on two processors"
is half of it, because all but the store's own part runs on several threads. With the URL of a database
of a ClickHouse server (CAIRN_STORE_LOGIN), the store is there.
"""
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

QUERIES = [("list",), ("top",), ("diff", "1.0", "1.9"), ("query", "growth", "1.0", "1.9"), ("query", "hosts"),
           ("query", "history", "function7"), ("query", "oom")]


def drawing(chance, number, stacks):
    """One recording: most stacks are those of all others, and each has its own figures."""
    lines = [f"!program /opt/web\n!host node{number % 20}\n!start_unix_ms {1790000000000 + number * 3600000}\n"
             f"!wait_status {9 if number % 10 == 0 else 0}\n"]
    for stack in range(stacks):
        frames = [f"/opt/web!function{(stack * step + step) % 400}(/src/f{stack % 30}.c:{step})" for step in range(1, 13)]
        count, size = chance.randrange(1, 9999), chance.randrange(1, 99999)
        lines.append(f"{';'.join(frames)} {count} {count * size} 0 0 0 0 {count} {count * size} {count * size}\n")
    return "".join(lines)


def processor_seconds(command, variables):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, env=variables, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    words = sys.argv[2:] + ["2000", "500", ""][len(sys.argv) - 2:]
    recordings, stacks, url = int(words[0]), int(words[1]), words[2]
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        variables = {**os.environ, "CAIRN_STORE": url or str(folder / "store.db"), "XDG_CACHE_HOME": "/nonexistent"}
        files = [folder / f"{number}.cairn" for number in range(recordings)]
        for number, path in enumerate(files):
            subprocess.run([build / "tests/cli/draw_recording", path], check=True,
                           input=drawing(chance, number, stacks).encode())
        used, clock = 0, 0
        for version in range(10):
            part = processor_seconds([build / "bin/cairn", "store", "add", "--version", f"1.{version}",
                                      *files[version::10]], variables)
            used, clock = used + part[0], clock + part[1]
        size = 0 if url else (folder / "store.db").stat().st_size
        print(f"{recordings} recordings of {stacks} stacks")
        print(f"add: {recordings / used:.0f} a second of processor time, {2 * recordings / used:.0f} on two processors, "
              f"{recordings / clock:.0f} by the clock")
        print(f"size: {size / recordings / 1024:.1f} KiB for each recording, "
              f"{sum(path.stat().st_size for path in files) / recordings / 1024:.1f} KiB as files")
        for words in QUERIES:
            used, clock = processor_seconds([build / "bin/cairn", "store", *words], variables)
            print(f"{' '.join(words)}: {used:.2f} s of processor time, {clock:.2f} s by the clock")


if __name__ == "__main__":
    main()
