# SPDX-License-Identifier: MIT
"""server_load: redis-server under a tool, driven by redis-benchmark.

Only the server, the target, is measured. Throughput and p99 are the client's. The server listens on
a socket in the run's folder and saves nothing. Its own SHUTDOWN ends it, so that a profiler can
finish its work.
"""
import csv
import io
import socket
import subprocess
import time

from harness import measuring

TESTS = "set,lpush"
START_DEADLINE_S = 60


def wait_until_listening(path, process):
    """Return True when the server accepts, False if it ends or does not start."""
    deadline = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
                return True
            except OSError:
                time.sleep(0.01)
    return False


def drive(path, requests):
    """Run the client: ([requests per second], [p99 in ms]), one for each test."""
    done = subprocess.run(
        ["redis-benchmark", "-s", str(path), "-t", TESTS, "-n", str(requests), "-P", "16",
         "-r", "100000", "-d", "64", "--csv"],
        capture_output=True, text=True, timeout=measuring.TIMEOUT_S, check=True)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    return ([float(row["rps"]) for row in rows], [float(row["p99_latency_ms"]) for row in rows])


def shut_down(path):
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(path))
        control.sendall(b"SHUTDOWN NOSAVE\r\n")
        control.recv(64)


def run(setup, tool, workload, folder):
    """Run one server. Throughput is the harmonic mean over the tests (equal requests each)."""
    path = folder / "socket"
    server = workload.command(setup.build) + [
        "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no",
        "--daemonize", "no"]
    process = measuring.start_measured(
        setup.measure, tool.command(setup.build, server), folder, env=workload.env,
        memory_bytes=setup.memory_bytes)
    if not wait_until_listening(path, process):
        measuring.stop_group(process)
        return measuring.Outcome(failure=measuring.why_failed(folder / "log", "no server"))
    requests = max(workload.work // (setup.scale * tool.divisor), 1000)
    rates, p99 = drive(path, requests)
    shut_down(path)
    programs = workload.programs(setup.build)
    if tool.is_inside_target:
        programs = {tool.path(setup.build)}
    outcome = measuring.collect(process, folder, programs)
    outcome.throughput = len(rates) / sum(1 / rate for rate in rates)
    outcome.ns_per_op = 1e9 / outcome.throughput
    outcome.p99_ms = max(p99)
    return outcome
