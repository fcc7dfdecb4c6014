# SPDX-License-Identifier: MIT
"""The tests of the crates use the recordings of the end-to-end tests."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
pytest.register_assert_rewrite("cairn_run", "waiting")
