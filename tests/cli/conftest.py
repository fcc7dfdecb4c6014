# SPDX-License-Identifier: MIT
"""Fixtures of the tests of the command line."""
import pytest

from drawn import draw_to


@pytest.fixture(scope="module")
def draw_once(tmp_path_factory):
    """Like `draw`, for a recording that several tests read and none changes."""
    return lambda drawing: draw_to(tmp_path_factory.mktemp("drawn") / "drawn.cairn", drawing)


@pytest.fixture
def draw(tmp_path):
    """Draw a recording and return its path."""
    return lambda drawing, name="drawn.cairn": draw_to(tmp_path / name, drawing)
