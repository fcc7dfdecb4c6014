# SPDX-License-Identifier: MIT
"""tools: how each profiler wraps a command, names its recording and prints its report.

`divisor` reduces the work of a slow tool. Its ratio is then computed from the workload's own clock
and marked. A tool that is not installed is skipped.
"""
import dataclasses
import os
import pathlib
import shutil
import sys

ATTACHED = pathlib.Path(__file__).resolve().parent.parent / "attached.py"
TCMALLOC = ("/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4",
            "/usr/lib/aarch64-linux-gnu/libtcmalloc.so.4")
JEMALLOC = ("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
            "/usr/lib/aarch64-linux-gnu/libjemalloc.so.2")
# The workloads of the table of sampling.
SAMPLED = ("churn-30-1", "list-1", "cc1plus", "sqlite3", "python3", "redis", "perl")
# The workloads of the table of floors: those that have missed their promise.
FLOORS = ("churn-30-1", "churn-restless", "churn-30-2", "list-2", "stacks", "perl", "lua", "node",
          "clang", "cc1plus", "cc1plus-O0", "sqlite3", "python3", "redis", "perl-short", "perl-shared",
          "cc1plus-O0-shared", "python3-shared", "clang-shared")


@dataclasses.dataclass(frozen=True)
class Tool:
    """`wrap` and `report` may contain {build}, {tcmalloc}, {jemalloc} and {file}."""

    name: str
    title: str
    needs: str  # a required command in PATH, or a path
    wrap: tuple = ()
    preload: str = ""  # its library, if `wrap` does not follow an exec
    preload_env: dict = dataclasses.field(default_factory=dict)
    recordings: str = ""  # glob of the files in the run's folder
    report: tuple = ()  # command that opens the recording and prints a report
    divisor: int = 1
    rounds: int = 1000  # maximal rounds: valgrind is slow and its figures hardly vary
    is_inside_target: bool = False  # valgrind: target and profiler are one process
    fallback: str = ""          # tool to try when this one fails
    is_default: bool = True     # measured unless --tools says otherwise
    is_tracer: bool = False     # of the target, which `measure` cannot trace then
    only: tuple = ()            # the workloads that it is measured with; empty: all
    base: str = "bare"          # the tool that its time is compared with
    is_sampling: bool = False   # has its place in the table of sampling
    is_floor: bool = False      # and in the table of floors

    def path(self, build):
        """The path of `needs`, or None."""
        wanted = self.fill(self.needs, build)
        if not wanted:
            return ""
        return shutil.which(wanted) or (wanted if pathlib.Path(wanted).exists() else None)

    def is_installed(self, build):
        return self.path(build) is not None

    @staticmethod
    def fill(text, build, file=""):
        return text.format(build=build, tcmalloc=tcmalloc_library(), file=file,
                           jemalloc=first_existing(JEMALLOC))

    def command(self, build, argv):
        return [self.fill(word, build) for word in self.wrap] + argv

    def report_command(self, build, file):
        return [self.fill(word, build, file) for word in self.report]


def first_existing(candidates):
    """The first path that exists, or a path that does not exist."""
    return next((path for path in candidates if pathlib.Path(path).exists()), "/nonexistent")


def tcmalloc_library():
    """gperftools' library: CAIRN_BENCH_TCMALLOC, or Debian's path."""
    named = os.environ.get("CAIRN_BENCH_TCMALLOC")
    return first_existing((named,) if named else TCMALLOC)


def preloaded(name, title, library, *settings, only=SAMPLED, is_sampling=True, **others):
    """A library that takes part in the table of sampling, unless it says otherwise."""
    return Tool(name, title, library, wrap=("env", *settings, f"LD_PRELOAD={library}"), only=only,
                is_sampling=is_sampling, **others)


VALGRIND = "/usr/libexec/valgrind/{}-amd64-linux"

TOOLS = (
    Tool("bare", "bare", ""),
    Tool("cairn", "cairn", "{build}/bin/cairn",
         wrap=("{build}/bin/cairn", "-q", "-o", "recording.cairn"),
         recordings="*.cairn", report=("{build}/bin/cairn", "report", "{file}")),
    # Attaching takes longer than starting, so only the workload's own clock counts.
    Tool("attached", "cairn -p", "{build}/bin/cairn",
         wrap=(sys.executable, str(ATTACHED), "{build}/bin/cairn"), recordings="*.cairn", divisor=2,
         is_tracer=True, only=("churn-30-1", "list-1")),
    preloaded("null", "hooks that do nothing", "{build}/bench/null_hooks.so",
              only=SAMPLED + FLOORS, is_floor=True),
    preloaded("walk", "hooks that walk only", "{build}/bench/walk_hooks.so", only=FLOORS,
              is_sampling=False, is_floor=True),
    Tool("cairn-sample", "cairn --sample", "{build}/bin/cairn",
         wrap=("{build}/bin/cairn", "record", "--sample", "-q", "-o", "recording.cairn"),
         recordings="*.cairn", only=SAMPLED, is_sampling=True),
    preloaded("tcmalloc", "tcmalloc", "{tcmalloc}"),
    preloaded("tcmalloc-sample", "tcmalloc, sampling", "{tcmalloc}",
              "TCMALLOC_SAMPLE_PARAMETER=524288", base="tcmalloc"),
    preloaded("jemalloc", "jemalloc", "{jemalloc}"),
    preloaded("jemalloc-sample", "jemalloc, sampling", "{jemalloc}",
              "MALLOC_CONF=prof:true,lg_prof_sample:19", base="jemalloc"),
    Tool("heaptrack", "heaptrack", "heaptrack", wrap=("heaptrack", "-o", "recording"),
         preload="/usr/lib/heaptrack/libheaptrack_preload.so",
         preload_env={"DUMP_HEAPTRACK_OUTPUT": "events"},
         recordings="recording*", report=("heaptrack_print", "{file}"), divisor=6,
         fallback="heaptrack-raw"),
    Tool("heaptrack-raw", "heaptrack -r", "heaptrack", wrap=("heaptrack", "-r", "-o", "recording"),
         recordings="recording*", divisor=6, is_default=False),
    Tool("gperftools", "gperftools", "{tcmalloc}",
         wrap=("env", "LD_PRELOAD={tcmalloc}", "HEAPPROFILE=recording"),
         recordings="recording*.heap", divisor=60, rounds=1),
    Tool("dhat", "DHAT", VALGRIND.format("dhat"),
         wrap=("valgrind", "--tool=dhat", "--dhat-out-file=recording.dhat"),
         recordings="recording.dhat", divisor=60, rounds=1, is_inside_target=True),
    Tool("massif", "massif", VALGRIND.format("massif"),
         wrap=("valgrind", "--tool=massif", "--massif-out-file=recording.massif"),
         recordings="recording.massif", report=("ms_print", "{file}"), divisor=60, rounds=1,
         is_inside_target=True),
)


def find_tool(name):
    return next(tool for tool in TOOLS if tool.name == name)
