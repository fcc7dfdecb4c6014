# SPDX-License-Identifier: MIT
"""Code that is generated at run time gets the names that JIT compilers write for perf: node's in
both forms, and .NET's and python 3.12's, which the test writes."""
import glob
import os
import time

import pytest

from cairn_run import BUILD, PROGRAMS, Recording
from test_attach import Attachable
from test_namespaces import WAYS, is_allowed
from waiting import wait_until

GENERATED = PROGRAMS / "generated"
NAMES = ["int32 [app] App.Program::Work(int32)[Tier0]", "py::work:/srv/app.py"]
SCRIPT = """
const {Worker, isMainThread} = require('worker_threads');
function makeBuffers(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum += Buffer.allocUnsafeSlow(70000 + i % 7).length;
  return sum;
}
function hot() { let sum = 0; for (let i = 0; i < 100; i++) sum += makeBuffers(20); return sum; }
if (isMainThread) { new Worker(__filename); new Worker(__filename); }
hot();
"""


@pytest.fixture(autouse=True)
def no_maps_stay(scratch):
    """Of the recorded processes: those of a second run beside this one are still wanted."""
    yield
    for path in scratch.glob("*.cairn"):
        for process in Recording(path, None, stacks_max=1).report["processes"]:
            for name in glob.glob(f"/tmp/perf-{process['pid']}.map*"):
                os.unlink(name)


def jit_functions(recording):
    """{name: allocations inside} of all code in the module of JIT code; each name once."""
    functions = [entry for entry in recording.report_json("--functions")["functions"]["functions"]
                 if entry["module"] == "[jit]"]
    assert len({entry["function"] for entry in functions}) == len(functions)
    return {entry["function"]: entry["inclusive"]["allocations"] for entry in functions}


def bare_addresses(recording):
    return [entry["function"] for entry in recording.report_json("--functions")["functions"]["functions"]
            if entry["module"] == "" and entry["function"].startswith("0x")]


@pytest.mark.parametrize("way", ["", pytest.param("late", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", NAMES)
def test_generated_code_is_called_as_its_map_says(record, name, way):
    recording = record(GENERATED, name, "5", *([way] if way else []), is_compared=False)
    assert jit_functions(recording) == {name: 5}
    assert bare_addresses(recording) == []


def test_code_of_one_name_is_one_function_in_all_processes(record):
    recording = record("/bin/sh", "-c", f"{GENERATED} both 5; {GENERATED} both 7 late; {GENERATED} other 1",
                       is_compared=False)
    assert jit_functions(recording) == {"both": 12, "other": 1}


@pytest.mark.parametrize("way", ["link", "old"])
def test_maps_that_may_be_others_are_not_believed(record, way):
    recording = record(GENERATED, "hostile", "5", way, is_compared=False)
    assert jit_functions(recording) == {}
    assert len(bare_addresses(recording)) == 1


class Serving(Attachable):
    """A program that obeys nobody."""

    def __enter__(self):
        return self


def test_a_process_may_have_written_its_map_long_before_it_is_recorded(scratch):
    with Serving(scratch, [GENERATED, "steady", "5", "serves"]) as program:
        path = f"/tmp/perf-{program.process.pid}.map"
        wait_until(lambda: os.path.exists(path) and os.path.getsize(path) > 0, "the map")
        written = os.path.getmtime(path)
        wait_until(lambda: time.time() > written + 3, "a map that is older than the recorder")
        program.attach()
        wait_until(lambda: program.status()["allocations"] > 0, "the program's blocks")
        recording = program.detach()
    assert list(jit_functions(recording)) == ["steady"]
    assert bare_addresses(recording) == []


@pytest.mark.parametrize("option", ["--perf-basic-prof", pytest.param("--perf-prof", marks=pytest.mark.nightly)])
def test_functions_of_node_have_their_names(record, scratch, monkeypatch, option):
    monkeypatch.chdir(scratch)
    script = scratch / "buffers.js"
    script.write_text(SCRIPT)
    recording = record("/usr/bin/node", option, script, is_compared=False, stacks_max=1)
    functions = jit_functions(recording)
    assert any("hot" in name for name in functions), functions
    made = sum(count for name, count in functions.items() if "makeBuffers" in name)
    assert made > 1000, functions


# In its own /tmp and pid namespace, as in a container. The build may be below /tmp: it is mounted
# there again.
INSIDE = ["/bin/sh", "-c",
          f'exec 9<"{BUILD}" && mount -t tmpfs none /tmp && mkdir -p "{BUILD}" &&'
          f' mount --no-canonicalize --bind /proc/self/fd/9 "{BUILD}" && exec 9<&- && "$@"', "sh"]


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_maps_are_found_below_the_root_of_a_container(record, way):
    command = [*WAYS[way][:1], "--mount", *WAYS[way][1:], *INSIDE] if way != "same" else []
    # Enough blocks to wait for the recorder, which inspects the process meanwhile.
    recording = record(*command, GENERATED, "inside", "600000", "keep", is_compared=False)
    assert jit_functions(recording) == {"inside": 600000}
