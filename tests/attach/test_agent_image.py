# SPDX-License-Identifier: MIT
"""What the agent is as a file: something that can be mapped into any process and needs nothing there."""
import os
import re
import subprocess

AGENT = os.path.join(os.environ["CAIRN_BUILD"], "lib/cairn/libcairn_agent.so")
EM_AARCH64 = 183


def is_foreign():
    with open(AGENT, "rb") as file:
        return int.from_bytes(file.read(20)[18:], "little") == EM_AARCH64


def run(tool, *arguments):
    tool = f"aarch64-linux-gnu-{tool}" if is_foreign() else tool
    return subprocess.run([tool, *arguments, AGENT], capture_output=True, text=True, check=True).stdout


def test_it_has_no_undefined_symbol_and_exports_what_the_recorder_looks_up():
    assert run("nm", "--undefined-only") == ""
    exported = {line.split()[-1] for line in run("nm", "-D").splitlines()}
    assert exported - {"_end"} == {"agent_page", "cairn_api_v1"}  # AArch64's linker adds it


def test_its_relocations_are_relative():
    kinds = re.findall(r"\b(R_(?:X86_64|AARCH64)_\w+)", run("readelf", "-rW"))
    assert kinds and set(kinds) == {"R_AARCH64_RELATIVE" if is_foreign() else "R_X86_64_RELATIVE"}


def test_it_has_no_thread_local_storage_library_or_constructor():
    assert not re.search(r"^\s*(TLS|INTERP)\b", run("readelf", "-lW"), re.MULTILINE)
    dynamic = run("readelf", "-dW")
    assert not re.search(r"NEEDED|INIT|FINI|TEXTREL|STATIC_TLS", dynamic), dynamic


def test_it_uses_general_registers_only():
    """A caller may keep values in vector registers that its allocator does not use. On AArch64 x18
    may be the system's, too."""
    code = run("objdump", "-d", "--no-show-raw-insn")
    assert "<agent_on_allocation>" in code
    operands = "\n".join(line.split("<")[0] for line in code.splitlines() if "\t" in line)
    others = (r"\b(?:[vqdshbzp](?:[12]?\d|3[01])|[xw]18)\b.*" if is_foreign()
              else r"%(?:[xyz]?mm\d+|st\b|k[0-7]\b).*")
    assert re.findall(others, operands) == []


def test_its_segments_have_pages_of_their_own():
    rows = [line.split() for line in run("readelf", "-lW").splitlines() if line.split()[:1] == ["LOAD"]]
    pages = [page for row in rows
             for page in range(int(row[2], 16) >> 12, (int(row[2], 16) + int(row[5], 16) - 1 >> 12) + 1)]
    assert len(pages) == len(set(pages))
    assert all("W" not in row[6:8] or "E" not in row[6:8] for row in rows)
