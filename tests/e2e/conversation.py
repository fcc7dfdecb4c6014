# SPDX-License-Identifier: MIT
"""conversation: a recorded program that executes a test's commands one by one, and `cairn ctl`."""
import contextlib
import json
import os
import signal
import subprocess

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from waiting import DEADLINE_SECONDS, all_are, read_until, wait_until


def ctl(target, *words, status=0):
    """Send one request and return its answer. `status` is the expected exit status."""
    run = subprocess.run([CAIRN, "ctl", str(target), *words], capture_output=True, text=True,
                         env=environment(), check=False, timeout=DEADLINE_SECONDS)
    assert run.returncode == status, (run.stdout, run.stderr)
    return run.stdout if status == 0 else run.stderr


class Conversation:
    """`cairn record OPTIONS -- obedient`, for use in a with statement."""

    def __init__(self, path, options=(), program=None, env=None):
        self.path = path
        self.process = subprocess.Popen(
            self.command(options, program or [PROGRAMS / "obedient"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env))

    def command(self, options, program):
        return [CAIRN, "record", "-q", "-o", self.path, *options, "--", *program]

    def __enter__(self):
        self.do("p")
        return self

    def __exit__(self, *_):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        self.process.kill()
        self.process.wait()

    def do(self, *lines):
        """Let the program execute each line, and wait for it."""
        for line in lines:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
            read_until(self.process.stdout.fileno(), b"done\n")

    def ask(self, command):
        """Let the program execute a command, and return what it says before that it is done."""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        return read_until(self.process.stdout.fileno(), b"done\n").decode().removesuffix("done\n")

    def ctl(self, *words, **settings):
        return ctl(self.path, *words, **settings)

    def status(self):
        return json.loads(self.ctl("status", "--json"))

    @contextlib.contextmanager
    def stopped_recorder(self):
        """Stop the recorder while it does nothing. It has read all then: in the middle of reading the book of
        a thread that sleeps, the thread's next event would wait for it, whatever the options."""
        self.ctl("checkpoint")
        os.kill(self.process.pid, signal.SIGSTOP)
        wait_until(lambda: all_are(self.process.pid, "T"), "the recorder to stop")
        try:
            yield
        finally:
            os.kill(self.process.pid, signal.SIGCONT)

    def end(self):
        """Let the program end; return the finished recording."""
        _, errors = self.process.communicate(b"q\n", timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0, errors
        return Recording(self.path, self.process)

    def wait_for(self, key, value):
        wait_until(lambda: self.status()[key] == value, f"{key} to become {value}")
