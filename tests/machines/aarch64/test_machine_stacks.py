# SPDX-License-Identifier: MIT
"""At each malloc of real programs on the emulated machine, the stack that was found by its changed part is libgcc's:
in libc and the C of Python, in C++ of gdb and clang, in Rust, and with signed return addresses."""
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ["CAIRN_BUILD"])
WITNESS = BUILD / "tests" / "preload" / "programs" / "stack_witness.so"
SOURCE = "template <class T> T twice(T x) { return x + x; }\nint main() { return twice(3); }\n"

# command, least stacks that are compared
RUNS = {
    "python3": (["/usr/bin/python3", "-c", "import json; json.loads(json.dumps([{'a': i} for i in range(300)]))"], 5_000),
    "gdb": (["/usr/bin/gdb", "-nx", "-batch", "-ex", "info functions mai", BUILD / "programs" / "empty"], 5_000),
    "clang": (["/usr/bin/clang-14", "-cc1", "-O1", "-x", "c++", "-emit-llvm", "-o", "/dev/null", "-"], 1_000),
    "rg": (["/usr/bin/rg", "--no-config", "-c", "e", "/usr/share/doc"], 500),
    "rust_blocks": ([BUILD / "programs" / "rust_blocks"], 5),
    "endure_signing": ([BUILD / "programs" / "machine" / "endure_signing"], 100),
}


@pytest.mark.parametrize("name", RUNS)
def test_stacks_at_allocations_are_those_of_libgcc(tmp_path, name):
    command, least = RUNS[name]
    reported = tmp_path / "told"
    env = dict(os.environ, LD_PRELOAD=str(WITNESS), STACK_WITNESS=str(reported), PYTHONMALLOC="malloc")
    subprocess.run(command, input=SOURCE, env=env, text=True, check=True, stdout=subprocess.DEVNULL, timeout=500)
    lines = [line.split() for line in reported.read_text().splitlines()]
    assert [line for line in lines if line[1] != "0"] == []
    compared, not_comparable = (sum(int(line[i]) for line in lines) for i in (0, 2))
    print(f"{name}: {compared} compared, {not_comparable} not comparable")
    assert compared >= least
    assert not_comparable <= compared / 100
