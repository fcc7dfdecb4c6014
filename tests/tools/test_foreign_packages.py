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


def test_shellcheck_finds_nothing_in_the_file_of_arch():
    """makepkg reads and sets variables that are unused here."""
    assert run("shellcheck", "--shell=bash", "--exclude=SC2034,SC2154,SC2164", PACKAGES / "PKGBUILD") == ""


def test_rpmlint_finds_nothing_in_the_spec():
    out = run("rpmlint", "-c", PACKAGES / "rpmlint.toml", PACKAGES / "cairn.spec")
    assert "0 errors, 0 warnings" in out, out


@pytest.fixture(scope="module", name="rpm")
def fixture_rpm(tmp_path_factory):
    """--nodeps: the packages that it needs are Debian's here. %check runs `cairn self-test`."""
    top = tmp_path_factory.mktemp("rpm")
    (top / "SOURCES").mkdir()
    run("git", "-c", f"safe.directory={ROOT}", "-C", ROOT, "archive", "--prefix=cairn-1.0.0/", "-o",
        top / "SOURCES/cairn-1.0.0.tar.gz", "HEAD")
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {top}", "--define", f"_smp_mflags -j{os.cpu_count()}",
        PACKAGES / "cairn.spec")
    (package,) = top.rglob("*.rpm")
    return package


def test_rpmlint_finds_nothing_in_the_rpm(rpm):
    out = run("rpmlint", "-c", PACKAGES / "rpmlint.toml", rpm)
    assert "0 errors, 0 warnings" in out, out


def test_the_unpacked_rpm_records(rpm, tmp_path):
    run("bsdtar", "-x", "-f", rpm, "-C", tmp_path)
    cairn = tmp_path / "usr/bin/cairn"
    assert run(cairn, "self-test").endswith("\n6 of 6 ways work\n")
    run(cairn, "record", "-q", "-o", tmp_path / "ls.cairn", "ls", "/")
    assert "peak heap" in run(cairn, "report", tmp_path / "ls.cairn")


def within(root, *words):
    """Run in a root file system, which has its own mounts and processes."""
    script = ('mkdir -p "$0/dev/shm" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && '
              'exec chroot "$0" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"')
    return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, root, *words)


def files_in(root):
    """Without folders that other packages of a system with RPM own."""
    paths = {path.relative_to(root) for path in root.rglob("*") if "cairn" in path.name or not path.is_dir()}
    return {path for path in paths if path.parts[0] in ("usr", "etc", "opt")}


def test_rpm_installs_and_removes_it_in_a_minimal_system(rpm, tmp_path):
    """A system of Debian's packages, as no other is reachable, and Debian's rpm from outside; needs root."""
    root = tmp_path / "system"
    run("mmdebstrap", "--quiet", "--variant=minbase", "--include=libzydis4.0,libmicrohttpd12", "bookworm", root)
    run("rpm", "--root", root, "--initdb")
    before = files_in(root)
    run("rpm", "--root", root, "--install", "--nodeps", rpm)
    assert run("rpm", "--root", root, "--verify", "--nodeps", "cairn") == ""
    assert {pathlib.Path("usr/share/man/man1/cairn.1.gz"), pathlib.Path("usr/share/man/man3/cairn.h.3.gz"),
            pathlib.Path("usr/share/bash-completion/completions/cairn"), pathlib.Path("usr/share/zsh/site-functions/_cairn"),
            pathlib.Path("usr/share/fish/vendor_completions.d/cairn.fish")} <= files_in(root) - before
    assert within(root, "cairn", "self-test").endswith("\n6 of 6 ways work\n")
    within(root, "cairn", "record", "-q", "-o", "/tmp/ls.cairn", "ls", "/")
    assert "peak heap" in within(root, "cairn", "report", "/tmp/ls.cairn")
    run("rpm", "--root", root, "--erase", "--nodeps", "cairn")
    assert files_in(root) == before
