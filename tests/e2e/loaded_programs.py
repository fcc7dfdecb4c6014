# SPDX-License-Identifier: MIT
"""Servers and runtimes under load, each with its own checks: node and python compare what they pack and unpack, redis and
postgres have clients that would end at a failed request. Each is a context with the processes that work."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

from cairn_run import environment
from waiting import is_served, read_until, wait_until

POSTGRES = pathlib.Path("/usr/lib/postgresql/15/bin")

NODE = """
const { Worker, isMainThread, parentPort } = require('worker_threads');
const zlib = require('zlib'), crypto = require('crypto');
if (isMainThread) {
  let rounds = 0, bad = 0;
  const workers = [1, 2, 3].map(() => new Worker(__filename).on('message', (good) => { rounds++; if (!good) bad++; }));
  process.stdin.on('end', () => { for (const worker of workers) worker.postMessage('end'); });
  process.on('exit', () => console.log(`rounds ${rounds > 0} bad ${bad}`));
  process.stdin.resume();
  console.log('ready');
} else {
  // A worker that is ended from outside, within zlib, is an error of some versions of node.
  let over = false;
  parentPort.once('message', () => { over = true; });
  const round = () => {
    const bytes = crypto.randomBytes(20000);
    const text = JSON.parse(JSON.stringify({ hex: bytes.toString('hex') })).hex;
    parentPort.postMessage(zlib.inflateSync(zlib.deflateSync(bytes)).equals(bytes) &&
                           Buffer.from(text, 'hex').equals(bytes));
    if (!over) setImmediate(round);
  };
  round();
}
"""

PYTHON = """
import json, sys, threading, zlib
over, bad, rounds = False, 0, 0
def work():
    global bad, rounds
    while not over:
        rows = [{'key': str(n) * (n % 50), 'values': list(range(n % 30))} for n in range(300)]
        text = repr(rows).encode()
        bad += json.loads(json.dumps(rows)) != rows or zlib.decompress(zlib.compress(text)) != text
        rounds += 1
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
print('ready', flush=True)
sys.stdin.read()
over = True
for thread in threads:
    thread.join()
print(f'rounds {rounds > 0} bad {bad}')
"""

# 32 threads keep and compare texts in maps; one waits for the end of its input.
CPP = """
#include <atomic>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>
static std::atomic<bool> over{false};
static std::atomic<unsigned long> rounds{0}, bad{0};
static void work(unsigned seed)
{
    while (!over) {
        std::map<unsigned, std::string> kept;
        for (unsigned i = 0; i < 300; i++) {
            seed = seed * 1103515245 + 12345;
            const unsigned key = seed >> 16;
            kept[key] = std::string(16 + key % 3000, (char)('a' + key % 26));
            if (i % 3 == 0) {
                kept.erase(kept.begin());
            }
        }
        for (const auto &[key, text] : kept) {
            bad += text != std::string(16 + key % 3000, (char)('a' + key % 26));
        }
        rounds++;
        std::this_thread::sleep_for(std::chrono::microseconds(seed % 512));
    }
}
int main()
{
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 32; i++) {
        threads.emplace_back(work, i + 1);
    }
    std::puts("ready");
    std::fflush(stdout);
    char byte;
    while (read(0, &byte, 1) > 0) {
    }
    over = true;
    for (auto &thread : threads) {
        thread.join();
    }
    std::printf("rounds %s bad %lu\\n", rounds > 0 ? "true" : "false", bad.load());
}
"""


@contextlib.contextmanager
def runtime(command, **variables):
    """A program that says "ready", works until its input ends, and then says what was wrong."""
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment(variables)) as program:
        read_until(program.stdout.fileno(), b"ready\n")
        yield program.pid
        said, _ = program.communicate(timeout=120)
    assert (program.returncode, said.lower()) == (0, b"rounds true bad 0\n")


@contextlib.contextmanager
def load(*command):
    """A client that asks until it is stopped, and would end at a failed request."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=environment()) as client:
        yield
        assert client.poll() is None, client.communicate()
        client.kill()
        said, _ = client.communicate(timeout=120)
        assert b"rror" not in said, said


@contextlib.contextmanager
def redis(scratch):
    """redis, with jemalloc, and the place of its socket."""
    place = scratch / "redis.sock"
    with subprocess.Popen(["/usr/bin/redis-server", "--port", "0", "--unixsocket", place, "--save", ""],
                          stdout=subprocess.DEVNULL, env=environment()) as server:
        wait_until(lambda: is_served(place), "the server")
        with load("redis-benchmark", "-s", place, "-t", "set,get,lpush,lpop", "-n", "1000000000", "-r", "1000", "-q"):
            yield server.pid, place
        server.terminate()
        assert server.wait(60) == 0


WORKERS = 8  # four of the server's own, and one per connection
LASTING = """select pid from pg_stat_activity where backend_type <> 'client backend'
             or application_name = 'pgbench' and query !~* '^select'"""
# pgbench adds each amount to one account, one teller and one branch, and notes it.
SUMS = """select count(distinct s) from (select sum(abalance) s from pgbench_accounts union all select sum(tbalance) from
          pgbench_tellers union all select sum(bbalance) from pgbench_branches union all select sum(delta) from
          pgbench_history) sums"""


def asked(place, question):
    return subprocess.run([POSTGRES / "psql", "-At", *place, "-c", question, "postgres"], check=True,
                          capture_output=True).stdout.split()


def lasting_workers(place):
    """The processes of all workers, or none while some have not begun yet."""
    pids = list(map(int, asked(place, LASTING)))
    return pids if len(pids) == WORKERS else []


@contextlib.contextmanager
def postgres():
    """The server and its workers, one per connection. Without autovacuum, whose workers come and go: a process that is
    given by its number must exist. pgbench's first connection ends too; it only selects."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-postgres-"))
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    os.chown(folder, user.pw_uid, user.pw_gid)
    who = {"user": user.pw_uid, "group": user.pw_gid, "cwd": folder, "env": environment()}
    data, place = folder / "data", ["-h", folder, "-U", "me"]
    subprocess.run([POSTGRES / "initdb", "-D", data, "--locale=C", "-E", "UTF8", "-N", "-A", "trust", "-U", "me"],
                   check=True, capture_output=True, **who)
    with subprocess.Popen([POSTGRES / "postgres", "-D", data, "-k", folder, "-h", "", "-F",
                           "-c", "autovacuum=off"],
                          stderr=subprocess.DEVNULL, **who) as server:
        wait_until(lambda: subprocess.run([POSTGRES / "pg_isready", "-q", *place], check=False).returncode == 0,
                   "the server")
        subprocess.run([POSTGRES / "pgbench", "-i", "-q", *place, "postgres"], check=True, capture_output=True)
        with load(POSTGRES / "pgbench", "-c", "4", "-T", "86400", "-n", *place, "postgres"):
            workers = []
            wait_until(lambda: workers.extend(lasting_workers(place)) or workers, "the connections")
            yield [server.pid, *workers]
        assert asked(place, SUMS) == [b"1"]  # one question sees one state
        server.terminate()
        assert server.wait(60) == 0
    shutil.rmtree(folder)
