# SPDX-License-Identifier: MIT
"""programs: the workloads, as a table.

A workload is a command with a parameter for the amount of work, so that slow tools can do less. The
source of each workload (bench/workloads/) describes it; the limits are in promises.py.
"""
import dataclasses
import os
import pathlib
import shutil
import subprocess

REAL = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "real"
ROOT = REAL.parents[2]


@dataclasses.dataclass(frozen=True)
class Workload:
    """`arguments` may contain {work}, the amount, {real}, the folder with the inputs of real
    programs, and {root}, the repository. Work that is not divisible is the same for all tools."""

    name: str
    title: str
    program: str                # of bench/workloads/, or a command found in PATH
    arguments: tuple = ()
    work: int = 0
    unit: str = ""  # the operation that ns_per_op counts
    env: dict = dataclasses.field(default_factory=dict)
    skip_tools: tuple = ()  # tools that would need minutes or gigabytes
    is_divisible: bool = True   # slow tools may do less of it
    is_ours: bool = True        # takes result=FILE and is in the build directory
    is_server: bool = False     # see server_load.py
    repeats: int = 1            # runs in a round, for short ones
    on_processors: int = 0      # that target and profiler share; 0: all
    helpers: tuple = ()         # commands that the program starts, part of the target

    def executable(self, build):
        """The path of the program, or None if it is not installed."""
        if self.is_ours:
            return build / "bench" / self.program
        found = compiler_proper() if self.program == "cc1plus" else shutil.which(self.program)
        return pathlib.Path(found) if found else None

    def command(self, build, divisor=1):
        """The command line for 1/divisor of the work."""
        work = max(self.work // divisor, 1)
        arguments = [argument.format(work=work, real=REAL, root=ROOT) for argument in self.arguments]
        if self.is_ours:
            arguments.append("result=result.json")
        if self.program == "cc1plus":
            arguments += multiarch_arguments()
        return [str(self.executable(build)), *arguments]

    def processors(self):
        """The words before the command that restrict it to some processors."""
        if not self.on_processors:
            return []
        usable = sorted(os.sched_getaffinity(0))[:self.on_processors]
        return ["taskset", "-c", ",".join(map(str, usable))]

    def heading(self):
        """The title and unit for the results."""
        return {"title": self.title, "unit": self.unit}

    def programs(self, build):
        """Real paths of the executables that count as target."""
        return {os.path.realpath(path) for path in (self.executable(build),
                                                    *map(shutil.which, self.helpers)) if path}


def _compiler_says(option):
    if not shutil.which("g++"):
        return ""
    asked = subprocess.run(["g++", option], capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def compiler_proper():
    """Path of cc1plus, which the g++ driver executes, or None."""
    path = _compiler_says("-print-prog-name=cc1plus")
    return path if os.path.isabs(path) else None


def multiarch_arguments():
    """The options that the driver passes to cc1plus on Debian for libc's headers."""
    triplet = _compiler_says("-print-multiarch")
    return ["-imultiarch", triplet] if triplet else []


def churn(name, title, *arguments, work):
    return Workload(name, title, "churn", ("pairs={work}", *arguments), work, "pair")


def std_list(name, title, *arguments, work=60_000_000):
    return Workload(name, title, "list", ("pairs={work}", *arguments), work, "pair")


WORKER = "a worker beside a main thread that sleeps"


def real(name, title, program, *arguments, work=0, env=None, skip_tools=("dhat",), **settings):
    return Workload(name, title, program, arguments, work, "", env or {}, skip_tools,
                    is_divisible=False, is_ours=False, **settings)


SLOW = ("dhat", "massif", "gperftools")


def short(name, title, program, *arguments, repeats=21, **settings):
    return real(name, title, program, *arguments, skip_tools=SLOW, repeats=repeats, **settings)


def on_one_processor(workload):
    """The same, where target and profiler share a processor, as on a busy machine."""
    return dataclasses.replace(workload, name=f"{workload.name}-shared", skip_tools=SLOW,
                               title=f"{workload.title}, one processor", on_processors=1)


WORKLOADS = (
    churn("churn-30-1", "churn, 30 deep, 1 thread", "depth=30", work=30_000_000),
    churn("churn-30-2", "churn, 30 deep, 2 threads", "depth=30", "threads=2", work=30_000_000),
    churn("churn-30-4", "churn, 30 deep, 4 threads", "depth=30", "threads=4", work=15_000_000),
    churn("churn-30-16", "churn, 30 deep, 16 threads", "depth=30", "threads=16", work=4_000_000),
    churn("churn-30-worker", f"churn, 30 deep, {WORKER}", "depth=30", "threads=0", work=30_000_000),
    churn("churn-100-1", "churn, 100 deep, 1 thread", "depth=100", work=30_000_000),
    churn("churn-restless", "churn, 30 deep, 1 thread, root changes every 8 pairs",
          "depth=30", "burst=8", work=20_000_000),
    Workload("deep", "recursion, 5000 deep, up to four frames change", "deep",
             ("pairs={work}", "depth=5000"), 4_000_000, "pair", skip_tools=("dhat", "massif")),
    std_list("list-1", "list push/pop, 1 thread"),
    std_list("list-2", "list push/pop, 2 threads", "threads=2"),
    std_list("list-4", "list push/pop, 4 threads", "threads=4"),
    std_list("list-16", "list push/pop, 16 threads", "threads=16", work=15_000_000),
    std_list("list-worker", f"list push/pop, {WORKER}", "threads=0"),
    Workload("handover", "producer and consumer threads", "handover", ("pairs={work}",),
             2_000_000, "block"),
    Workload("pool", "4 workers that free each other's blocks, 50 MB live", "pool",
             ("pairs={work}", "threads=4"), 5_000_000, "pair"),
    Workload("live", "20 million live blocks", "live", ("blocks={work}",), 20_000_000, "block",
             skip_tools=("dhat", "massif"), is_divisible=False),
    Workload("stacks", "1 million distinct stacks", "stacks", ("stacks={work}", "rounds=4"),
             1_000_000, "pair", skip_tools=("dhat",), is_divisible=False),
    Workload("threads", "1000 threads that come and go", "threads",
             ("threads={work}", "pairs=10000"), 1000, "thread", is_divisible=False),
    Workload("growth", "realloc growth", "growth", ("reallocs={work}",), 5_000_000, "realloc"),
    real("cc1plus", "cc1plus, a large C++ file", "cc1plus", "-quiet", "-O2", "-std=gnu++17",
         "-D_GNU_SOURCE", "{real}/compile.cpp", "-o", "/dev/null",
         skip_tools=("dhat", "massif", "gperftools")),
    # Without -O2 heaptrack can interpret its recording, so both tools can print a report.
    real("cc1plus-O0", "cc1plus, the same file without optimization", "cc1plus", "-quiet", "-O0",
         "-std=gnu++17", "-D_GNU_SOURCE", "{real}/compile.cpp", "-o", "/dev/null",
         skip_tools=("dhat", "massif", "gperftools")),
    real("sqlite3", "sqlite3, 300 000 rows and an index in memory", "sqlite3", ":memory:",
         ".read {real}/rows.sql"),
    real("python3", "python3, JSON, PYTHONMALLOC=malloc", "/usr/bin/python3",
         "{real}/documents.py", "{work}", work=100, env={"PYTHONMALLOC": "malloc"}),
    real("node", "node, JSON, buffers, compression", "node", "{real}/documents.js", "{work}",
         work=1000, skip_tools=("dhat", "massif")),
    Workload("redis", "redis SET/LPUSH, 16 pipelined", "redis-server", work=1_000_000,
             unit="request", skip_tools=("dhat",), is_ours=False, is_server=True),
    real("perl", "perl, hashes and sorts", "perl", "{real}/words.pl", "{work}", work=60,
         skip_tools=SLOW),
    real("lua", "lua, tables and strings", "lua5.4", "{real}/tables.lua", "{work}", work=12,
         skip_tools=SLOW),
    real("clang", "clang++ -fsyntax-only", "clang++", "-fsyntax-only", "-std=gnu++17",
         "{real}/compile.cpp", skip_tools=SLOW),
    short("git", "git log --stat, 100 commits", "git", "-C", "{root}", "--no-pager", "log", "--stat",
          "-n", "100", repeats=5),
    short("perl-short", "perl -e 1", "perl", "-e", "1"),
    short("python3-short", "python3 -c 1", "/usr/bin/python3", "-c", "1"),
    real("children", "a shell with 2000 short children", "sh", "-c",
         "i=0; while [ $i -lt 2000 ]; do /usr/bin/true; i=$((i+1)); done",
         skip_tools=(*SLOW, "heaptrack"), helpers=("/usr/bin/true",)),
)
WORKLOADS += tuple(on_one_processor(workload) for workload in WORKLOADS
                   if workload.name in ("perl", "cc1plus-O0", "python3", "clang"))

# The same work, once and ten times: it separates costs that grow with a run from constant ones.
LENGTHS = tuple(
    Workload(f"length-{threads}-{pairs // 1_000_000}m",
             f"churn, {threads} thread{'s' if threads > 1 else ''}, "
             f"{pairs // 1_000_000} M pairs each", "churn",
             ("pairs={work}", f"threads={threads}"), pairs, "pair",
             skip_tools=("gperftools", "dhat", "massif",
                         *(("heaptrack",) if pairs > 5_000_000 else ())), is_divisible=False)
    for threads in (1, 4) for pairs in (5_000_000, 50_000_000)
)


# Single calls of malloc and free.
LATENCIES = tuple(
    Workload(f"latency-{threads}", f"{threads} thread{'s' if threads > 1 else ''}", "latency",
             ("pairs={work}", f"threads={threads}"), 4_000_000 // threads, "pair",
             skip_tools=("gperftools", "dhat", "massif"), is_divisible=False)
    for threads in (1, 2, 4, 8, 16, 32)
)

EVERY = WORKLOADS + LENGTHS + LATENCIES


def find_workload(name):
    return next(workload for workload in EVERY if workload.name == name)
