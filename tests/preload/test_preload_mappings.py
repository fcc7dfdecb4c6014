# SPDX-License-Identifier: MIT
"""mmap and its kin: every call that succeeds is recorded as what it did, and as no heap event."""
import os

import pytest

from consumer import PROGRAMS, Session


def expected(text):
    """(kind, address, size, old address, old size) of each line."""
    rows = []
    for line in text.splitlines():
        kind, *numbers = line.split()
        rows.append((None if kind == "-" else kind, *(int(number, 16) for number in numbers)))
    return rows


def seen(process):
    return [(m.kind, m.address, m.size, m.old_address, m.old_size) for m in process.mappings]


@pytest.mark.parametrize("how", ["calls", "handler"])
def test_every_change_is_recorded_in_order(how):
    with Session() as session:
        result = session.run(os.path.join(PROGRAMS, "mappings"), how)
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert seen(process) == expected(result.stdout)
        assert session.lost() == {}
    numbers = [number for m in process.mappings
               for number, size in ((m.old_number, m.old_size), (m.number, m.size)) if size]
    assert numbers == sorted(set(numbers)), "numbers rise"


def test_a_mapping_has_the_stack_that_made_it():
    with Session() as session:
        session.run(os.path.join(PROGRAMS, "mappings"))
        (process,) = session.processes
    shared = next(m for m in process.mappings if m.kind == "shared")
    assert [module for module, _ in shared.frames[:2]] == ["<main>", "<main>"], "map, main"
    assert not [event for event in process.events if event.address == shared.address]
