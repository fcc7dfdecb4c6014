# SPDX-License-Identifier: MIT
"""Attaching to programs with an allocator inside: jemalloc, tcmalloc, glibc and musl, static and not,
by their own names, with a prefix, or with the names in a separate file. The counts are the program's
own, exactly."""
import re
import subprocess
from pathlib import Path

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, assert_totals, environment
from test_attach import Attachable
from waiting import DEADLINE_SECONDS

ROUNDS = 3

# The truth of one round, from the programs: allocations and bytes.
PLAIN = (280, 41370)
EXTENDED = (370, 72570)
RUST = (53, 6410)

PROGRAMS_WITH = {
    "glibc_dynamic": PLAIN, "glibc_static": PLAIN, "glibc_static_pie": PLAIN,
    "musl_dynamic": PLAIN, "musl_static": PLAIN, "tcmalloc_inside": PLAIN,
    "jemalloc_inside": EXTENDED, "jemalloc_no_pie": EXTENDED, "jemalloc_static": EXTENDED,
    "tcmalloc_shared": PLAIN, "mimalloc_shared": PLAIN, "mimalloc_prefixed": PLAIN,
    "jemalloc_shared": EXTENDED, "jemalloc_prefixed": EXTENDED, "jemalloc_apart": EXTENDED, "rust_jemalloc": RUST,
}


OWN_FUNCTIONS = ",".join(f"{name}=my_pool_{name}" for name in (
    "malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc"))


def check_rounds(scratch, name, truth, *options):
    """Attach to the program for some of its rounds, and compare with their truth."""
    allocations, allocated_bytes = truth
    with Attachable(scratch, [PROGRAMS / "attach" / name]) as program:
        program.do("r")
        program.attach(*options)
        program.do(*["r"] * ROUNDS)
        recording = program.detach()
        program.do("r")
        program.end()
    assert_totals(recording, {
        "allocations": ROUNDS * allocations, "allocated_bytes": ROUNDS * allocated_bytes,
        "frees": ROUNDS * allocations, "live_blocks": 0})


@pytest.mark.parametrize("name", PROGRAMS_WITH)
def test_counts_are_the_programs_own(scratch, name):
    check_rounds(scratch, name, PROGRAMS_WITH[name])


@pytest.mark.parametrize("name, thrown", [("dynamic", 21), ("static", 14), ("jemalloc", 14), ("tcmalloc", 14)])
def test_operators_are_recorded_and_their_exceptions_caught(scratch, name, thrown):
    """libstdc++ returns NULL by catching its own exception, whose block is malloc's. Where operator
    new itself is hooked, that is a call inside of it."""
    with Attachable(scratch, [PROGRAMS / "attach" / f"operators_{name}"]) as program:
        program.do("r", "t")
        program.attach()
        program.do("r", "r")
        assert_totals(program.detach(), {"allocations": 100, "allocated_bytes": 7140, "frees": 100,
                                         "live_blocks": 0})
        program.attach()
        program.do("t", "t")
        assert_totals(program.detach(), {"allocations": 2 * thrown, "frees": 2 * thrown,
                                         "live_blocks": 0})
        program.do("r", "t")
        program.end()


def test_the_users_functions_are_recorded(scratch):
    check_rounds(scratch, "own_pool", PLAIN, "--allocator", OWN_FUNCTIONS)


@pytest.mark.parametrize("options", [(), ("--allocator", "malloc=own_malloc,free=own_free")],
                         ids=["by known names", "by the user's"])
def test_callers_find_every_register_as_it_was(scratch, options):
    """Compilers see that an allocator leaves a register alone, and rely on it (-fipa-ra)."""
    with Attachable(scratch, [PROGRAMS / "attach" / "kept_registers"]) as program:
        program.do("r")
        program.attach(*options)
        program.do("r", "r", "r")
        assert_totals(program.detach(), {"allocations": 3000, "allocated_bytes": 3000 * 48, "frees": 3000})
        program.do("r")
        program.end()


