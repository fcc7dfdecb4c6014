# SPDX-License-Identifier: MIT
"""Fixtures of the tests of the command line."""
import pytest

from drawn import draw_to


@pytest.fixture
def draw(tmp_path):
    """Draws a recording and returns its path."""
    return lambda drawing, name="drawn.cairn": draw_to(tmp_path / name, drawing)
