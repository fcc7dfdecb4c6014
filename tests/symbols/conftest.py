# SPDX-License-Identifier: MIT
"""The programs that the symbolizer is tried on, built once for a run."""
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCES = pathlib.Path(__file__).parent / "programs"

# Debian packages: gcc g++ clang llvm rustc.
COMPILERS = {
    "gcc": ["gcc", "nested.c"],
    "clang": ["clang", "nested.c"],
    "g++": ["g++", "-std=c++17", "scopes.cpp"],
    "clang++": ["clang++", "-std=c++17", "scopes.cpp"],
    "rustc": ["rustc", "crate.rs"],
}


def find_tool(name):
    """PATH, then where rustup puts its tools."""
    found = shutil.which(name) or shutil.which(name, path=os.path.expanduser("~/.cargo/bin"))
    assert found, f"these tests need {name}"
    return found


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """build("gcc", "-O2", "-g") -> path of the program; the same words give the same file. In a word,
    {directory} is where it is built and {sources} where its source is."""
    done = {}

    def build_once(compiler, *flags):
        key = (compiler, *flags)
        if key not in done:
            directory = tmp_path_factory.mktemp("build")
            tool, *words = COMPILERS[compiler]
            flags = [flag.format(directory=directory, sources=SOURCES) for flag in flags]
            command = [find_tool(tool), *words[:-1], *flags, "-o", str(directory / "program")]
            command.append(str(SOURCES / words[-1]))
            subprocess.run(command, check=True, cwd=directory)
            done[key] = str(directory / "program")
        return done[key]

    return build_once
