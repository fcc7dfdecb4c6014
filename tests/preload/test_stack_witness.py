# SPDX-License-Identifier: MIT
"""At each malloc of real programs, the stack that was found by its changed part is libunwind's."""
import os
import subprocess

import pytest

from consumer import PROGRAMS

IS_NIGHTLY = bool(os.environ.get("CAIRN_NIGHTLY"))
# Regular expressions are two thirds of the compiler's work.
SOURCE = ("#include <regex>\nstd::regex r(\"a+b\");" if IS_NIGHTLY else "") + """
#include <iostream>
#include <map>
#include <string>
#include <vector>
int main() { std::map<std::string, std::vector<int>> m; std::cout << m.size(); }
"""
JSON = "import json\nfor i in range(3): json.loads(json.dumps([{'a': j} for j in range(20000)]))"
ROWS = ("with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000) "
        "select count(distinct x * 7) from c")

# program -> command, least stacks that are compared; node's all go through code without tables
RUNS = {
    "cc1plus": (["g++", "-O1", "-x", "c++", "-c", "-o", "/dev/null", "-"], 500_000 if IS_NIGHTLY else 100_000),
    "python3": (["/usr/bin/python3", "-c", JSON], 500_000),
    "sqlite3": (["sqlite3", ":memory:", ROWS], 100_000),
    "rg": (["/usr/bin/rg", "--no-config", "-c", "e", "/usr/include/linux"], 5_000),
}


@pytest.mark.parametrize("name", RUNS)
def test_stacks_at_allocations_are_those_of_libunwind(tmp_path, name):
    command, least = RUNS[name]
    reported = tmp_path / "told"
    env = dict(os.environ, LD_PRELOAD=os.path.join(PROGRAMS, "stack_witness.so"),
               STACK_WITNESS=str(reported), PYTHONMALLOC="malloc")
    subprocess.run(command, input=SOURCE, env=env, text=True, check=True, stdout=subprocess.DEVNULL,
                   timeout=500)
    lines = [line.split() for line in reported.read_text().splitlines()]
    assert [line for line in lines if line[1] != "0"] == []
    compared, not_comparable = (sum(int(line[i]) for line in lines) for i in (0, 2))
    assert compared >= least
    assert not_comparable <= compared / 100
