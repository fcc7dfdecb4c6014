# SPDX-License-Identifier: MIT
"""Memory ends while cairn makes an answer (failing_growth.c): it says so in one sentence and with status 2, or
the answer is whole. A server answers 500, and goes on."""
import pytest

from drawn import BUILD, cairn
from heap_model import random_heap

LIBRARY = BUILD / "tests" / "cli" / "failing_growth.so"
SENTENCE = b"not enough memory"
POINTS = 7  # of each command

ANSWERS = [
    ("report",), ("report", "--all"), ("report", "--json"), ("report", "--csv"), ("report", "--functions"),
    ("report", "--tree", "top-down"), ("report", "--group-by", "function"), ("report", "--histogram"), ("diff",),
    ("diff", "--json"), ("check", "--max-peak", "1TiB"), ("dump",), ("dump", "--table", "strings"), ("verify",),
    *(("export", "--to", name) for name in (
        "callgrind", "csv", "dhat", "folded", "heaptrack", "json", "massif", "perfetto", "pprof", "prometheus",
        "sarif", "speedscope", "sqlite", "svg"))]

IMPORTS = ["dhat", "heaptrack", "massif", "pprof"]


@pytest.fixture(scope="module", name="files")
def fixture_files(draw_once):
    return draw_once(random_heap(31).draw()), draw_once(random_heap(32).draw())


def failing(command, files, number, tmp_path):
    output = tmp_path / "output.gz"
    output.unlink(missing_ok=True)
    where = ("-o", output) if command[0] == "export" else ()
    paths = files if command[0] == "diff" else files[:1]
    run = cairn(*command, *where, *paths, more={
        "LD_PRELOAD": str(LIBRARY), "FAILING_FROM": str(number), "FAILING_COUNT": str(tmp_path / "count")})
    return run, output.read_bytes() if output.exists() else run.stdout


def check_each_point(command, files, tmp_path):
    whole, text = failing(command, files, 0, tmp_path)
    assert whole.returncode in (0, 1), whole.stderr
    count = int((tmp_path / "count").read_text())
    assert count >= POINTS
    ended = 0
    for point in range(POINTS):
        number = 1 + point * (count - 1) // (POINTS - 1)
        run, found = failing(command, files, number, tmp_path)
        if run.returncode == 2:
            ended += 1
            said = [line for line in run.stderr.splitlines() if SENTENCE in line]
            assert len(said) == 1 and said[0].startswith(b"cairn: "), (number, run.stderr)
            assert command[0] != "export" or not (tmp_path / "output.gz").exists()
        else:
            assert (run.returncode, found) == (whole.returncode, text), (number, run.stderr)
    assert ended > 0


@pytest.mark.parametrize("command", ANSWERS, ids="_".join)
def test_an_answer_says_that_memory_ended_or_is_whole(files, tmp_path, command):
    check_each_point(command, files, tmp_path)


@pytest.mark.parametrize("name", IMPORTS)
def test_an_import_says_that_memory_ended_or_is_whole(files, tmp_path, name):
    foreign = tmp_path / "foreign.gz"
    assert cairn("export", "--to", name, "-o", foreign, files[0]).returncode == 0
    check_each_point(("report",), [foreign], tmp_path)
