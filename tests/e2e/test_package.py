# SPDX-License-Identifier: MIT
"""An installed cairn works from each place: any prefix, and the Debian package."""
import re
import subprocess

import pytest

from cairn_run import BUILD, PROGRAMS, ROOT, Recording, environment, assert_totals, expected_totals

FILES = ["bin/cairn", "lib/cairn/libcairn_preload.so", "lib/cairn/probe_program", "share/doc/cairn/LICENSE",
         "share/doc/cairn/README.md", "share/doc/cairn/CHANGELOG.md", "share/man/man1/cairn.1.gz",
         "share/man/man1/cairn-record.1.gz", "share/man/man1/cairn-top.1.gz", "share/bash-completion/completions/cairn",
         "share/fish/vendor_completions.d/cairn.fish", "share/zsh/site-functions/_cairn",
         "share/zsh/vendor-completions/_cairn", "share/man/man3/cairn.h.3.gz", "share/doc/cairn/copyright",
         "share/doc/cairn/changelog.gz", "include/cairn.h", "include/cairn.hpp", "include/cairn_benchmark.hpp",
         "share/cmake/cairn/cairnConfig.cmake", "share/cmake/cairn/cairnConfigVersion.cmake", "share/pkgconfig/cairn.pc",
         "share/cairn/rust/cairn/src/lib.rs",
         "lib/systemd/system/cairn-attach@.service", "share/cairn/systemd/record.conf",
         "share/cairn/prometheus/cairn.rules.yml", "share/cairn/grafana/cairn.json", "share/cairn/collectors/parca.yaml",
         "share/cairn/kubernetes/daemonset.yaml", "share/doc/cairn/user/production.md"]
VIEWER = ROOT / "web/dist/assets/viewer.js"


def run(*command, **settings):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True,
                          env=environment(), timeout=300, **settings).stdout


def assert_works(prefix, scratch):
    """Record with the installed cairn, and assert that it uses no library of the build tree."""
    path = scratch / "x.cairn"
    found = subprocess.run([prefix / "bin/cairn", "-q", "-o", path, PROGRAMS / "ending", "exit"],
                           env=environment(), cwd="/", check=False, capture_output=True)
    assert (found.returncode, found.stdout) == (3, b"to stdout\n"), found.stderr
    recording = Recording(path, found)
    recording.assert_whole()
    assert_totals(recording, expected_totals("ending"))
    assert run(prefix / "bin/cairn", "self-test").endswith("\n6 of 6 ways work\n")
    libraries = [module["path"] for module in recording.report["modules"]
                 if "cairn_preload" in module["path"]]
    assert all(library.startswith(str(prefix)) for library in libraries)
    page = scratch / "x.html"
    run(prefix / "bin/cairn", "export", "--html", "-o", page, path)
    assert VIEWER.read_text() in page.read_text()


def test_install_below_any_prefix(scratch):
    prefix = scratch / "a prefix" / "of ours"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    for name in FILES:
        assert (prefix / name).is_file(), name
    assert_works(prefix, scratch)
    moved = scratch / "moved"
    prefix.rename(moved)
    assert_works(moved, scratch)


def test_mistakes_are_hard_to_use_and_the_folder_of_the_sources_is_no_part_of_it():
    """Programs that read untrusted files are built with the compiler's hardening. The same sources
    give the same bytes in each folder."""
    program = BUILD / "bin/cairn"
    assert "BIND_NOW" in run("readelf", "-d", program) and "GNU_RELRO" in run("readelf", "-lW", program)
    assert "GNU_STACK" in run("readelf", "-lW", program) and " RWE " not in run("readelf", "-lW", program)
    symbols = run("nm", "-D", program)
    assert "__stack_chk_fail" in symbols and symbols.count("_chk@") > 5
    for name in ("bin/cairn", "lib/cairn/libcairn_preload.so"):
        texts = run("strings", "-a", BUILD / name)
        assert str(ROOT) not in texts, [line for line in texts.splitlines() if str(ROOT) in line][:5]


def test_a_short_run_loads_few_libraries():
    """Loading libmicrohttpd and gnutls would double the time that cairn takes to start; libdw and what it brings make
    a quarter of it."""
    libraries = set(re.findall(r"(lib\w+)[-.]", run("ldd", BUILD / "bin/cairn")))
    assert libraries == {"libc", "libm", "libZydis"}


@pytest.mark.nightly
def test_the_debian_package(scratch):
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", scratch)
    packages = list(scratch.glob("cairn_*.deb"))
    assert len(packages) == 1
    contents = run("dpkg-deb", "--contents", packages[0])
    for name in FILES:
        assert re.search(rf"^-\S+ root/root .* \./usr/{re.escape(name)}$", contents, re.M), contents
    depends = run("dpkg-deb", "--field", packages[0], "Depends")
    for library in ("libc6 (>=", "libzydis", "libmicrohttpd12"):
        assert library in depends
    assert "libstdc++" not in depends
    assert run("dpkg-deb", "--field", packages[0], "Package") == "cairn\n"
    root = scratch / "root"
    run("dpkg", "-x", packages[0], root)
    assert_works(root / "usr", scratch)