def test_the_agent_is_in_reach_of_the_allocator(scratch):
    """So that stubs jump to it directly. The text of the agent is the largest without a file."""
    with Attachable(scratch, [PROGRAMS / "attach" / "glibc_dynamic"]) as program:
        program.attach()
        texts = re.findall(r"^(\w+)-(\w+) r-xp \S+ \S+ (\S+) *(.*)$",
                           Path(f"/proc/{program.process.pid}/maps").read_text(), re.MULTILINE)
        spans = [(int(end, 16) - int(start, 16), int(start, 16), inode, path)
                 for start, end, inode, path in texts]
        agent = max(span for span in spans if span[2] == "0" and not span[3])
        libc = next(span for span in spans if "/libc.so" in span[3])
        assert abs(agent[1] - libc[1]) < 1 << 31, texts
        program.detach()
        program.end()


def test_callers_compiled_with_their_allocator_see_no_register_change(scratch):
    """What gcc makes of -fipa-ra: values that live across the calls, in registers that other callers would lose, and a
    stack that is not aligned as the ABI demands, because the allocator needs no alignment."""
    program_path = PROGRAMS / "attach" / "ipa_ra"
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=work", program_path],
                          capture_output=True, text=True, check=True).stdout
    parts = re.split(r"call.*<own_(?:malloc|free)>", code)
    kept = [register for register in ("%r8", "%r9", "%rcx", "%rsi", "%xmm2", "%xmm3")
            if all(re.search(rf"{register}\b", part) for part in (parts[0], parts[-1]))]
    assert len(parts) == 3 and len(kept) >= 2 and "push" not in code and "(%rsp)" not in code, code
    with Attachable(scratch, [program_path]) as program:
        program.do("r")
        for _ in range(3):
            program.attach("--allocator", "malloc=own_malloc,free=own_free")
            program.do("r", "r")
            assert_totals(program.detach(), {"allocations": 2000, "allocated_bytes": 2000 * 48, "frees": 2000})
            program.do("r")
        program.end()


def test_a_function_that_cannot_be_patched_is_a_warning_and_a_loss(scratch):
    """The others are recorded."""
    with Attachable(scratch, [PROGRAMS / "attach" / "own_pool"]) as program:
        program.attach("--allocator", OWN_FUNCTIONS + ",memalign=my_pool_none")
        program.do("r")
        program.ctl("detach")
        output, errors = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        assert (program.recorder.returncode, output) == (0, b"")
        program.end()
    said = f"my_pool_none of '{PROGRAMS / 'attach' / 'own_pool'}' is too short for a jump"
    assert errors.count(b"warning: ") == 1 and said in errors.decode()
    recording = Recording(program.path, program.recorder)
    counters = recording.report["counters"]
    (loss,) = [counter for counter in counters if counter["name"] == "unpatched_functions"]
    assert (loss["kind"], loss["value"]) == ("loss", 1) and said in loss["text"]
    assert recording.totals["allocations"] == PLAIN[0]
    hooks = [hook for hook in recording.report["hooks"] if hook["reason"] != ""]
    assert hooks == [{"module": str(PROGRAMS / "attach" / "own_pool"), "function": "my_pool_none", "allocator": "",
                      "reason": "is too short for a jump", "processes": 1}]
    shown = subprocess.run([CAIRN, "report", program.path], capture_output=True, text=True,
                           env=environment(), check=True)
    assert said in (shown.stdout + shown.stderr).replace("\n", " ")


# Functions of libc, or in their place, that are hooked too.
NO_ALLOCATORS = {"_dl_debug_state", "execve", "execveat", "prctl", "syscall", "mmap", "mmap64", "munmap", "mremap",
                 "sbrk", "brk", "_exit", "_Exit", "setrlimit", "setrlimit64", "prlimit", "prlimit64"}

HOOKED = {  # the program's own allocator: a name of each of its functions, after the prefix
    "jemalloc_prefixed": ("jemalloc", "_rjem_", {"malloc", "calloc", "free", "realloc", "aligned_alloc", "memalign",
                                                 "posix_memalign", "valloc", "mallocx", "rallocx", "xallocx",
                                                 "dallocx", "sdallocx"}),
    "tcmalloc_inside": ("tcmalloc", "", {"malloc", "calloc", "free", "realloc"}),
    "glibc_static": ("libc", "", {"malloc", "calloc", "free", "realloc", "memalign", "posix_memalign"}),
}


