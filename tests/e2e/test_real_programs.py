# SPDX-License-Identifier: MIT
"""Real programs run to their end under cairn, with correct results, and nothing is lost."""
import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

from cairn_run import CAIRN, PROGRAMS, Dhat, Recording, environment
from waiting import is_served, wait_until

LARGE_SOURCE = r"""
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct table : table<N - 1> {
    std::map<int, std::vector<std::string>> rows;
    std::unordered_map<std::string, std::function<int(int)>> calls;
    int sum() { rows[N].push_back(std::to_string(N)); calls["x"] = [](int i) { return i + N; };
        return calls["x"](N) + table<N - 1>::sum(); }
};
template <> struct table<0> { int sum() { return 0; } };
int main() {
    table<10> t;
    std::regex words("([a-z]+)[0-9]*");
    std::cout << t.sum() << std::regex_match("abc12", words) << '\n';
}
"""


def names_of(recording):
    return {pathlib.Path(process["executable"]).name for process in recording.figures["processes"]}


def program_in(recording, name):
    """Return whether the program was recorded; Debian's names are like x86_64-linux-gnu-g++-12."""
    return any(re.search(rf"(^|-){re.escape(name)}(\.bfd|-\d+)?$", found)
               for found in names_of(recording))


def test_a_compiler_with_all_its_parts(record, scratch):
    (scratch / "large.cpp").write_text(LARGE_SOURCE)
    compile_it = ["/usr/bin/g++", "-O1", "-g", "-std=c++17", "large.cpp", "-c", "-o", "large.o"]
    subprocess.run(compile_it, cwd=scratch, env=environment(), check=True)
    bare = (scratch / "large.o").read_bytes()
    (scratch / "large.o").unlink()
    compiled = record(*compile_it, is_compared=False, timeout=300)
    assert compiled.finished.returncode == 0, compiled.finished.stderr
    assert (compiled.finished.stdout, compiled.finished.stderr) == (b"", b"")
    assert (scratch / "large.o").read_bytes() == bare
    for part in ("g++", "cc1plus", "as"):
        assert program_in(compiled, part), names_of(compiled)

    linked = record("/usr/bin/g++", "large.o", "-o", "large")
    for part in ("g++", "collect2", "ld"):
        assert program_in(linked, part), names_of(linked)
    run = subprocess.run([scratch / "large"], capture_output=True, check=True)
    assert run.stdout == b"1101\n"
    busiest = max(compiled.figures["processes"], key=lambda part: part["costs"]["allocations"])
    assert pathlib.Path(busiest["executable"]).name == "cc1plus"


def test_node_running_a_script(record, scratch):
    (scratch / "script.js").write_text("""
        const rows = [];
        for (let i = 0; i < 20000; i++) rows.push({ key: 'k' + (i * 7919) % 20011, value: [i] });
        rows.sort((a, b) => (a.key < b.key ? -1 : 1));
        const text = JSON.stringify(rows);
        const hash = require('crypto').createHash('sha256').update(text).digest('hex');
        console.log(rows.length, text.length, hash);
        new Promise((resolve) => setImmediate(resolve)).then(() => console.log('done'));
    """)
    recording = record("/usr/bin/node", "script.js")
    assert recording.finished.stdout.endswith(b"done\n")
    assert recording.totals["threads"] > 4
    assert recording.totals["allocations"] > 1000


def test_ripgrep_in_order_and_in_parallel(record, scratch):
    for folder in range(20):
        (scratch / f"d{folder}").mkdir()
        for number in range(10):
            lines = [f"line {line} of {number}\n" for line in range(200)]
            (scratch / f"d{folder}" / f"f{number}.txt").write_text("".join(lines))
    in_order = record("/usr/bin/rg", "--no-config", "--sort", "path", "-n", "line 1[0-9]+", "-g",
                      "*.txt", ".")
    assert in_order.finished.stdout.count(b"\n") == 20 * 10 * 110
    parallel = record("/usr/bin/rg", "--no-config", "-j", "4", "-n", "line 1[0-9]+", "-g", "*.txt",
                      ".", is_compared=False)
    assert sorted(parallel.finished.stdout.splitlines()) == sorted(
        in_order.finished.stdout.splitlines())
    assert parallel.totals["threads"] >= 4


