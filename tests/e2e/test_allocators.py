# SPDX-License-Identifier: MIT
"""Programs that have their malloc from a library that is preloaded. cairn itself gets that library,
too, which a sanitized one cannot stand: so this is a file of its own."""
import pytest

from cairn_run import PROGRAMS
from test_leaks import report


@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"])
def test_leaks_are_the_same_with_another_allocator(record, allocator):
    """What run-times keep is suppressed, and what the program leaks is told, whoever serves malloc."""
    for words, leaked in (([], 0), (["block"], 777)):
        recording = record(PROGRAMS / "greeting_cpp", *words, is_compared=False,
                           env={"LD_PRELOAD": allocator})
        told = report(recording.path)
        assert any(allocator.split(".")[0] in process["allocator"] for process in told["processes"]), told
        assert (told["totals"]["leaked_bytes"], told["totals"]["leaked_allocations"]) == (leaked, leaked // 777)