@pytest.mark.parametrize("name", HOOKED)
def test_the_hooked_functions_are_named(scratch, name):
    """In the report, in the JSON, and at once with --verbose: at the addresses that nm says."""
    allocator, prefix, functions = HOOKED[name]
    module = str(PROGRAMS / "attach" / name)
    with Attachable(scratch, [module]) as program:
        program.attach("--verbose")
        program.ctl("detach")
        _, errors = program.recorder.communicate(timeout=DEADLINE_SECONDS)
        pid = program.process.pid
        program.end()
    recording = Recording(program.path, program.recorder)
    own = [hook for hook in recording.report["hooks"] if hook["module"] == module]
    named = [hook["function"] for hook in own]
    assert {prefix + function for function in functions} <= set(named)
    assert {(hook["reason"], hook["processes"]) for hook in own} == {("", 1)}
    assert {hook["allocator"] for hook in own if hook["function"] not in NO_ALLOCATORS} == {allocator}
    assert {hook["allocator"] for hook in own if hook["function"] in NO_ALLOCATORS} <= {""}
    line = f"cairn: hooked in process {pid}: {', '.join(named)} of '{module}' ({allocator})"
    assert line in errors.decode().splitlines()
    listed = subprocess.run(["nm", "--defined-only", module], capture_output=True, text=True, check=True).stdout
    addresses = {symbol.partition("@")[0]: address for address, _, symbol in map(str.split, listed.splitlines())}
    assert len({addresses[function] for function in named}) == len(named)
    shown = subprocess.run([CAIRN, "report", "--all", program.path], capture_output=True, text=True,
                           env=environment(), check=True).stdout
    section = " ".join(shown.partition("HOOKED FUNCTIONS")[2].split())
    assert f"{module} ({allocator}) {', '.join(named)}" in section.replace("- ", "-")


def refuse(scratch, name, *options):
    """The refusal to attach to a program, which then works on."""
    with Attachable(scratch, [PROGRAMS / "attach" / name]) as program:
        run = subprocess.run([CAIRN, "record", "-o", scratch / "no.cairn", *options, "-p",
                              str(program.process.pid)],
                             capture_output=True, text=True, env=environment(), check=False)
        program.do("r")
        program.end()
    assert not (scratch / "no.cairn").exists()
    return run.returncode, run.stderr


@pytest.mark.parametrize("name, allocator", [("glibc_static_stripped", "an allocator"),
                                             ("jemalloc_static_stripped", "jemalloc")])
def test_an_allocator_without_names_is_refused_with_its_build_id(scratch, name, allocator):
    status, errors = refuse(scratch, name)
    notes = subprocess.run(["readelf", "-n", PROGRAMS / "attach" / name], capture_output=True,
                           text=True, check=True).stdout
    (build_id,) = re.findall(r"Build ID: ([0-9a-f]+)", notes)
    assert status == 126
    assert f"contains {allocator}, but has no symbols" in errors and build_id in errors, errors


def test_a_function_that_does_not_exist_is_refused(scratch):
    status, errors = refuse(scratch, "own_pool", "--allocator", "malloc=my_pool_mallok")
    assert status == 126 and "has no function 'my_pool_mallok'" in errors, errors


@pytest.mark.parametrize("options, sentence", [
    (["--allocator", "malloc", "true"], "--allocator: 'malloc' is not like malloc=my_alloc"),
    (["--allocator", "malloc", "-p", "1"], "--allocator: 'malloc' is not like malloc=my_alloc"),
])
def test_bad_names_are_a_usage_error(options, sentence):
    run = subprocess.run([CAIRN, "record", *options], capture_output=True, text=True,
                         env=environment(), check=False)
    assert run.returncode == 2 and sentence in run.stderr, run.stderr
