# SPDX-License-Identifier: MIT
"""pytest_server: a process that has loaded pytest, and runs each file of tests in a copy of itself.

usage: pytest_server.py NAME

To start Python and to load pytest takes a fifth of a second of processor time, and there are over a hundred files:
`make test` (tools/run_tests.sh) starts this once. test_entry.c, ctest's command for such an entry, connects to the
abstract socket NAME and sends its standard streams, its arguments, its folder and its environment. A copy of this
process, the keeper, makes another one, the tests; the end of either side of the connection ends the tests:

    client ---- streams, words ----> keeper ---- fork ----> tests, in a session of their own
           <-- status and times ----

Only this user is served. The server ends with its parent.
"""
import atexit
import gc
import importlib
import os
import random
import select
import signal
import socket
import struct
import sys

import pytest
from _pytest.config import default_plugins

PARENT_CHECK_S = 2
USED_BY_TESTS = ["_pytest._code.source", "ctypes", "http.server", "json", "shutil", "struct", "subprocess", "tempfile",
                 "threading", "unittest.mock", "urllib.request"]


def receive(connection):
    """The streams, the arguments, the folder and the environment that a client sends."""
    data, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while part := connection.recv(1 << 16):
        data += part
    count, folder, *words = data.decode(errors="surrogateescape").split("\0")[:-1]
    count = int(count)
    return streams, words[:count], folder, dict(word.split("=", 1) for word in words[count:])


def be_tests(connection, streams, arguments, folder, environment):
    """Run pytest as if it was started by the client. Never returns."""
    os.setsid()
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder  # as with -m
    sys.argv = ["pytest", *arguments]
    sys.dont_write_bytecode = True  # as with -B
    random.seed()
    status = pytest.main(arguments)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # to free all modules takes as long as to load them


def keep(connection):
    """Run the tests of one client, and tell it their status and processor time. Never returns."""
    os.setsid()  # what ends all of `make test` ends the client, and by that the tests
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    streams, *rest = receive(connection)
    child = os.fork()
    if child == 0:
        be_tests(connection, streams, *rest)
    for stream in streams:
        os.close(stream)
    end = os.pidfd_open(child)
    poll = select.poll()
    poll.register(end, select.POLLIN)
    poll.register(connection, 0)  # its end is always told
    if end not in {number for number, _ in poll.poll()}:
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    status = os.waitstatus_to_exitcode(status)
    try:
        connection.send(b"%d %.3f %.3f\n" % (status if status >= 0 else 128 - status, used.ru_utime, used.ru_stime))
    except BrokenPipeError:
        pass
    os._exit(0)


def is_own(connection):
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return user == os.getuid()


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers need not be waited for
    parent = os.getppid()
    for name in [*(f"_pytest.{plugin}" for plugin in default_plugins), *USED_BY_TESTS]:
        importlib.import_module(name)
    gc.freeze()  # else each copy writes to all their pages
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0" + sys.argv[1])
    server.listen(64)
    while os.getppid() == parent:
        if select.select([server], [], [], PARENT_CHECK_S)[0]:
            connection, _ = server.accept()
            if is_own(connection) and os.fork() == 0:
                server.close()
                keep(connection)
            connection.close()


if __name__ == "__main__":
    main()
