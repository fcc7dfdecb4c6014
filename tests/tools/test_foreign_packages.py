# SPDX-License-Identifier: MIT
"""contrib/packages by the tools of other systems, as Debian has them (make test-packages): each file is read by its own
tool, and the RPM is built, checked and unpacked; the cairn in it records."""
import os
import pathlib
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "contrib/packages"
NOBODY = 65534


def run(*words, **settings):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, timeout=1800, **settings)
    assert done.returncode == 0, (done.stdout[-4000:], done.stderr[-4000:])
    return done.stdout


def test_nix_reads_the_expression():
    assert "cairn" in run("nix-instantiate", "--parse", PACKAGES / "cairn.nix")


def test_ruby_reads_the_formula():
    assert run("ruby", "-wc", PACKAGES / "cairn.rb") == "Syntax OK\n"


def test_makepkg_reads_the_file():
    """It refuses to run as root."""
    as_nobody = ["setpriv", f"--reuid={NOBODY}", "--clear-groups"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        (pathlib.Path(folder) / "PKGBUILD").write_text((PACKAGES / "PKGBUILD").read_text())
        os.chown(folder, NOBODY if as_nobody else os.getuid(), -1)
        out = run(*as_nobody, "makepkg", "--printsrcinfo", cwd=folder, env={**os.environ, "HOME": folder})
    assert "pkgbase = cairn" in out and "makedepends = cmake" in out


def test_rpmlint_finds_nothing_in_the_spec():
    out = run("rpmlint", "-c", PACKAGES / "rpmlint.toml", PACKAGES / "cairn.spec")
    assert "0 errors, 0 warnings" in out, out


@pytest.mark.parametrize("jobs", [os.cpu_count()])
def test_the_rpm_is_built_and_records(tmp_path, jobs):
    """--nodeps: the packages that it needs are Debian's here. %check runs `cairn self-test`."""
    (tmp_path / "SOURCES").mkdir()
    run("git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "archive", "--prefix=cairn-1.0.0/", "-o",
        tmp_path / "SOURCES/cairn-1.0.0.tar.gz", "HEAD")
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {tmp_path}", "--define", f"_smp_mflags -j{jobs}",
        PACKAGES / "cairn.spec")
    (package,) = tmp_path.rglob("*.rpm")
    out = run("rpmlint", "-c", PACKAGES / "rpmlint.toml", package)
    assert "0 errors, 0 warnings" in out, out
    (tmp_path / "root").mkdir()
    run("bsdtar", "-x", "-f", package, "-C", tmp_path / "root")
    cairn = tmp_path / "root/usr/bin/cairn"
    assert run(cairn, "self-test").endswith("\n6 of 6 ways work\n")
    run(cairn, "record", "-q", "-o", tmp_path / "ls.cairn", "ls", "/")
    assert "peak heap" in run(cairn, "report", tmp_path / "ls.cairn")
