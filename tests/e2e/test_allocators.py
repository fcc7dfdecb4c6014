# SPDX-License-Identifier: MIT
"""Programs with a malloc from a preloaded library. The library is preloaded into cairn too, which a
sanitized cairn does not support: so these tests have their own file."""
import subprocess

import pytest

from cairn_run import PROGRAMS
from test_leaks import report


@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"])
def test_leaks_are_the_same_with_another_allocator(record, allocator):
    """The run-time's blocks are suppressed and the program's leaks are reported with each
    allocator."""
    for words, leaked in (([], 0), (["block"], 777)):
        recording = record(PROGRAMS / "greeting_cpp", *words, is_compared=False,
                           env={"LD_PRELOAD": allocator})
        reported = report(recording.path)
        assert any(allocator.split(".")[0] in process["allocator"] for process in reported["processes"]), reported
        assert (reported["totals"]["live_bytes"], reported["totals"]["live_blocks"]) == (leaked, leaked // 777)


def test_an_allocator_that_a_script_puts_before_ours_is_recorded(record):
    """Scripts write LD_PRELOAD=x.so:$LD_PRELOAD; sort calls reallocarray, which jemalloc lacks."""
    recording = record("sh", "-c", "export LD_PRELOAD=libjemalloc.so.2:$LD_PRELOAD; sort /etc/passwd")
    process = report(recording.path)["processes"][1]
    assert ("jemalloc" in process["allocator"], process["own_allocator"]) == (True, False), process
    assert process["costs"]["allocations"] > 10, process


OWN_MALLOC = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
static char arena[1 << 20];
static size_t used;
static void check(void *block) { if (block && ((char *)block < arena || (char *)block >= arena + used)) abort(); }
void *malloc(size_t n) { void *block = arena + used; used += (n + 15) & ~(size_t)15; return block; }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *old, size_t n) { check(old); void *block = malloc(n); if (old) memcpy(block, old, n); return block; }
void free(void *block) { check(block); }
int main(void) { void *block = reallocarray(reallocarray(NULL, 9, 9), 99, 99); free(block); return block == NULL; }
"""


def test_reallocarray_belongs_to_the_allocator_of_the_program(record, scratch):
    """The program has its own realloc, and libc's reallocarray."""
    subprocess.run(["cc", "-O1", "-fno-builtin", "-rdynamic", "-x", "c", "-", "-o", scratch / "own"],
                   input=OWN_MALLOC, text=True, check=True)
    record("sh", "-c", "./own && echo fine")
