# SPDX-License-Identifier: MIT
"""Programs with a malloc from a preloaded library. The library is preloaded into cairn too, which a
sanitized cairn does not support: so these tests have their own file."""
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
        assert (reported["totals"]["leaked_bytes"], reported["totals"]["leaked_allocations"]) == (leaked, leaked // 777)
