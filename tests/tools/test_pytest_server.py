# SPDX-License-Identifier: MIT
"""tests/pytest_server.py and its client: the tests run as if the client was pytest, with and without a server."""
import os
import pathlib
import signal
import subprocess
import sys
import time
import uuid

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
CLIENT = pathlib.Path(os.environ["CAIRN_BUILD"]) / "tests" / "test_entry"
DEADLINE_S = 60
CASES = """
import os, signal, sys, time
def test_surroundings():
    assert (os.environ["COLOUR"], os.getcwd(), sys.stdin.read()) == ("blue", os.environ["FOLDER"], "given")
    assert "OTHER" not in os.environ and signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL
def test_that_fails():
    assert os.environ["COLOUR"] == "red"
def test_that_computes():
    assert "CAIRN_ENTRY_TIMES" not in os.environ
    while time.process_time() < 0.1: pass
    if os.fork() == 0:
        while time.process_time() < 0.2: pass
        os._exit(0)
    os.wait()
def test_without_end():
    print("begun", os.getpid(), file=sys.__stderr__, flush=True)
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def name():
    """The name of a server that answers."""
    chosen = f"test-{uuid.uuid4()}"
    environment = {**os.environ, "OTHER": "of the server"}
    with subprocess.Popen([sys.executable, "-B", TESTS / "pytest_server.py", chosen], env=environment) as server:
        end = time.monotonic() + DEADLINE_S
        while f"@{chosen}" not in pathlib.Path("/proc/net/unix").read_text(encoding="ascii"):
            assert time.monotonic() < end
        yield chosen
        server.terminate()


def start(name, folder, case, **settings):
    (folder / "test_cases.py").write_text(CASES)
    environment = {**os.environ, "CAIRN_PYTEST_SERVER": name, "COLOUR": "blue", "FOLDER": str(folder)}
    environment.pop("OTHER", None)
    return subprocess.Popen([CLIENT, "check.itself", sys.executable, "-B", "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider",
                             "--rootdir", folder, "test_cases.py", "-k", case], cwd=folder, env=environment,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **settings)


def assert_run(process, status):
    said, _ = process.communicate("given", timeout=DEADLINE_S)
    assert process.returncode == status, said
    assert ("1 passed" in said, "1 failed" in said) == (status == 0, status == 1)


@pytest.mark.parametrize("case, status", [("surroundings", 0), ("that_fails", 1), ("of_no_name", 5)])
def test_streams_words_and_status_are_the_clients(name, tmp_path, case, status):
    assert_run(start(name, tmp_path, case), status)


@pytest.mark.parametrize("served", [True, False])
def test_the_processor_time_is_noted(name, tmp_path, monkeypatch, served):
    times = tmp_path / "times"
    monkeypatch.setenv("CAIRN_ENTRY_TIMES", str(times))
    assert_run(start(name if served else "of-no-server", tmp_path, "computes"), 0)
    word, user, system = times.read_text().split()
    assert word == "check.itself" and 0.3 <= float(user) + float(system)


def test_without_a_server_the_command_is_executed(tmp_path):
    assert_run(start("of-no-server", tmp_path, "surroundings"), 0)


def test_the_tests_end_with_the_client(name, tmp_path):
    process = start(name, tmp_path, "without_end", stderr=subprocess.PIPE)
    word, pid = process.stderr.readline().split()
    assert word == "begun"
    process.kill()
    assert process.wait(DEADLINE_S) == -signal.SIGKILL
    process.stdout.read()  # the tests have it as well: it ends when they do
    end = time.monotonic() + DEADLINE_S
    while pathlib.Path("/proc", pid).exists():  # the keeper may have to reap them
        assert time.monotonic() < end
