# SPDX-License-Identifier: MIT
"""An installed cairn, as a user of its headers has it, and a folder with the files of a guide."""
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))

from cairn_run import BUILD, ROOT, environment


class Workshop:
    """A folder and a shell, with cairn installed below another one."""

    def __init__(self, folder, prefix):
        self.folder, self.prefix = folder, prefix
        (folder / "home").mkdir()
        self.settings = environment({
            "PATH": f"{prefix}/bin:/usr/bin:/bin", "HOME": str(folder / "home"), "CMAKE_PREFIX_PATH": str(prefix),
            "PKG_CONFIG_PATH": f"{prefix}/share/pkgconfig"})

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def run(self, command, status=0):
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.settings, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
        assert done.returncode == status, (command, done.stdout)
        return done.stdout


def files_of(page):
    """{name: text} of the fences of a guide whose first line is a comment with a name."""
    text = (ROOT / f"docs/user/{page}.md").read_text()
    fences = re.findall(r"^```\w+\n((?://|#) ([\w.]+)\n.*?)^```", text, re.M | re.S)
    return {name: body for body, name in fences}


@pytest.fixture(scope="session", name="prefix")
def fixture_prefix(tmp_path_factory):
    prefix = tmp_path_factory.mktemp("installed") / "cairn"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True, capture_output=True)
    return prefix


@pytest.fixture(name="workshop")
def fixture_workshop(tmp_path, prefix):
    return Workshop(tmp_path, prefix)
