# SPDX-License-Identifier: MIT
"""What the library exports and imports, held against src/target/preload's own lists."""
import os
import re
import subprocess

from consumer import LIBRARY

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/target/preload")


def symbols(*options):
    lines = subprocess.run(["nm", "-D", *options, LIBRARY], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return sorted(line.split()[-1].split("@")[0] for line in lines)


def test_it_exports_what_the_map_says_and_nothing_else():
    text = open(os.path.join(SOURCE, "exports.map")).read()
    listed = re.findall(r"(\w+);", text[text.index("global:"):text.index("local:")])
    assert symbols("--defined-only") == sorted(listed)


def test_it_imports_only_what_was_reviewed():
    lines = [line.split("#")[0].split() for line in open(os.path.join(SOURCE, "imports.allow"))]
    allowed = [words[0] for words in lines if words]
    assert sorted(set(symbols("--undefined-only")) - set(allowed)) == []
    assert sorted(allowed) == sorted(set(allowed)), "each has one reason"


def test_its_symbols_are_old_or_weak():
    """So that the same sources, built on Debian 11, load into programs of every glibc since 2.17. Before
    2.34 the functions for keys had an old version, in libpthread (tools/build_tarball.sh)."""
    text = subprocess.run(["readelf", "-W", "--dyn-syms", LIBRARY], capture_output=True, text=True, check=True).stdout
    imports = re.findall(r" (GLOBAL|WEAK) +DEFAULT +UND (\w+)@GLIBC_([\d.]+) ", text)
    assert len(imports) > 10
    newer = {name for binding, name, version in imports
             if binding == "GLOBAL" and tuple(map(int, version.split("."))) > (2, 17)}
    assert newer <= {"pthread_getspecific", "pthread_setspecific", "pthread_key_create", "pthread_key_delete"}


def test_it_asks_the_loader_for_nothing():
    """These take the loader's lock, allocate or translate: whoever calls malloc may hold any lock."""
    assert [name for name in symbols("--undefined-only")
            if re.match(r"dl(?!_iterate_phdr$)|d?c?n?gettext|v?f?printf|f?puts|fwrite|malloc|free", name)] == []


def test_it_needs_nothing_but_libc():
    text = subprocess.run(["readelf", "-dW", LIBRARY], capture_output=True, text=True,
                          check=True).stdout
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", text) == ["libc.so.6"]


def test_its_thread_local_storage_has_a_fixed_place():
    """Then no access to it calls the loader, which may allocate."""
    text = subprocess.run(["readelf", "-rW", LIBRARY], capture_output=True, text=True, check=True).stdout
    assert re.search(r"R_X86_64_TPOFF64|R_AARCH64_TLS_TPREL", text)
    assert not re.search(r"DTPMOD|DTPOFF|TLSDESC", text)


def test_its_thread_local_storage_is_a_pointer_and_a_pass():
    text = subprocess.run(["readelf", "-lW", LIBRARY], capture_output=True, text=True,
                          check=True).stdout
    (row,) = [line.split() for line in text.splitlines() if line.split()[:1] == ["TLS"]]
    assert int(row[5], 16) == 8 + 24  # struct thread_way
