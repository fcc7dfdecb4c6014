# SPDX-License-Identifier: MIT
"""Fixtures of the tests of the store. What draws recordings is with the tests of the command line,
and what waits with those of whole runs."""
import pathlib
import sys

import pytest

for folder in ("cli", "e2e", "server"):
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / folder))


@pytest.fixture(name="draw")
def fixture_draw(tmp_path):
    """Draw a recording and return its path."""
    from drawn import draw_to  # pylint: disable=import-outside-toplevel
    return lambda drawing, name: draw_to(tmp_path / name, drawing)
