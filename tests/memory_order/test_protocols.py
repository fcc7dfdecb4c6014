# SPDX-License-Identifier: MIT
"""No execution that AArch64 allows breaks what the session relies on, the source has the orders that
this takes, and each of them is needed: without it the model finds an execution that is wrong."""
import pathlib

import pytest

from arm_model import can_happen
from protocols import PROTOCOLS

TOP = pathlib.Path(__file__).parents[2]
NEEDED = [(protocol, name) for protocol in PROTOCOLS for name in protocol.needs]


def breaks(protocol, **other):
    orders = {name: place.order for name, place in protocol.needs.items()}
    return can_happen(*protocol.build({**orders, **other}), clocks=protocol.clocks)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.name)
def test_what_must_not_happen_cannot(protocol):
    assert not breaks(protocol)


@pytest.mark.parametrize("protocol, name", NEEDED, ids=lambda value: getattr(value, "name", value))
def test_each_order_is_needed(protocol, name):
    assert breaks(protocol, **{name: "relaxed"}) == (not protocol.needs[name].is_spare)


@pytest.mark.parametrize("protocol, name", NEEDED, ids=lambda value: getattr(value, "name", value))
def test_the_source_has_each_order(protocol, name):
    place = protocol.needs[name]
    text = " ".join((TOP / place.path).read_text(encoding="utf-8").split())
    assert place.text in text
