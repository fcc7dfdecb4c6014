# SPDX-License-Identifier: MIT
"""pytest_cairn: budgets of memory for tests of extensions and libraries in C, C++ or Rust.

    @pytest.mark.cairn(max_peak="50MiB", max_leaked=0)
    def test_load():
        extension.load("large.csv")

    cairn record -- pytest

It asks the recorder of cairn, which counts every call of malloc, through the table that include/cairn.h
describes. The budget is for the call of the test function; fixtures are not counted. Python's garbage is
collected before and after. Tests of unittest's classes count with their setUp and tearDown. Without a
recorder the marks do nothing, unless --cairn-required is given.

Plain Python: it uses ctypes, and needs no other package than pytest.
"""
import ctypes
import gc
import re
import unittest

import pytest

# As the command line of cairn has them.
UNITS = {"": 1, "B": 1, "k": 1 << 10, "K": 1 << 10, "KiB": 1 << 10, "kB": 1000, "KB": 1000, "M": 1 << 20, "MiB": 1 << 20,
         "MB": 10**6, "G": 1 << 30, "GiB": 1 << 30, "GB": 10**9, "T": 1 << 40, "TiB": 1 << 40}
PROCESS, THREAD = 0, 1
PHASE = 3


class Stats(ctypes.Structure):
    """struct cairn_stats."""
    _fields_ = [("allocations", ctypes.c_uint64), ("allocated_bytes", ctypes.c_uint64), ("frees", ctypes.c_uint64),
                ("freed_bytes", ctypes.c_uint64), ("temporary", ctypes.c_uint64), ("live_blocks", ctypes.c_int64),
                ("live_bytes", ctypes.c_int64)]


class Peak(ctypes.Structure):
    """struct cairn_peak."""
    _fields_ = [("scope", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class Api(ctypes.Structure):
    """struct cairn_api, version 1."""
    _fields_ = [("version", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
                ("report_alloc", ctypes.c_void_p), ("report_realloc", ctypes.c_void_p),
                ("report_free", ctypes.c_void_p),
                ("mark", ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint32)),
                ("pool_alloc", ctypes.c_void_p), ("pool_realloc", ctypes.c_void_p), ("event", ctypes.c_void_p),
                ("stats", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(Stats))),
                ("peak_begin", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Peak))),
                ("peak_end", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Peak), ctypes.POINTER(ctypes.c_uint64)))]


def find_api():
    """The recorder's functions, or None."""
    try:
        api = Api.in_dll(ctypes.CDLL(None), "cairn_api_v1")
    except ValueError:
        return None
    return api if api.version == 1 and api.bytes >= ctypes.sizeof(Api) else None


def size_of(value):
    """Bytes of 0, 4096 or "50MiB"."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([A-Za-z]*)", value) if isinstance(value, str) else None
    if match is None or match[2] not in UNITS:
        raise pytest.UsageError(f"cairn: {value!r} is not a size such as 50MiB")
    return int(float(match[1]) * UNITS[match[2]] + 0.5)


class Budget:
    """The limits of a mark; None: no limit."""

    def __init__(self, max_peak=None, max_leaked=None, max_allocations=None, max_allocated=None, warmups=0,
                 of_process=False):
        self.peak, self.leaked, self.allocated = (
            None if value is None else size_of(value) for value in (max_peak, max_leaked, max_allocated))
        self.allocations = max_allocations
        self.warmups, self.whose = warmups, PROCESS if of_process else THREAD


class Measurement:
    """What a piece of work costs. All that Python needs for it is made before it begins."""

    def __init__(self, api, whose):
        self.stats, self.peak_begin, self.peak_end, self.whose = api.stats, api.peak_begin, api.peak_end, whose
        self.before, self.after, self.mark, self.bytes = Stats(), Stats(), Peak(), ctypes.c_uint64()
        self.is_followed, self.is_counted = 0, 0
        self.places = [ctypes.byref(one) for one in (self.before, self.after, self.mark, self.bytes)]

    def begin(self):
        gc.collect()
        self.is_followed = self.peak_begin(self.places[2])
        self.is_counted = self.stats(self.whose, self.places[0])

    def end(self):
        gc.collect()
        self.is_counted = self.stats(self.whose, self.places[1]) and self.is_counted
        self.is_followed = self.peak_end(self.places[2], self.places[3]) and self.is_followed

    def figures(self):
        """{name: value}; empty if the recorder has died, or records with --sample."""
        found = {"peak": self.bytes.value} if self.is_followed else {}
        if self.is_counted:
            found["leaked"] = self.after.live_bytes - self.before.live_bytes
            found["allocations"] = self.after.allocations - self.before.allocations
            found["allocated"] = self.after.allocated_bytes - self.before.allocated_bytes
        return found


def exceeded(budget, figures):
    """A line for each limit that was exceeded."""
    for name, unit, which in (("peak", "byte", " at once"), ("leaked", "byte", " not freed"),
                              ("allocated", "byte", " allocated"), ("allocations", "allocation", "")):
        most, found = getattr(budget, name), figures.get(name, 0)
        if most is not None and found > most:
            yield f"{found} {unit}{'' if found == 1 else 's'}{which}; at most {most} allowed"


def pytest_addoption(parser):
    parser.getgroup("cairn").addoption("--cairn-required", action="store_true",
                                       help="fail tests with the mark `cairn` if nothing records")


def pytest_configure(config):
    config.addinivalue_line("markers", "cairn(max_peak, max_leaked, max_allocations, max_allocated, warmups, of_process): "
                            "budget of the test's memory, counted by cairn")


def pytest_report_header():
    return "cairn: recording" if find_api() else "cairn: not recording, so its budgets are not checked"


def budget_of(mark):
    try:
        return Budget(*mark.args, **mark.kwargs)
    except TypeError as error:
        raise pytest.UsageError(f"cairn: {error}") from None


def fail(outcome, message):
    """Make the test fail. Older versions of pluggy have an exception raised in its place."""
    failure = pytest.fail.Exception(message, pytrace=False)
    if not hasattr(outcome, "force_exception"):
        raise failure
    outcome.force_exception(failure)


def measured(item, warm_up):
    """Judge the budget of what runs at the yield. warm_up() calls the test once."""
    mark = item.get_closest_marker("cairn")
    if mark is None:
        yield
        return
    budget, api, is_required = budget_of(mark), find_api(), item.config.getoption("--cairn-required")
    if api is None:
        outcome = yield
        if is_required:
            fail(outcome, "cairn does not record: run `cairn record -- pytest`")
        return
    for _ in range(budget.warmups):
        warm_up()
    api.mark(item.nodeid.encode(), PHASE)
    measurement = Measurement(api, budget.whose)
    measurement.begin()
    outcome = yield
    measurement.end()
    figures = measurement.figures()
    item.user_properties += [(f"cairn_{name}", value) for name, value in figures.items()]
    if outcome.excinfo is not None:
        return
    if not figures and is_required:
        fail(outcome, "cairn does not count: it records with --sample, or its recorder has ended")
    lines = list(exceeded(budget, figures))
    if lines:
        fail(outcome, "\n".join(lines))


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """A test function."""
    words = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    yield from measured(pyfuncitem, lambda: pyfuncitem.obj(**words))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """A test of a unittest.TestCase, for which pytest makes no such call."""
    if isinstance(getattr(item, "parent", None), pytest.Class) and issubclass(item.parent.obj, unittest.TestCase):
        yield from measured(item, lambda: item.parent.obj(item.name).run(unittest.TestResult()))
    else:
        yield
