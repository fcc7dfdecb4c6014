# SPDX-License-Identifier: MIT
"""Each hooked function records what it did, and nothing else."""
import os

import pytest

from consumer import PROGRAMS, Session
from journal import recorded, expected


@pytest.mark.parametrize("program", ["functions", "operators", "crooked"])
def test_every_event_is_recorded_in_order_with_its_address_and_size(program):
    with Session() as session:
        result = session.run(os.path.join(PROGRAMS, program))
        assert (result.returncode, result.stderr) == (0, "")
        (process,) = session.processes
        assert recorded(process.events) == expected(result.stdout)
        assert session.lost() == {}
    assert process.books_are_right()
