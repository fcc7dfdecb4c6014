# SPDX-License-Identifier: MIT
"""measuring: runs one command under bench/measure.c and returns its cost.

The processes of a run are classified by their executable. Processes with the workload's program are
the target; all others belong to the profiler. Valgrind runs the target inside itself, so all of it
counts as target.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import resource
import signal
import subprocess
import time

TIMEOUT_S = 600
LATENCIES = ("malloc_p9999_ns", "malloc_max_ns", "free_p9999_ns", "free_max_ns")


@dataclasses.dataclass
class Outcome:
    """One run. Times in seconds, memory in KiB. `failure` is the reason for missing figures."""

    wall: float = None
    target_cpu: float = None
    recorder_cpu: float = None
    target_rss: int = None      # peak resident memory
    recorder_rss: int = None  # peak resident memory of the largest recorder process
    file_bytes: int = None
    report: float = None  # to open the recording and print its report
    ns_per_op: float = None     # by the workload's own clock, around its loop only
    throughput: float = None    # operations a second, where a client drives the target
    p99_ms: float = None        # latency seen by that client
    malloc_p9999_ns: int = None  # of single calls, by bench/workloads/latency.c
    malloc_max_ns: int = None
    free_p9999_ns: int = None
    free_max_ns: int = None
    failure: str = None


def outrank_others():
    """Give this session's processes precedence over those of other sessions, if that is permitted:
    sched(7), autogroups. Other work then disturbs less."""
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/self/autogroup").write_text("-20")


def prepare_run(limit_bytes):
    """For preexec_fn: limit the private memory of each process of the run."""
    def apply():
        resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))
        outrank_others()
    return apply


def why_failed(log_path, status):
    """The most informative line of the log, with the status."""
    reason = ""
    for line in log_path.read_text(errors="replace").splitlines():
        if any(word in line for word in ("what():", "rror", "annot", "erminate", "egmentation")):
            reason = line.strip()
    return f"status {status}" + (f": {reason[:120]}" if reason else "")


def is_target(exe, programs):
    return os.path.realpath(exe) in programs


def add_processes(outcome, report, programs):
    """Split the measured processes into target and recorder."""
    target = [p for p in report["processes"] if is_target(p["exe"], programs)]
    others = [p for p in report["processes"] if not is_target(p["exe"], programs)]
    if not target:
        outcome.failure = "the target never ran"
        return
    outcome.wall = report["wall_ns"] / 1e9
    outcome.target_cpu = sum(p["cpu_ns"] for p in target) / 1e9
    outcome.recorder_cpu = sum(p["cpu_ns"] for p in others) / 1e9
    outcome.target_rss = max(p["peak_rss_kib"] for p in target)
    outcome.recorder_rss = max((p["peak_rss_kib"] for p in others), default=0)


def stop_group(process):
    """End a run of ours and all processes that it started."""
    with contextlib.suppress(ProcessLookupError):  # it may have ended already
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def start_measured(measure, argv, folder, *, env, memory_bytes):
    """Start argv under `measure` in a process group of its own, with logs in the folder."""
    with open(folder / "log", "wb") as log:
        return subprocess.Popen(
            [str(measure), str(folder / "measured.json"), *map(str, argv)],
            cwd=folder, env=os.environ | env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, preexec_fn=prepare_run(memory_bytes))


def add_own_clock(outcome, folder):
    own = folder / "result.json"
    if own.exists():
        result = json.loads(own.read_text())
        outcome.ns_per_op = result["loop_ns"] / result["ops"]
        for name in LATENCIES:
            setattr(outcome, name, result.get(name))


def run_untraced(argv, folder, env):
    """Run argv without `measure`, which traces: only the workload's own clock is known."""
    outcome = Outcome()
    with open(folder / "log", "wb") as log:
        begin = time.monotonic()
        done = subprocess.run([*map(str, argv)], cwd=folder, env=os.environ | env, stdin=subprocess.DEVNULL,
                              stdout=log, stderr=log, timeout=TIMEOUT_S, check=False,
                              start_new_session=True, preexec_fn=outrank_others)
        outcome.wall = time.monotonic() - begin
    if done.returncode != 0:
        outcome.failure = why_failed(folder / "log", done.returncode)
    add_own_clock(outcome, folder)
    return outcome


def collect(process, folder, programs, timeout_s=TIMEOUT_S):
    """Wait for a started run and read its cost."""
    outcome = Outcome()
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        stop_group(process)
        outcome.failure = f"not finished after {timeout_s} s"
        return outcome
    if status != 0:
        outcome.failure = why_failed(folder / "log", status)
        return outcome
    report = json.loads((folder / "measured.json").read_text())
    add_processes(outcome, report, programs)
    if report["status"] != 0:
        outcome.failure = why_failed(folder / "log", report["status"])
    add_own_clock(outcome, folder)
    return outcome
