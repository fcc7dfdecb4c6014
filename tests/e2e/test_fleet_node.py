# SPDX-License-Identifier: MIT
"""One large process of a fleet, with all that sends and keeps: `--push --listen --rotate`. What cairn's processes take
together stays within `--max-memory`, and every figure holds.

By day a small one; at night 2,000 threads, 500,000 stacks and five million live blocks. Memory is the sum of the
processes' proportional set sizes, as the kernel states them."""
import os
import subprocess

import pytest

from cairn_memory import proportional_bytes
from cairn_run import CAIRN, PROGRAMS, Recording, counters, environment
from collector import Collector
from waiting import wait_until

MIB = 1 << 20
PATIENCE_SECONDS = 500


@pytest.mark.parametrize("threads, stacks, blocks, limit_mib, interval", [
    (50, 40, 400, 64, "1s"), pytest.param(300, 200, 2000, 128, "3s", marks=pytest.mark.nightly),
    pytest.param(1000, 200, 2000, 256, "3s", marks=pytest.mark.nightly),
    pytest.param(2000, 250, 2500, 1024, "5s", marks=pytest.mark.nightly)], ids=["small", "middle", "narrow", "large"])
def test_all_of_cairn_stays_within_its_limit(threads, stacks, blocks, limit_mib, interval, scratch):
    path, socket, kept = scratch / "x.cairn", scratch / "s", []
    with Collector() as collector:
        words = ["--listen", socket, "--push", collector.url, "--push-interval", interval, "--push-timeout", "60s", "--rotate", interval,
                 "--max-disk", "1G", "--max-memory", f"{limit_mib}MiB", "-o", path]
        with subprocess.Popen([CAIRN, "record", "-q", *words, "--", PROGRAMS / "fleet_node", str(threads), str(stacks),
                               str(blocks)], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as cairn:
            most = 0

            def look():
                nonlocal most
                assert cairn.poll() is None
                most = max(most, proportional_bytes(cairn.pid, "fleet_node"))

            def is_full():
                look()
                return cairn.stdout.read()

            def all_parts_work():
                """Whether profiles were sent and states kept since then; what is served is read meanwhile."""
                look()
                for target in ("/metrics", "/debug/pprof/heap"):
                    subprocess.run(["curl", "-sf", "-o", "/dev/null", "--unix-socket", socket, f"http://localhost{target}"],
                                   check=False, timeout=PATIENCE_SECONDS)
                    look()
                kept[:] = scratch.glob("x.2*.cairn")
                return len(collector.accepted) >= 2 and len(kept) >= 2
            os.set_blocking(cairn.stdout.fileno(), False)
            wait_until(is_full, "all blocks", PATIENCE_SECONDS)
            collector.accepted.clear()
            wait_until(all_parts_work, "profiles and states", PATIENCE_SECONDS)
            _, errors = cairn.communicate(timeout=PATIENCE_SECONDS)
    assert cairn.returncode == 0, errors
    assert most <= limit_mib * MIB, f"{most // MIB} MiB of {limit_mib}"
    assert len(collector.requests) >= len(collector.accepted) and b"lost" not in errors
    report = Recording(path, None).report_of("-n", "3", "-s", "1")
    assert set(counters(report, "loss").values()) == {0}
    totals, sampling = report["totals"], report["run"]["sampling"]
    truth, error = (totals, 0) if sampling is None else (sampling, 2 * totals["peak_error_bytes"])  # six standard errors
    assert totals["peak_bytes"] + error >= threads * blocks * 64
    assert 0 <= truth["allocations"] - threads * blocks <= 3 * threads + 100  # what a sample leaves out is counted
    assert counters(report, "note").get("lost_profiles", 0) == 0
    print(f"{most // MIB} MiB of {limit_mib}, {len(kept)} states, {len(collector.accepted)} profiles")
