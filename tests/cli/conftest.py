# SPDX-License-Identifier: MIT
"""Fixtures of the tests of the command line."""
import pytest

from drawn import draw_to


@pytest.fixture(scope="module")
def draw_once(tmp_path_factory):
    """As `draw`, for what all tests of a file look at and none changes."""
    return lambda drawing: draw_to(tmp_path_factory.mktemp("drawn") / "drawn.cairn", drawing)


@pytest.fixture
def draw(tmp_path):
    """Draws a recording and returns its path."""
    return lambda drawing, name="drawn.cairn": draw_to(tmp_path / name, drawing)
