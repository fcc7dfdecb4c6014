# SPDX-License-Identifier: MIT
"""targets: running programs that check themselves, and what is done to them from outside.

Each program of tests/inject/programs prints "ready", works until its input ends, and then says
whether anything went wrong. tests/inject/cycles.c attaches to it and detaches.
"""
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
from waiting import read_to_end, read_until  # noqa: E402

BUILD = pathlib.Path(os.environ["CAIRN_BUILD"])
CAIRN = BUILD / "bin" / "cairn"
PROGRAMS = BUILD / "tests" / "inject" / "programs"
AGENT = PROGRAMS / "agent.so"
HOOKED = ("malloc", "free", "calloc", "realloc")
# So that a cycle is not given up on a busy machine, where a stop waits for the processor.
PATIENT = {"LIMIT_MS": "20000"}


def mappings(pid):
    """(start, end, permissions, offset, path) of each mapping, from the kernel."""
    found = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        fields = line.split(None, 5)
        start, end = (int(part, 16) for part in fields[0].split("-"))
        found.append((start, end, fields[1], int(fields[2], 16), fields[5] if len(fields) > 5 else ""))
    return found


@functools.cache
def said_of(path, *command):
    """What a program of binutils says of a file, which does not change in these tests."""
    return subprocess.run([*command, path], capture_output=True, text=True, check=True).stdout


def functions(pid, module):
    """Addresses of the functions to hook, by binutils: {name: address}."""
    start, path = next((m[0], m[4]) for m in mappings(pid)
                       if re.search(module, m[4]) and m[3] == 0)
    bias = 0 if re.search(r"Type:\s+EXEC", said_of(path, "readelf", "-hW")) else start
    dynamic = ["-D"] if ".so" in path else []
    symbols = [line.split() for line in said_of(path, "nm", *dynamic).splitlines()]
    return {fields[2].split("@")[0]: int(fields[0], 16) + bias for fields in symbols
            if len(fields) == 3 and fields[2].split("@")[0] in HOOKED}


def text_of(pid, module):
    """The bytes of a module's code as they are in memory, up to the end of its segment."""
    start, path = next((m[0], m[4]) for m in mappings(pid) if re.search(module, m[4]) and m[3] == 0)
    header = said_of(path, "readelf", "-lW")
    bias = start if "EXEC (" not in header else 0
    texts = [line.split() for line in header.splitlines() if re.match(r"\s+LOAD.* R E ", line)]
    with open(f"/proc/{pid}/mem", "rb") as memory:
        found = []
        for fields in texts:
            memory.seek(bias + int(fields[2], 16))
            found.append(memory.read(int(fields[5], 16)))
    return b"".join(found)


def command(pid, module, count, kind):
    """The command line of tests/inject/cycles.c that hooks functions of a module."""
    addresses = functions(pid, module) if kind != "stop" else {}
    agent = [AGENT] if addresses else []
    return [PROGRAMS / "cycles", str(pid), str(count), kind, *agent,
            *(f"{name}@{address:x}" for name, address in addresses.items())]


class Target:
    """A running program. `module` matches the path of the one whose functions are hooked."""

    def __init__(self, command, module=r"/libc\.so\.6$", until=b"ready\n", user=None):
        self.module = module
        self.process = subprocess.Popen(
            [str(PROGRAMS / command[0]), *command[1:]], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, user=user, group=user)
        self.pid = self.process.pid
        self.output = self.process.stdout.fileno()
        self.seen = read_until(self.output, until)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stdin.close()

    def state(self):
        """The state letter of the first thread."""
        return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]

    def command(self, count, kind):
        """The command line of tests/inject/cycles.c for this target."""
        return command(self.pid, self.module, count, kind)

    def processor_ticks(self):
        """Time that the target has worked, in clock ticks."""
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def cycles(self, count, kind="attach", user=None, timeout=400, **variables):
        """Run cycles; return its CompletedProcess."""
        return subprocess.run(self.command(count, kind), capture_output=True, text=True,
                              timeout=timeout, check=False, user=user, group=user,
                              env={**os.environ, **PATIENT, **variables})

    def attach(self, count, kind="attach", **variables):
        """Cycles that must succeed; return what they print."""
        done = self.cycles(count, kind, **variables)
        assert done.returncode == 0, (done.stderr, self.process.poll())
        result = json.loads(done.stdout.splitlines()[-1])
        assert result["given_up"] == 0, done.stderr
        return result

    def end(self):
        """End the input; return the output after "ready". The verdict must be good."""
        self.process.stdin.close()
        output = read_to_end(self.output, seconds=300).decode()
        status = self.process.wait()
        assert status == 0, (signal.Signals(-status).name if status < 0 else status, output)
        assert re.search(r"checks [1-9]\d* failures 0\n", output), output
        return output
