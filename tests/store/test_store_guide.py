# SPDX-License-Identifier: MIT
"""docs/user/store.md and budgets.md: each command of them runs.

Recordings, programs and the server are those of the test; all else is as it is printed."""
import pathlib
import re
import shlex
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, environment
from drawn import draw_to
from sql_server import serve
from test_production import commands_of

STORE = (ROOT / "docs/user/store.md").read_text()
BUDGETS = (ROOT / "docs/user/budgets.md").read_text()
WORDS = {"OLD": "1.4.1", "NEW": "1.4.2", "FUNCTION": "call", "SELECT ...": "SELECT count(*) AS n FROM rows"}


def in_tables(text):
    """The commands in the cells of tables."""
    return re.findall(r"\| `(cairn [^`]+)` \|", text)


def run(command, folder, more=None, status=0):
    """Run a line in a shell; give what it printed."""
    settings = environment({"PATH": f"{CAIRN.parent}:/usr/bin:/bin", "HOME": str(folder), "XDG_DATA_HOME": "", **(more or {})})
    done = subprocess.run(command, shell=True, cwd=folder, env=settings, capture_output=True, text=True, check=False,
                          timeout=120)
    assert done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout


def show(command, folder, more=None):
    """Run `cairn analyze --store` until it has said its address."""
    settings = environment({"HOME": str(folder), "XDG_DATA_HOME": "", **(more or {})})
    words = [CAIRN, *shlex.split(command)[1:], "--no-browser"]
    server = subprocess.Popen(words, cwd=folder, env=settings, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout.readline().strip().endswith("#/store")
    server.terminate()
    assert server.wait(60) == 0
    server.stdout.close()


def run_server(command, folder):
    """Run `cairn store serve` until it says its address; the port of the guide may be taken."""
    words = [CAIRN, *shlex.split(command)[1:], "--listen", "127.0.0.1:0"]
    server = subprocess.Popen(words, cwd=folder, env=environment({"HOME": str(folder), "XDG_DATA_HOME": ""}),
                              stderr=subprocess.PIPE, text=True)
    assert server.stderr.readline().startswith("cairn: serving the store at 127.0.0.1:")
    server.terminate()
    assert server.wait(60) == 0
    server.stderr.close()
    assert all((folder / f"{role}.token").exists() for role in ("read", "add", "admin"))


@pytest.fixture(name="folder")
def fixture_folder(tmp_path):
    """Two versions; the newer one is not in the store yet."""
    drawing = "main;call {0} 64 0 0 0 0 1 64 64\n"
    draw_to(tmp_path / "old.cairn", drawing.format(1))
    run("cairn store add old.cairn --service web --version 1.4.1", tmp_path)
    (tmp_path / "old.cairn").rename(tmp_path / "old.kept")
    draw_to(tmp_path / "new.cairn", drawing.format(9))
    return tmp_path


def test_each_command_of_the_guide_of_stores_runs(folder):
    commands = [line for line in commands_of(STORE) if line.startswith(("cairn", "export"))]
    serving = commands.pop(next(i for i, line in enumerate(commands) if "store serve" in line))
    run_server(serving, folder)  # test_store_serve.py sends what its clients send
    printing = commands.pop()  # test_clickhouse.py carries out what it prints
    assert printing == "cairn store schema --cluster NAME | clickhouse-client --multiquery"
    assert "Distributed('NAME'" in run(printing.partition(" |")[0], folder)
    login, own = "CAIRN_STORE_LOGIN=USER:PASSWORD", [line for line in commands if "HOST:8443" not in line]
    assert len(commands) == 10 and commands[-2].endswith(login) and own[-1] == "cairn store add *.cairn"
    assert all("prune" in command for command in own[-3:-1])
    for command in [*own[:-3], *in_tables(STORE), *own[-3:-1]]:
        for word, ours in WORDS.items():
            command = re.sub(rf"\b{re.escape(word)}", ours, command)
        if "analyze" in command:
            show(command, folder)
        else:
            assert run(command, folder) != ""
    assert (folder / ".local/share/cairn/store.db").exists()  # as the guide says


def test_its_commands_for_a_server_run(folder):
    lines = commands_of(STORE)
    at = next(i for i, line in enumerate(lines) if line.startswith("export"))
    with serve() as server:
        place = f"http://127.0.0.1:{server.server_port}/cairn"
        exported = lines[at].replace("https://HOST:8443/cairn", place).replace("USER:PASSWORD", "me:pass")
        more = dict(word.split("=", 1) for word in exported.split()[1:])
        assert set(more) == {"CAIRN_STORE", "CAIRN_STORE_LOGIN"}
        assert run(lines[at + 1], folder, more) == "1 added\n"
        for line in lines:
            if line.startswith("cairn analyze --store=https"):
                show(line.replace("https://HOST:8443/cairn", place), folder, more)


def test_each_command_of_the_guide_of_budgets_runs(tmp_path):
    """Its program is one that keeps within generous budgets and breaks those of zero."""
    commands = [line for line in commands_of(BUDGETS) if line.startswith("cairn ")]
    assert len(commands) >= 4
    app = tmp_path / "app"
    app.write_text(f"#!/bin/sh\nexec {PROGRAMS / 'sampled'}\n")
    app.chmod(0o755)
    # Without tests to run there is nothing to judge; cli.check judges a budget of a Python function.
    for command in (command for command in commands if "-m pytest" not in command):
        broken = 1 if "--max-leaked 0" in command else 0
        run(command, tmp_path, status=broken)
    settings = "\n".join(commands_of(BUDGETS)).split("# comments")[1]
    settings = settings.split("cairn ")[0]
    pathlib.Path(tmp_path / "cairn.toml").write_text(settings, encoding="utf-8")
    assert re.search(r"[1-8] of 8 budgets broken", run("cairn check -- ./app", tmp_path, status=1))
