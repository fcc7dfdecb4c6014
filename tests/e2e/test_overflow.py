# SPDX-License-Identifier: MIT
"""A program that is faster than its recorder waits for it, and nothing is lost. Or it does not
wait, and the recording is sampled and says so."""
import math
import pathlib
import platform
import subprocess

from cairn_run import CAIRN, assert_totals, environment
from conversation import Conversation
from waiting import read_until, wait_until


FUTEX = {"x86_64": "202", "aarch64": "98"}[platform.machine()]


def waits_for_another(pid):
    """Return whether the process sleeps in futex(2), unlike a process that reads its input."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] == FUTEX


STACKS = 1024  # a thread counts those of 512 at a time, and sends the others


def test_a_program_waits_for_a_recorder_that_stands_still(scratch):
    with Conversation(scratch / "w.cairn") as c:
        program = c.status()["program_pid"]
        c.do(f"s {STACKS}")
        with c.stopped_recorder():
            c.process.stdin.write(b"a 100000 10\n")  # 5 MB of records; a lane has 0.5 MB at most
            c.process.stdin.flush()
            wait_until(lambda: waits_for_another(program), "the program to wait")
        read_until(c.process.stdout.fileno(), b"done\n")
        c.do("f 60000")
        recording = c.end()
    recording.assert_whole()
    assert_totals(recording, {"allocations": 100000, "allocated_bytes": 1000000, "frees": 60000,
                              "live_blocks": 40000, "peak_bytes": 1000000})
    assert recording.notes["producer_waits"] > 0


def test_a_program_of_few_stacks_does_not_wait(scratch):
    """A row's events are sums, however many there are."""
    with Conversation(scratch / "b.cairn") as c:
        with c.stopped_recorder():
            c.do("a 100000 10", "f 60000")
        recording = c.end()
    recording.assert_whole()
    assert_totals(recording, {"allocations": 100000, "allocated_bytes": 1000000, "frees": 60000,
                              "live_blocks": 40000, "peak_bytes": 1000000})
    assert recording.notes["producer_waits"] == 0


def outrun(path, before=f"a {STACKS} 5000", meanwhile=("a 300000 10", f"f {STACKS}"), seed=1):
    """By default 300,000 allocations from many stacks while the recorder is stopped. Each `do`
    ends with the program's answer, so the program has not waited. The seed decides which blocks are chosen."""
    with Conversation(path, ["--overflow=sample"], env={"CAIRN_SAMPLE_SEED": str(seed)}) as c:
        c.do(f"s {STACKS}", before)
        with c.stopped_recorder():
            c.do(*meanwhile)
        c.ctl("snapshot")  # the program waits only so long for one at its end
        return c.end()


def words_of(*command, status=0):
    run = subprocess.run([CAIRN, *command], capture_output=True, text=True, env=environment(),
                         check=False, timeout=120)
    assert run.returncode == status, (run.stdout, run.stderr)
    return " ".join(run.stdout.split()), " ".join(run.stderr.split())


def test_a_program_with_few_stacks_is_exact(scratch):
    """Although the recorder stands still: a row's events are sums."""
    with Conversation(scratch / "e.cairn", ["--overflow=sample"]) as c:
        with c.stopped_recorder():
            c.do("a 100000 10", "f 60000")
        recording = c.end()
    recording.assert_whole()
    assert recording.report["run"]["sampling"] is None
    assert_totals(recording, {"allocations": 100000, "allocated_bytes": 1000000, "frees": 60000,
                              "live_blocks": 40000, "peak_bytes": 1000000})


def test_a_program_that_may_be_sampled_does_not_wait(scratch):
    recording = outrun(scratch / "s.cairn")
    recording.assert_whole()
    sampling = recording.report["run"]["sampling"]
    assert recording.notes["producer_waits"] == 0
    assert (sampling["allocations"], sampling["allocated_bytes"]) == (300000 + STACKS, 3000000 + STACKS * 5000)
    assert 5000 < sampling["recorded_allocations"] < 100000
    assert sampling["rate"] == sampling["recorded_allocations"] / (300000 + STACKS)
    assert sampling["max_weight"] > 1
    # 300,000 blocks of 10 bytes beside 5 million recorded bytes.
    assert 0 < sampling["peak_standard_error_bytes"] < 500000
    peak, error = recording.totals["peak_bytes"], recording.totals["peak_error_bytes"]
    assert abs(peak - (3000000 + STACKS * 5000)) <= error < 1500000
    assert sum(costs["peak_bytes"] for costs, _ in recording.stacks()) == peak
    # Standard deviations of some 7 %.
    totals = recording.totals
    assert abs(totals["allocations"] - 300000 - STACKS) < 150000
    assert abs(totals["live_blocks"] - 300000) < 150000
    assert abs(totals["live_bytes"] - 3000000) < 1500000
    # Blocks that were recorded before sampling have the weight 1.
    sizes = recording.report_json("--size", "4000..6000")["totals"]
    assert sizes["allocations"] == STACKS
    assert words_of("verify", recording.path)[0].startswith("sound: ")


