# SPDX-License-Identifier: MIT
"""The model of arm_model.py gives the published verdicts on the well-known tests: Alglave, Maranget
and others, the library of litmus tests of herd7 for AArch64, and Arm's architecture manual, K13."""
import pytest

from arm_model import Change, Clock, Fence, Load, Store, can_happen


def reader(first, second, order="relaxed", fence=None, depends=False):
    def run():
        a = yield Load(first, order)
        if fence:
            yield Fence(fence)
        b = yield Load(second, depends=depends)
        return a, b
    return run


def writer(first, second, order="relaxed", fence=None, value=1):
    def run():
        yield Store(first, value)
        if fence:
            yield Fence(fence)
        yield Store(second, value, order)
    return run


def mixed(mine, other, store="relaxed", load="relaxed", fence=None):
    def run():
        yield Store(mine, 1, store)
        if fence:
            yield Fence(fence)
        return (yield Load(other, load))
    return run


def late_store(first, second, load="relaxed", store="relaxed"):
    def run():
        a = yield Load(first, load)
        yield Store(second, 1, store)
        return a
    return run


def single(var, value):
    def run():
        yield Store(var, value)
    return run


XY = {"x": 0, "y": 0}


def stale_pair(results):
    return results[1] == (1, 0)


MESSAGES = [
    ("MP", writer("x", "y"), reader("y", "x"), True),
    ("MP+rel+acq", writer("x", "y", "release"), reader("y", "x", "acquire"), False),
    ("MP+rel+po", writer("x", "y", "release"), reader("y", "x"), True),
    ("MP+po+acq", writer("x", "y"), reader("y", "x", "acquire"), True),
    ("MP+dmb+dmbld", writer("x", "y", fence="release"), reader("y", "x", fence="acquire"), False),
    ("MP+dmb+addr", writer("x", "y", fence="release"), reader("y", "x", depends=True), False),
    ("MP+dmbld+acq", writer("x", "y", fence="acquire"), reader("y", "x", "acquire"), True),
]


@pytest.mark.parametrize("name, one, two, verdict", MESSAGES, ids=[row[0] for row in MESSAGES])
def test_message_passing(name, one, two, verdict):
    assert can_happen(XY, [one, two], stale_pair) == verdict


BUFFERS = [
    ("SB", {}, True), ("SB+dmbs", {"fence": "seq_cst"}, False),
    ("SB+rel+ldapr", {"store": "release", "load": "acquire"}, True),
    ("SB+rel+ldar", {"store": "seq_cst", "load": "seq_cst"}, False),
    ("SB+dmblds", {"fence": "acquire"}, True),
]


@pytest.mark.parametrize("name, how, verdict", BUFFERS, ids=[row[0] for row in BUFFERS])
def test_store_buffering(name, how, verdict):
    threads = [mixed("x", "y", **how), mixed("y", "x", **how)]
    assert can_happen(XY, threads, lambda results: results == [0, 0]) == verdict


@pytest.mark.parametrize("load, store, verdict", [
    ("relaxed", "relaxed", True), ("acquire", "relaxed", False), ("relaxed", "release", False)])
def test_load_buffering(load, store, verdict):
    threads = [late_store("x", "y", load, store), late_store("y", "x", load, store)]
    assert can_happen(XY, threads, lambda results: results == [1, 1]) == verdict


@pytest.mark.parametrize("order, verdict", [("relaxed", True), ("acquire", False)])
def test_independent_readers_agree_only_in_order(order, verdict):
    threads = [single("x", 1), single("y", 1), reader("x", "y", order), reader("y", "x", order)]
    assert can_happen(XY, threads,
                      lambda results: results[2:] == [(1, 0), (1, 0)]) == verdict


@pytest.mark.parametrize("order, verdict", [("relaxed", True), ("release", False)])
def test_writes_to_two_variables(order, verdict):
    threads = [writer("x", "y", order), writer("y", "x", order, value=2)]
    assert can_happen(XY, threads, bool, lambda final: final == {"x": 1, "y": 2}) == verdict


@pytest.mark.parametrize("load, store, verdict", [
    ("relaxed", "relaxed", True), ("acquire", "relaxed", False), ("relaxed", "release", False)])
def test_what_was_seen_is_passed_on(load, store, verdict):
    threads = [single("x", 1), late_store("x", "y", load, store), reader("y", "x", "acquire")]
    assert can_happen(XY, threads,
                      lambda results: results[1] == 1 and results[2] == (1, 0)) == verdict


def test_one_variable_never_runs_backwards():
    def twice():
        return (yield Load("x")), (yield Load("x"))
    assert not can_happen({"x": 0}, [single("x", 1), twice], lambda results: results[1] == (1, 0))
    assert can_happen({"x": 0}, [single("x", 1), twice], lambda results: results[1] == (0, 1))


def test_additions_are_not_lost():
    def adding():
        return (yield Change("x", lambda value: value + 1))
    assert not can_happen({"x": 0}, [adding, adding, adding], bool, lambda final: final["x"] != 3)


def seeing(after_loads=True):
    def run():
        seen = yield Load("x")
        return seen, (yield Clock(after_loads=after_loads))
    return run


def looking(before_all=True):
    def run():
        time = yield Clock(before_all=before_all)
        return (yield Load("x")), time
    return run


@pytest.mark.parametrize("after_loads, before_all, verdict", [
    (True, True, False), (False, True, True), (True, False, True)])
def test_a_clock_stays_between_loads_only_with_barriers(after_loads, before_all, verdict):
    # Who looks later by the clock than another thread that has seen the store sees it, too.
    threads = [single("x", 1), seeing(after_loads), looking(before_all)]
    assert can_happen(XY, threads, lambda results: results[1][0] == 1 and results[2][0] == 0 and
                      results[1][1] < results[2][1], clocks=2) == verdict


def test_a_thread_sees_its_own_store_before_others_do():
    def storing():
        yield Store("x", 1)
        seen = yield Load("x")
        return seen, (yield Clock())
    assert can_happen(XY, [storing, looking()], lambda results: results[1][0] == 0 and
                      results[0][1] < results[1][1], clocks=2)
