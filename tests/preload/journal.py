# SPDX-License-Identifier: MIT
"""journal: compares what a test program says it did (programs/journal.h) with what was recorded."""

MARK = 12345678


def expected(stdout):
    """The program's own account: (kind, address, size). A realloc is a free and an allocation."""
    rows, live = [], {}

    def free(address):
        rows.append(("free", address, live.pop(address)))

    for line in stdout.splitlines():
        if line.count(" ") == 3:
            kind, address, size, old = line.split()
            if kind == "free":
                free(int(address, 16))
                continue
            if kind == "realloc":
                free(int(old, 16))
            rows.append(("alloc", int(address, 16), int(size)))
            live[int(address, 16)] = int(size)
    return rows


def recorded(events):
    """The same of the events between the two marks; the marks' own frees are omitted."""
    marks = [i for i, e in enumerate(events) if e.kind == "alloc" and e.size == MARK]
    assert len(marks) == 2, f"two marks, found {marks}"
    return [(e.kind, e.address, e.size) for e in events[marks[0] + 2:marks[1]]]
