# SPDX-License-Identifier: MIT
"""journal: compares what a test program says it did (programs/journal.h) with what was recorded."""

MARK = 12345678


def expected(stdout):
    """The program's own account: (kind, address, size, old address)."""
    return [(kind, int(address, 16), int(size), int(old, 16))
            for kind, address, size, old in
            (line.split() for line in stdout.splitlines() if line.count(" ") == 3)]


def recorded(events):
    """The same of the events between the two marks; the marks' own frees are omitted."""
    marks = [i for i, e in enumerate(events) if e.kind == "alloc" and e.size == MARK]
    assert len(marks) == 2, f"two marks, found {marks}"
    return [(e.kind, e.address, e.size, e.old) for e in events[marks[0] + 2:marks[1]]]