# What the program's functions do below: their call sites.
SITES = {"keep": {"allocations": 200000 + STACKS, "allocated_bytes": 20000000 + STACKS * 5000, "frees": STACKS + 1000,
                  "live_blocks": 199000, "live_bytes": 19900000, "peak_bytes": 19900000},
         "resize": {"allocations": 1000, "allocated_bytes": 50000000,
                    "live_blocks": 1000, "live_bytes": 50000000, "peak_bytes": 50000000},
         "churn": {"allocations": 200000, "allocated_bytes": 600000000, "frees": 200000,
                   "temporary": 200000, "temporary_bytes": 600000000},
         "[pool numbers]": {"allocations": 100000, "allocated_bytes": 500000000,
                            "live_blocks": 100000, "live_bytes": 500000000,
                            "peak_bytes": 500000000}}


def explains(interval, wanted, cost, error):
    """Whether chance explains the error. A site's blocks have one size but for the few that were
    made before. So its samples have a Poisson distribution, which passes this once in 10^9 times."""
    size = 1 if cost.endswith("bytes") else wanted["allocated_bytes"] / wanted["allocations"]
    samples = wanted[cost] * size / interval
    return error * size <= (6.5 * math.sqrt(samples) + 8) * interval


def test_the_truth_is_within_the_stated_errors(scratch):
    """The truth is what the program was told to do. An error is stated as two standard errors of
    the longest interval, so few figures are beyond."""
    beyond, figures = 0, 0
    for seed in range(1, 6):
        recording = outrun(scratch / f"{seed}.cairn", seed=seed, meanwhile=(
            "a 200000 100", "t 200000 3000", f"f {STACKS}", "r 1000 50000", "n 100000 5000"))
        recording.assert_whole()
        assert recording.notes["producer_waits"] == 0
        sampling = recording.report["run"]["sampling"]
        assert (sampling["allocations"], sampling["allocated_bytes"]) == (501000 + STACKS, 1170000000 + STACKS * 5000)
        assert sampling["sample_bytes"] == 0 < sampling["interval_bytes"] <= 4 << 20
        assert "of 100 cases an estimate of 100 MiB is within" in sampling["sentence"]
        totals = recording.totals
        assert abs(totals["peak_bytes"] - 569900000) <= totals["peak_error_bytes"] < 250000000
        assert abs(totals["allocated_bytes"] - 1175000000) < 500000000
        sites = {site["function"]: site for site in recording.report["top"]["allocations"]}
        for function, wanted in SITES.items():
            costs, errors = sites[function]["costs"], sites[function]["errors"]
            for cost, true in wanted.items():
                error = abs(costs[cost] - true)
                assert explains(sampling["interval_bytes"], wanted, cost, error), (
                    seed, function, cost, costs[cost], errors[cost], true)
                figures += 1
                beyond += error > errors[cost]
        assert sites["churn"]["errors"]["allocated_bytes"] < 600000000
    assert beyond <= figures / 4, (beyond, figures)


def test_pools_and_events_of_a_sampled_program(scratch):
    """Blocks of a pool are sampled like others and keep its name; events are complete."""
    recording = outrun(scratch / "p.cairn", f"n {STACKS} 5000",
                       ["e 500 3", "n 300000 10", "e 1000 7", f"g {STACKS}"])
    recording.assert_whole()
    sampling = recording.report["run"]["sampling"]
    assert recording.notes["producer_waits"] == 0
    assert (sampling["allocations"], sampling["allocated_bytes"]) == (300000 + STACKS, 3000000 + STACKS * 5000)
    assert 5000 < sampling["recorded_allocations"] < 100000
    named = [(costs, frames) for costs, frames in recording.stacks()
             if frames[0]["function"] == "[pool numbers]"]
    assert sum(costs["allocations"] for costs, _ in named) == recording.totals["allocations"]
    assert all(frames[-1]["function"] == "_start" for _, frames in named)
    # Standard deviations of some 7 %.
    assert abs(recording.totals["allocations"] - 300000 - STACKS) < 150000
    assert abs(recording.totals["live_blocks"] - 300000) < 150000
    assert [(event["name"], event["events"], event["weight"])
            for event in recording.report["adhoc"]["entries"]] == [("[event said]", 1500, 8500)]


def test_estimates_are_marked_wherever_they_are_shown(scratch):
    sampled = outrun(scratch / "s.cairn")
    with Conversation(scratch / "w.cairn") as c:
        c.do("a 1000 10")
        whole = c.end()
    assert whole.report["run"]["sampling"] is None
    warning = "all figures are estimates because the program was faster than the recorder"
    exactly = "Exactly 301,024 allocations of 8,120,000 bytes were made."
    mark = "[estimates: 1 of "
    text, _ = words_of("report", "--all", sampled.path)
    assert warning in text and exactly in text
    for title in ("PEAK MEMORY,", "ALLOCATIONS,", "TEMPORARY ALLOCATIONS:", "LEAKED:", "RESIDENT MEMORY:"):
        assert mark in text[text.index(title):][:100], title
    text, _ = words_of("report", "--all", "--tree=top-down", "--functions", sampled.path)
    assert text.count(mark) == 2
    _, errors = words_of("report", "--json", sampled.path)
    assert warning in errors
    text, errors = words_of("diff", whole.path, sampled.path, status=1)
    assert text.count(mark) == 1 and errors.count(warning) == 1
    text, errors = words_of("check", "--max-peak", "1k", sampled.path, status=1)
    assert mark in text and warning in errors
    text, _ = words_of("report", "--all", whole.path)
    assert "[estimates" not in text and "Estimates" not in text
