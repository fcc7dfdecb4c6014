# SPDX-License-Identifier: MIT
"""docs/user/python.md: each file and command of it, in the order of the page; and the pytest plugin of contrib/python,
with budgets that are exceeded in every way."""
import re
import shutil
import xml.etree.ElementTree as ElementTree

import pytest

from cairn_run import ROOT, Recording
from conftest import files_of
from test_production import commands_of

PYTHON = "/usr/bin/python3"
# What tests do to the heap is what they call here.
TESTS = '''
import ctypes, threading, unittest
import pytest
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
cached = []
def first_use():
    if not cached:
        cached.append(libc.malloc(5000))
@pytest.fixture
def block():
    block = libc.malloc(9000)
    yield block
    libc.free(block)
@pytest.mark.cairn(max_peak=0, max_leaked=0, max_allocations=0, max_allocated=0)
def test_nothing(block):
    assert block
@pytest.mark.cairn(max_peak=1000, max_leaked=0, max_allocations=1, max_allocated=1000)
def test_kept():
    libc.free(libc.malloc(1000))
@pytest.mark.cairn(max_peak="0.512kB", max_leaked="1 KiB", max_allocations=1, max_allocated=1023)
def test_all():
    for size in (1000, 1025): libc.malloc(size)
@pytest.mark.cairn(max_leaked=0)
def test_first_use(): first_use()
cached_again = []
@pytest.mark.cairn(max_leaked=0, warmups=1)
@pytest.mark.parametrize("size", [7000])
def test_warm(size):
    if not cached_again: cached_again.append(libc.malloc(size))
@pytest.mark.cairn(max_leaked=2999)
def test_other_thread(): work()
@pytest.mark.cairn(max_leaked=2999, of_process=True)
def test_process(): work()
def work():
    thread = threading.Thread(target=libc.malloc, args=(3000,))
    thread.start()
    thread.join()
@pytest.mark.cairn(max_leaked=0)
def test_fails():
    libc.malloc(100)
    assert False, "of its own"
def test_unmarked(): libc.malloc(100)
@pytest.mark.cairn(max_leaked=0)
class TestClass:
    def test_method(self, block): libc.malloc(10)
set_up = []
@pytest.mark.cairn(max_leaked=4000, warmups=1)
class TestCase(unittest.TestCase):
    def setUp(self):
        if not set_up: set_up.append(libc.malloc(9000))
    def test_case(self): libc.malloc(4001)
    def test_case_kept(self): libc.malloc(10)
    def test_case_fails(self): self.fail("of the case")
'''


