# SPDX-License-Identifier: MIT
"""What the agent is as a file: something that can be mapped into any process and needs nothing there."""
import os
import re
import subprocess

AGENT = os.path.join(os.environ["CAIRN_BUILD"], "lib/cairn/libcairn_agent.so")


def run(*command):
    return subprocess.run([*command, AGENT], capture_output=True, text=True, check=True).stdout


def test_it_has_no_undefined_symbol_and_exports_its_page_alone():
    assert run("nm", "--undefined-only") == ""
    assert [line.split()[-1] for line in run("nm", "-D").splitlines()] == ["agent_page"]


def test_its_relocations_are_relative():
    kinds = re.findall(r"\b(R_X86_64_\w+)", run("readelf", "-rW"))
    assert kinds and set(kinds) == {"R_X86_64_RELATIVE"}


def test_it_has_no_thread_local_storage_library_or_constructor():
    assert not re.search(r"^\s*(TLS|INTERP)\b", run("readelf", "-lW"), re.MULTILINE)
    dynamic = run("readelf", "-dW")
    assert not re.search(r"NEEDED|INIT|FINI|TEXTREL|STATIC_TLS", dynamic), dynamic


def test_it_uses_general_registers_only():
    """A caller may keep values in vector registers that its allocator does not use."""
    code = run("objdump", "-d", "--no-show-raw-insn")
    assert "<agent_on_allocation>" in code
    assert re.findall(r"%(?:[xyz]?mm\d+|st\b|k[0-7]\b).*", code) == []


def test_its_segments_have_pages_of_their_own():
    rows = [line.split() for line in run("readelf", "-lW").splitlines() if line.split()[:1] == ["LOAD"]]
    pages = [page for row in rows
             for page in range(int(row[2], 16) >> 12, (int(row[2], 16) + int(row[5], 16) - 1 >> 12) + 1)]
    assert len(pages) == len(set(pages))
    assert all("W" not in row[6:8] or "E" not in row[6:8] for row in rows)
