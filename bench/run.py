#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run: measures cairn and its peers, and writes the results into docs/performance.md and README.md.

    bench/run.py                          everything, as `make bench` does
    bench/run.py --only churn-30-1 --tools bare,cairn --runs 9
    bench/run.py --quick                  a tenth of the work, two rounds: a test of all parts
    bench/run.py --curves                 cost against depth, blocks, threads, stacks
    bench/run.py --scaling                threads on as many processors, `make bench-scale`
    bench/run.py --instructions           instructions per operation, by callgrind
    bench/run.py --merge OTHER.json --markdown docs/performance.md
    bench/run.py --list

The results are kept in bench/results.json, the source of the documents' tables. A new measurement of a
tool replaces its old figures for those workloads. Other tools keep theirs, each with the bare runs
of its own sitting. Exit status 1 if cairn failed in a run.
"""
import argparse
import pathlib
import subprocess
import sys

from harness import curves, instructions, machine, measuring, programs, results, rounds, tables, tools

ROOT = pathlib.Path(__file__).resolve().parent.parent


def say(text):
    print(text, file=sys.stderr, flush=True)


def names(text):
    return [name for name in text.split(",") if name]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="build directory (default: %(default)s)")
    parser.add_argument("--no-build", action="store_true", help="take the programs as they are")
    parser.add_argument("--only", type=names, help="workloads, separated by commas")
    parser.add_argument("--tools", type=names, help="tools, separated by commas")
    parser.add_argument("--runs", type=int, help="rounds (default: 5)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, two rounds")
    parser.add_argument("--curves", nargs="?", const="all", help="all, or names of curves")
    parser.add_argument("--scaling", action="store_true",
                        help="1 to 16 threads on as many processors, as far as there are any")
    parser.add_argument("--instructions", metavar="WORKLOADS", nargs="?", const="all",
                        help="instructions an operation, by callgrind: all, or of these workloads")
    parser.add_argument("--json", type=pathlib.Path, help="where results are kept (default: "
                        "bench/results.json, and bench-quick.json in the build directory for --quick)")
    parser.add_argument("--merge", metavar="FILE", type=pathlib.Path, nargs="*",
                        help="measure nothing; take over what these files have and the results lack")
    parser.add_argument("--markdown", type=pathlib.Path, nargs="+", default=[],
                        help="documents to bring up to date")
    parser.add_argument("--list", action="store_true", help="what there is to measure")
    return parser.parse_args()


def build_programs(build):
    """Configure the benchmark programs and build them; `make` builds cairn itself."""
    subprocess.run(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-Wno-dev", "-DCAIRN_BENCH=ON"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "bench_programs"],
                   check=True, stdout=subprocess.DEVNULL)


def choose_tools(wanted, build):
    """The tools to run, bare first. A line names each tool that is not installed and skipped."""
    unknown = set(wanted or []) - {tool.name for tool in tools.TOOLS}
    if unknown:
        raise SystemExit(f"run.py: there is no tool {', '.join(sorted(unknown))}")
    chosen = []
    for tool in tools.TOOLS:
        if tool.name != "bare" and (tool.name not in wanted if wanted else not tool.is_default):
            continue
        if tool.is_installed(build):
            chosen.append(tool)
        else:
            say(f"{tool.name} is left out: there is no {tool.fill(tool.needs, build)}")
    return chosen


def choose_workloads(wanted, build):
    every = programs.EVERY
    unknown = set(wanted or []) - {workload.name for workload in every}
    if unknown:
        raise SystemExit(f"run.py: there is no workload {', '.join(sorted(unknown))}; try --list")
    chosen = []
    for workload in every:
        if wanted and workload.name not in wanted:
            continue
        if workload.executable(build) and workload.executable(build).exists():
            chosen.append(workload)
        else:
            say(f"{workload.name} is left out: there is no {workload.program}")
    return chosen


def measure_workloads(data, setup, here, options, chosen):
    """Fill data["workloads"]; return the names of the measured workloads."""
    measured = []
    for workload in choose_workloads(options.only, setup.build):
        say(workload.title)
        outcomes = rounds.run_rounds(setup, workload, chosen, say)
        divisors = {name: rounds.given_less(tools.find_tool(name), workload) for name in outcomes}
        results.add_sitting(data["workloads"], workload.name, workload.heading(),
                            results.sitting_of(here, setup.scale, outcomes, divisors))
        measured.append(workload.name)
        results.save(options.json, data)
    return measured


def measure_curves(data, setup, here, options, chosen):
    wanted = [curve.name for curve in curves.CURVES] if options.curves == "all" else names(
        options.curves)
    fitting = [tool for tool in chosen if tool.name in ("bare", "cairn", "heaptrack")]
    for curve in curves.CURVES:
        if curve.name in wanted:
            say(curve.title)
            curves.measure_curve(data["curves"], curve, setup, here, fitting, say)
            results.save(options.json, data)


def measure_scaling(data, setup, here, options, chosen):
    light = [tool for tool in chosen if tool.name in ("bare", "cairn")]
    say(curves.SCALING.title)
    curves.measure_curve(data["curves"], curves.SCALING, setup, here, light, say)
    results.save(options.json, data)
    print(tables.scaling_table(data))


def measure_instructions(data, setup, here, options, chosen):
    light = [tool for tool in chosen if tool.name in ("bare", "cairn", "heaptrack")]
    countable = [workload for workload in programs.WORKLOADS if instructions.is_countable(workload)]
    wanted = None if options.instructions == "all" else names(options.instructions)
    unknown = set(wanted or []) - {workload.name for workload in countable}
    if unknown:
        raise SystemExit(f"run.py: cannot count an operation of {', '.join(sorted(unknown))}; "
                         f"of {', '.join(workload.name for workload in countable)} it can")
    for workload in countable:
        if wanted is None or workload.name in wanted:
            sitting = instructions.measure_instructions(setup, here, light, workload, say)
            results.add_sitting(data["instructions"], workload.name, workload.heading(), sitting)
            results.save(options.json, data)


def merge(data, options):
    for path in options.merge:
        if not path.exists():
            raise SystemExit(f"run.py: there is no {path}")
        results.fill_in(data, results.load(path))
    results.save(options.json, data)


def measure(data, options):
    """Measure what the options select; return the names of the measured workloads."""
    if not options.no_build:
        build_programs(options.build)
    measuring.outrank_others()
    here = machine.describe_machine(ROOT)
    if machine.quietness_warning(here):
        say("warning: " + machine.quietness_warning(here))
    setup = rounds.Setup(build=options.build, runs=options.runs or (2 if options.quick else 5),
                         memory_bytes=machine.available_memory_bytes() * 6 // 10,
                         scale=10 if options.quick else 1)
    chosen = choose_tools(options.tools, options.build)
    if options.instructions:
        measure_instructions(data, setup, here, options, chosen)
        return []
    if options.scaling:
        measure_scaling(data, setup, here, options, chosen)
        return []
    if options.curves:
        measure_curves(data, setup, here, options, chosen)
        return []
    return measure_workloads(data, setup, here, options, chosen)


def main():
    options = arguments()
    if options.list:
        for item in programs.EVERY + curves.CURVES + tools.TOOLS:
            print(f"{type(item).__name__.lower():10} {item.name:16} {item.title}")
        return 0
    options.build = options.build.resolve()
    options.json = options.json or (options.build / "bench-quick.json" if options.quick
                                    else ROOT / "bench" / "results.json")
    data = results.load(options.json)
    measured = []
    if options.merge is None:
        measured = measure(data, options)
    else:
        merge(data, options)
    for document in options.markdown:
        tables.update_document(document, data)
    print(tables.summary(data, measured))
    return int(any(results.failure(data["workloads"][name], "cairn") for name in measured))


if __name__ == "__main__":
    sys.exit(main())
