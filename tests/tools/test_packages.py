# SPDX-License-Identifier: MIT
"""contrib/packages: the version is that of the project, and each installed file is in the RPM. What needs the tools of other
systems is in test_foreign_packages.py."""
import fnmatch
import os
import pathlib
import re
import subprocess

import pytest

from test_docs import ROOT

BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
PACKAGES = ROOT / "contrib/packages"
MACROS = {"%{_bindir}": "/usr/bin", "%{_prefix}": "/usr", "%{_includedir}": "/usr/include", "%{_datadir}": "/usr/share",
          "%{_mandir}": "/usr/share/man", "%{_docdir}": "/usr/share/doc", "%{buildroot}": ""}
VERSION = re.search(r"project\(cairn VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


@pytest.mark.parametrize("name", ["cairn.spec", "PKGBUILD", "cairn.nix", "cairn.rb"])
def test_the_version_is_that_of_the_project(name):
    text = (PACKAGES / name).read_text()
    assert set(re.findall(r"\d+\.\d+\.\d+(?=\.tar|-1$|\"?;?$)", text, re.M)) == {VERSION}


def expanded(line):
    for macro, value in MACROS.items():
        line = line.replace(macro, value)
    return line


def test_the_rpm_has_each_installed_file(tmp_path):
    subprocess.run(["cmake", "--install", BUILD, "--prefix", tmp_path / "usr"], check=True, capture_output=True)
    spec = (PACKAGES / "cairn.spec").read_text()
    install, files = (spec.partition(f"\n%{section}\n")[2] for section in ("install", "files"))
    removed = [expanded(word) for line in re.findall(r"^rm (?:-r )?(.*)$", install, re.M) for word in line.split()]
    listed = [expanded(line.split()[-1]) for line in files.partition("\n%changelog")[0].splitlines() if line[:1] == "%"]
    installed = ["/" + str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()]
    assert len(installed) > 20
    for path in installed:
        assert any(fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/") for pattern in listed + removed), path
    for pattern in listed + removed:
        if pattern != "LICENSE":
            assert any(fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/") for path in installed), pattern


def test_the_table_has_each_package():
    page = (ROOT / "docs/packages.md").read_text()
    for path in pathlib.Path(PACKAGES).iterdir():
        assert path.name == "rpmlint.toml" or f"`contrib/packages/{path.name}`" in page
