# SPDX-License-Identifier: MIT
"""Attaching to servers and runtimes under load, and detaching, again and again: redis, postgres, node,
python. They notice nothing: no failed request, no wrong data, no hang. CAIRN_ATTACH_CYCLES is the number
of cycles of each (2; the long form has 1000)."""
import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile

import pytest

from cairn_run import CAIRN, Recording, environment
from waiting import is_served, read_until, wait_until

CYCLES = int(os.environ.get("CAIRN_ATTACH_CYCLES", "2"))
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


def attach(scratch, pids):
    """Attach to the processes for a moment."""
    path = scratch / "cycle.cairn"
    path.unlink(missing_ok=True)
    run = subprocess.run([CAIRN, "record", "-q", "-o", path, "--no-symbols", "--duration", "100ms", "-p",
                          ",".join(map(str, pids))], capture_output=True, env=environment(), check=False,
                         timeout=120)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    return Recording(path, run)


def is_seen_to_work(scratch, pids):
    """Attach once more. The recording must have lost nothing."""
    recording = attach(scratch, pids)
    assert not any(recording.lost.values()), recording.lost
    assert {process["pid"] for process in recording.report["processes"]} >= set(pids)
    return recording.totals["allocations"] > 0


def cycle(scratch, pids):
    """Attach to the processes and detach. In the moment of the last time they work: on a busy machine they
    may have no processor in it, then there is another time."""
    for _ in range(CYCLES - 1):
        attach(scratch, pids)
    wait_until(lambda: is_seen_to_work(scratch, pids), "work of the processes")


@pytest.mark.parametrize("command, script", [(["/usr/bin/node"], NODE), (["/usr/bin/python3"], PYTHON)],
                         ids=["node", "python"])
def test_a_runtime_with_threads(scratch, command, script):
    (scratch / "script.js").write_text(script)
    with subprocess.Popen([*command, scratch / "script.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=environment({"PYTHONMALLOC": "malloc"})) as program:
        read_until(program.stdout.fileno(), b"ready\n")
        cycle(scratch, [program.pid])
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


def test_redis_under_load(scratch):
    socket = scratch / "redis.sock"
    with subprocess.Popen(["/usr/bin/redis-server", "--port", "0", "--unixsocket", socket, "--save", ""],
                          stdout=subprocess.DEVNULL, env=environment()) as redis:
        wait_until(lambda: is_served(socket), "the server")
        with load("redis-benchmark", "-s", socket, "-t", "set,get,lpush,lpop", "-n", "1000000000", "-r", "1000", "-q"):
            cycle(scratch, [redis.pid])
        redis.terminate()
        assert redis.wait(60) == 0


WORKERS = 8  # four of the server's own, and one per connection
LASTING = """select pid from pg_stat_activity where backend_type <> 'client backend'
             or application_name = 'pgbench' and query !~* '^select'"""


def lasting_workers(place):
    """The processes of all workers, or none while some have not begun yet."""
    asked = subprocess.run([POSTGRES / "psql", "-At", *place, "-c", LASTING, "postgres"], check=True,
                           capture_output=True)
    pids = list(map(int, asked.stdout.split()))
    return pids if len(pids) == WORKERS else []


@pytest.mark.nightly
def test_postgres_under_load(scratch):
    """The server and its workers, one per connection, in one recording. Without autovacuum, whose workers
    come and go: a process that is given by its number must exist. pgbench's first connection ends too; it
    only selects."""
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
            cycle(scratch, [server.pid, *workers])
        server.terminate()
        assert server.wait(60) == 0
    shutil.rmtree(folder)