@pytest.fixture(name="installed")
def fixture_installed(workshop):
    """The plugin, installed by pip into a folder that Python looks into."""
    shutil.copytree(ROOT / "contrib/python", workshop.folder / "contrib/python")
    workshop.settings.update(PYTHONPATH=str(workshop.folder / "packages"), PYTHONDONTWRITEBYTECODE="1",
                             PIP_TARGET=str(workshop.folder / "packages"), PIP_NO_BUILD_ISOLATION="0", PIP_NO_DEPS="1",
                             PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")
    return workshop


def results_of(junit):
    """{test: (its failure or None, its properties)}"""
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    return {case.get("name"): (getattr(case.find("failure"), "text", None),
                               {entry.get("name"): int(entry.get("value")) for entry in case.iter("property")})
            for case in cases}


def test_exceeded_budgets_fail(installed):
    installed.run(f"{PYTHON} -m pip install -q ./contrib/python")
    installed.write("test_all.py", TESTS)
    command = f"{PYTHON} -m pytest -p no:cacheprovider --junitxml=all.xml test_all.py"
    out = installed.run(f"cairn record -q -o all.cairn -- {command}", status=1)
    assert "cairn: recording" in out
    results = results_of(installed.folder / "all.xml")
    failures = {name: failure for name, (failure, _) in results.items() if failure is not None}
    assert "of its own" in failures.pop("test_fails") and "of the case" in failures.pop("test_case_fails")
    assert re.fullmatch(r"4\d\d\d bytes not freed; at most 4000 allowed", failures.pop("test_case"))
    assert failures == {
        "test_all": "2025 bytes at once; at most 512 allowed\n2025 bytes not freed; at most 1024 allowed\n"
                    "2025 bytes allocated; at most 1023 allowed\n2 allocations; at most 1 allowed",
        "test_first_use": "5000 bytes not freed; at most 0 allowed",
        "test_process": failures["test_process"], "test_method": "10 bytes not freed; at most 0 allowed"}
    left = int(re.fullmatch(r"(\d+) bytes not freed; at most 2999 allowed", failures["test_process"])[1])
    assert 3000 <= left < 6000  # the new thread may keep some blocks of libc
    properties = {name: entries for name, (_, entries) in results.items()}
    assert properties["test_kept"] == {"cairn_peak": 1000, "cairn_leaked": 0, "cairn_allocations": 1, "cairn_allocated": 1000}
    assert properties["test_warm[7000]"]["cairn_leaked"] == 0 and properties["test_unmarked"] == {}
    marks = Recording(installed.folder / "all.cairn", None).report["marks"]
    assert [mark["text"] for mark in marks][:2] == ["test_all.py::test_nothing", "test_all.py::test_kept"]


@pytest.mark.nightly
def test_without_a_recorder(installed):
    installed.write("test_all.py", TESTS)
    command = f"env PYTHONPATH=contrib/python {PYTHON} -m pytest -p pytest_cairn -p no:cacheprovider --deselect test_all.py::test_fails --deselect test_all.py::TestCase::test_case_fails test_all.py"
    out = installed.run(command)
    assert "cairn: not recording, so its budgets are not checked" in out
    out = installed.run(command + " --cairn-required", status=1)
    assert "10 failed, 1 passed" in out and out.count("cairn does not record: run `cairn record -- pytest`") >= 8
    out = installed.run(f"cairn record -q --sample -o s.cairn -- {command} --cairn-required", status=1)
    assert "cairn does not count: it records with --sample, or its recorder has ended" in out
    installed.run(f"cairn record -q --sample -o s.cairn -- {command}")


def test_mistakes_are_told(installed):
    mistakes = {"max_peak='50 MiBs'": "'50 MiBs' is not a size such as 50MiB", "max_leaked=-1": "-1 is not a size",
                "most=1": "unexpected keyword argument 'most'", "max_peak=True": "True is not a size"}
    installed.write("test_wrong.py", "import pytest\n" + "".join(
        f"@pytest.mark.cairn({words})\ndef test_{number}(): pass\n" for number, words in enumerate(mistakes)))
    out = installed.run(f"PYTHONPATH=contrib/python {PYTHON} -m pytest -p pytest_cairn -p no:cacheprovider test_wrong.py", status=1)
    parts = re.split(r"^_+ .*test_\d _+$", out, flags=re.M)
    assert [message in part for message, part in zip(mistakes.values(), parts[1:], strict=True)] == [True] * 4, out


@pytest.mark.nightly
def test_each_file_and_command_of_the_guide_works(installed):
    installed.write("app.py", "print(len([str(number) for number in range(1000)]))\n")
    installed.settings["PATH"] = f"{installed.folder}/bin:{installed.settings['PATH']}"
    (installed.folder / "bin").mkdir()
    for name, command in (("pip", f"{PYTHON} -m pip"), ("python3", PYTHON)):
        (installed.folder / "bin" / name).write_text(f"#!/bin/sh\nexec {command} \"$@\"\n")
        (installed.folder / "bin" / name).chmod(0o755)
    for name, text in files_of("python").items():
        installed.write(name, text)
    page = (ROOT / "docs/user/python.md").read_text()
    printed = {}
    for command in commands_of(page):
        printed.setdefault(command, []).append(
            installed.run(command, status=1 if "record" in command and "tests.cairn" in command and
                          "required" not in command else 0))
    (failure,) = [text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", page, re.M | re.S) if not kind]
    outputs = [text for texts in printed.values() for text in texts]
    assert any(failure in text for text in outputs)
    assert any("1 passed" in text and "cairn: recording" in text for text in outputs)
    assert "load_table" in printed["cairn report --leaks --filter-function load_table tests.cairn"][0]
    assert "app.py:1" in printed["cairn report app.cairn"][0]
