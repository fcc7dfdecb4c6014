# SPDX-License-Identifier: MIT
"""A plugin of pytest, for the coverage map of tools/mutate.py: gives each test case, and each fixture
that several cases share, a folder of its own for the blocks that its processes run, and writes which
case took how long and used which fixtures."""
import json
import os
import pathlib
import subprocess
import time

import pytest

VARIABLE = "CAIRN_TRACE_DIR"
HERE = pathlib.Path(os.environ[VARIABLE])
CASES = {}
FIXTURES = {}  # by key: folder, seconds
_popen = subprocess.Popen.__init__


def popen(self, *words, env=None, **named):
    """Start a process in the case's folder, also one that gets an environment of its own."""
    if env is not None:
        env = {**env, VARIABLE: os.environ[VARIABLE]}
    _popen(self, *words, env=env, **named)


subprocess.Popen.__init__ = popen


def enter(name):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    os.environ[VARIABLE] = str(folder)


def key_of(definition):
    return f"{definition.baseid}::{definition.argname}"


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef):
    """Runs a fixture of a module or a session in its own folder."""
    if fixturedef.scope == "function":
        yield
        return
    before, begin = os.environ[VARIABLE], time.monotonic()
    entry = FIXTURES.setdefault(key_of(fixturedef), {"folder": f"fixture.{len(FIXTURES)}", "seconds": 0})
    enter(entry["folder"])
    yield
    entry["seconds"] += time.monotonic() - begin
    os.environ[VARIABLE] = before


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Runs a case in its own folder."""
    definitions = [each[-1] for each in item._fixtureinfo.name2fixturedefs.values()]
    case = CASES[item.nodeid] = {"folder": f"case.{len(CASES)}", "fixtures": [
        key_of(each) for each in definitions if each.scope != "function"]}
    begin, before = time.monotonic(), sum(each["seconds"] for each in FIXTURES.values())
    enter(case["folder"])
    yield
    shared_s = sum(each["seconds"] for each in FIXTURES.values()) - before
    case["seconds"] = time.monotonic() - begin - shared_s
    os.environ[VARIABLE] = str(HERE)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_logreport(report):
    if report.failed:
        CASES[report.nodeid]["failed"] = True
    yield


def pytest_sessionfinish():
    (HERE / "cases.json").write_text(json.dumps({"cases": CASES, "fixtures": FIXTURES}), encoding="utf-8")