def test_a_rust_program_with_threads(record, scratch):
    recording = record(PROGRAMS / "workers")
    dhat = Dhat([PROGRAMS / "workers"], scratch, env=environment())
    # Each thread's table of TLS modules has one more entry under cairn: 16 bytes.
    assert recording.totals["allocations"] == dhat.blocks
    assert recording.totals["allocated_bytes"] - dhat.bytes in (4 * 16, 5 * 16)
    assert recording.totals["threads"] == 5
    boxes = sum(costs["allocations"] for costs, frames in recording.stacks()
                if any("make_boxes" in frame["function"] for frame in frames))
    assert boxes == 4 * (10_000 + 1)


@contextlib.contextmanager
def server(command, path, as_user=None, cwd=None):
    """Run a server under cairn in the background; assert at the end that it has ended."""
    with subprocess.Popen([*(as_user or []), CAIRN, "record", "-q", "-o", path, "--",
                           *map(str, command)], cwd=cwd, env=environment(),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def test_redis_under_load(scratch):
    """redis-server uses a shared jemalloc, not glibc's malloc."""
    path = scratch / "redis.cairn"
    socket = scratch / "redis.sock"
    ask = ["redis-cli", "-s", socket]
    with server(["/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", "",
                 "--dir", scratch], path) as redis:
        wait_until(lambda: is_served(socket), "the server's socket")
        load = subprocess.run(["redis-benchmark", "-s", socket, "-q", "-n", "20000", "-P", "16",
                               "-r", "1000", "-t", "set,lpush,incr"], capture_output=True,
                              check=True, timeout=120)
        assert load.stdout.count(b"requests per second") == 3, load.stdout
        length = subprocess.run([*ask, "LLEN", "mylist"], capture_output=True, check=True)
        assert length.stdout == b"20000\n"
        subprocess.run([*ask, "SHUTDOWN", "NOSAVE"], capture_output=True, check=False)
        out, _ = redis.communicate(timeout=60)
        assert redis.returncode == 0, out
    recording = Recording(path, redis)
    recording.assert_whole()
    assert recording.totals["allocations"] > 40_000
    assert any("jemalloc" in process["allocator"] for process in recording.report["processes"])


@pytest.fixture
def plain_user():
    """(prefix to run a command as a user other than root, a directory of that user)."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-postgres-"))
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        os.chown(folder, user.pw_uid, user.pw_gid)
        yield ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
               "--"], folder
    else:
        yield [], folder
    shutil.rmtree(folder)


def test_postgres_under_pgbench(plain_user):
    """One process per connection, shared memory, and a server that refuses to run as root."""
    prefix, folder = plain_user
    binaries = pathlib.Path("/usr/lib/postgresql/15/bin")
    data, path = folder / "data", folder / "postgres.cairn"

    def run(*command):
        return subprocess.run([*prefix, *map(str, command)], cwd=folder, env=environment(),
                              capture_output=True, check=True, timeout=120).stdout

    run(binaries / "initdb", "-D", data, "--locale=C", "-E", "UTF8", "-N", "-A", "trust", "-U", "me")
    with server([binaries / "postgres", "-D", data, "-k", folder, "-h", "", "-F"], path, prefix,
                folder) as postgres:
        ready = [binaries / "pg_isready", "-q", "-h", folder]
        wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "the server")
        run(binaries / "pgbench", "-i", "-q", "-s", "1", "-h", folder, "-U", "me", "postgres")
        said = run(binaries / "pgbench", "-c", "4", "-t", "50", "-n", "-h", folder, "-U", "me",
                   "postgres")
        assert b"number of transactions actually processed: 200/200" in said
        main_process = int((data / "postmaster.pid").read_text().split()[0])
        os.kill(main_process, signal.SIGINT)
        out, _ = postgres.communicate(timeout=60)
        assert postgres.returncode == 0, out
    recording = Recording(path, postgres)
    recording.assert_whole()
    assert recording.totals["processes"] >= 9
    assert recording.totals["allocations"] > 10_000
