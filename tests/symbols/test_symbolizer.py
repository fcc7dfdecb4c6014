# SPDX-License-Identifier: MIT
"""The symbolizer against the truth written in the programs, and against addr2line and
llvm-symbolizer over all of each program and some of the C library."""
import ctypes
import http.server
import os
import pathlib
import random
import re
import shutil
import subprocess
import threading

import pytest

from conftest import SOURCES
from oracle import (ask_addr2line, ask_llvm, ask_ours, function_addresses, places, plain)

VARIANTS = [
    ("gcc", "-O2", "-g", "-gdwarf-4"),
    ("gcc", "-O2", "-g", "-gdwarf-5"),
    ("gcc", "-O2", "-g", "-gz"),
    ("gcc", "-O0", "-g"),
    ("gcc", "-O2", "-g", "-flto"),
    ("gcc", "-O2", "-g", "-gsplit-dwarf"),
    ("gcc", "-O2", "-g", "-static"),
    ("clang", "-O2", "-g", "-gdwarf-4"),
    ("clang", "-O2", "-g", "-gdwarf-5"),
    ("clang", "-O2", "-g", "-gsplit-dwarf"),
    ("g++", "-O2", "-g", "-gdwarf-4"),
    ("g++", "-O2", "-g", "-gdwarf-5"),
    ("g++", "-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"),
    ("g++", "-O3", "-g", "-flto"),
    ("clang++", "-O2", "-g"),
    ("clang++", "-O1", "-gline-tables-only"),
    ("rustc", "-O", "-g"),
    ("rustc", "-g"),
]


# One of each compiler, and each form of its own; `make nightly` tries them all.
DAILY = {("gcc", "-O2", "-g", "-gdwarf-5"), ("gcc", "-O2", "-g", "-gsplit-dwarf"), ("clang", "-O2", "-g", "-gdwarf-4"),
         ("g++", "-O2", "-g", "-gdwarf-5"), ("clang++", "-O1", "-gline-tables-only"), ("rustc", "-O", "-g")}


def variants(is_wanted):
    """The wanted variants as parameters."""
    return [pytest.param(variant, marks=[] if variant in DAILY else pytest.mark.nightly, id=" ".join(variant))
            for variant in VARIANTS if is_wanted(variant)]


def marked_lines(source):
    """{"allocate": 12, ...} from the marks in a program's comments."""
    lines = (SOURCES / source).read_text().splitlines()
    return {found[1]: number for number, line in enumerate(lines, 1)
            if (found := re.search(r"// \[(\w+)\]", line))}


def calls_in(program, function, callee):
    """Addresses of the call instructions (of jumps, too: tail calls) to `callee` within `function`."""
    text = subprocess.run(["objdump", "-dC", "--no-show-raw-insn", program], capture_output=True,
                          text=True, check=True).stdout
    body = re.search(r"^[0-9a-f]+ <" + re.escape(function) + r">:\n(.*?)\n\n", text, re.M | re.S)[1]
    return [int(line.split(":")[0], 16) for line in body.splitlines()
            if re.search(r"\b(call|jmp)\b.*<" + re.escape(callee), line)]


@pytest.mark.parametrize("variant", variants(lambda v: v[0] in ("gcc", "clang")))
def test_a_call_inlined_three_deep_has_its_whole_chain(build, variant):
    program = build(*variant)
    (call,) = calls_in(program, "outer_most", "malloc") or \
        calls_in(program, "outer_most", "__libc_malloc")  # the name in a static program
    answer, _ = ask_ours(program, [call])
    line = marked_lines("nested.c")
    names = ["third", "second", "first", "outer_most"]
    marks = ["allocate", "third", "second", "first"]
    chain = [(name, line[mark]) for name, mark in zip(names, marks)]
    assert [(function, number) for function, _, number in answer[call]] == chain
    assert {os.path.basename(file) for _, file, _ in answer[call]} == {"nested.c"}


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.nightly)])
def test_a_template_method_in_a_namespace_has_its_full_name(build, compiler):
    program = build(compiler, "-O2", "-g", "-gdwarf-5")
    name = "depot::shelf::Crate<int>::fill(unsigned long)"
    (call,) = calls_in(program, name, "operator new")
    answer, _ = ask_ours(program, [call])
    assert [(f, n) for f, _, n in answer[call]] == [(name, marked_lines("scopes.cpp")["allocate"])]


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.nightly)])
def test_functions_without_linkage_names_keep_their_scopes(build, compiler):
    program = build(compiler, "-O2", "-g", "-gdwarf-5")
    answer, _ = ask_ours(program, function_addresses(program, 20000))
    names = {function for frames in answer.values() for function, _, _ in frames}
    # What std::function makes of a lambda is named after that lambda, which has no linkage name.
    inner = {name for name in names if "__invoke_impl" in name or "__invoke_r" in name}
    assert inner and all("std::__invoke" in name for name in inner), inner
    assert any(re.search(r"guarded\(int\)::Local::twice|main::.*::operator\(\)", name) for name in names)


# A static program is nearly all libc, without DWARF: a sample would hit no place of ours.
@pytest.mark.parametrize("variant", variants(lambda v: "-static" not in v))
def test_every_place_agrees_with_llvm_symbolizer(build, variant):
    program = build(*variant)
    addresses = function_addresses(program, 4000)
    ours, coverage = ask_ours(program, addresses)
    theirs = ask_llvm(program, addresses)
    assert coverage.asked == len(addresses) and coverage.gap == "none"
    compared = 0
    for address in addresses:
        # Code without DWARF (start files, a static libc): it may give the object file's name there.
        if all(line == 0 for _, _, line in theirs[address]):
            assert all(line == 0 for _, _, line in ours[address]), hex(address)
            continue
        assert places(ours[address]) == places(theirs[address]), hex(address)
        compared += 1
    assert compared > 50


@pytest.mark.nightly
def test_blocks_that_overlap_hide_nothing_that_was_inlined(tmp_path):
    """gcc's blocks overlap here: of two that hold an address the second has what was inlined there."""
    program = str(tmp_path / "shop")
    subprocess.run(["g++", "-Os", "-g", "-flto=auto", SOURCES.parents[2] / "demo" / "shop.cpp", "-o", program,
                    "-pthread"], check=True)
    addresses = function_addresses(program, 6000)
    ours, _ = ask_ours(program, addresses)
    theirs = ask_llvm(program, addresses)
    known = [address for address in addresses if any(line != 0 for _, _, line in theirs[address])]
    assert len(known) > 3000
    assert {hex(address): places(ours[address]) for address in known} == \
        {hex(address): places(theirs[address]) for address in known}


def has_parameters(name):
    return name.replace("operator()", "").endswith((")", ") const", "]"))


@pytest.mark.parametrize("variant", variants(
    lambda v: v[0] in ("gcc", "g++", "rustc") and "-gsplit-dwarf" not in v))
def test_every_name_agrees_with_addr2line(build, variant):
    program = build(*variant)
    addresses = function_addresses(program, 2000)
    ours, _ = ask_ours(program, addresses)
    theirs = ask_addr2line(program, addresses)
    for address in addresses:
        assert len(ours[address]) == len(theirs[address]), hex(address)
        for mine, other in zip(ours[address], theirs[address]):
            # Where DWARF has no linkage name (lambdas and what is instantiated with them), addr2line
            # takes the symbol table's name for the innermost frame, though that is the physical
            # function's; and leaves the physical function's own name without its scope.
            without_linkage_name = not (has_parameters(mine[0]) and has_parameters(other[0]))
            assert plain(mine[0]) == plain(other[0]) or without_linkage_name, (hex(address), mine, other)


@pytest.mark.nightly
def test_the_c_library_agrees_with_both_where_its_debug_package_is_installed():
    """Needs libc6-dbg."""
    library = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]
    debug_file = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    addresses = function_addresses(debug_file, 1000)
    ours, coverage = ask_ours(library, addresses, "-b", build_id)
    assert (coverage.gap, coverage.source) == ("none", debug_file)
    theirs = ask_llvm(debug_file, addresses)
    different = [hex(a) for a in addresses
                 if any(file for _, file, _ in theirs[a]) and places(ours[a]) != places(theirs[a])]
    assert not different
    theirs = ask_addr2line(debug_file, addresses)
    # Depths and lines only: for lines of an included file, addr2line 2.40 names the including one.
    different = [hex(a) for a in addresses if any(file for _, file, _ in theirs[a])
                 and [line for _, _, line in ours[a]] != [line for _, _, line in theirs[a]]]
    assert not different
    # One function may have several names, and each symbolizer picks another one: at most a few.
    different = [a for a in addresses if plain(ours[a][-1][0]) != plain(theirs[a][-1][0])]
    assert len(different) < len(addresses) / 20


def strip_into(program, directory, *strip_options):
    stripped = directory / "program"
    shutil.copy(program, stripped)
    subprocess.run(["strip", *strip_options, str(stripped)], check=True)
    return str(stripped)


def save_debug(program, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, str(target)], check=True)
    return target


def add_link(stripped, debug_file):
    subprocess.run(["objcopy", f"--add-gnu-debuglink={debug_file}", stripped], check=True)


def build_id_of(program):
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True)
    return re.search(r"Build ID: ([0-9a-f]+)", notes.stdout)[1]


@pytest.mark.parametrize("place", ["beside", "in .debug", "in the debug directory"])
def test_a_linked_debug_file_is_found(build, tmp_path, place):
    program = build("gcc", "-O2", "-g", "-gdwarf-5", "-Wl,--build-id=none")
    module = tmp_path / "module"
    module.mkdir()
    stripped = strip_into(program, module)
    target = {"beside": module / "program.debug", "in .debug": module / ".debug/program.debug",
              "in the debug directory": pathlib.Path(f"{tmp_path}/debug{module}/program.debug")}[place]
    save_debug(program, target)
    add_link(stripped, target)
    addresses = function_addresses(program, 300)
    want, _ = ask_ours(program, addresses)
    got, coverage = ask_ours(stripped, addresses, "-d", str(tmp_path / "debug"))
    assert got == want
    assert (coverage.gap, coverage.source) == ("none", str(target))


def test_a_debug_file_with_another_checksum_is_not_used(build, tmp_path):
    program = build("gcc", "-O2", "-g", "-gdwarf-5", "-Wl,--build-id=none")
    stripped = strip_into(program, tmp_path)
    debug_file = save_debug(program, tmp_path / "program.debug")
    add_link(stripped, debug_file)
    with open(debug_file, "ab") as changed:
        changed.write(b"x")
    _, coverage = ask_ours(stripped, function_addresses(program, 10))
    assert (coverage.gap, coverage.lines) == ("stripped", 0)


def test_a_debug_file_is_found_by_build_id_and_only_by_the_right_one(build, tmp_path):
    program = build("gcc", "-O2", "-g", "-Wl,--build-id=sha1")
    build_id = build_id_of(program)
    stripped = strip_into(program, tmp_path)
    target = save_debug(program, tmp_path / f"debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
    addresses = function_addresses(program, 300)
    want, _ = ask_ours(program, addresses)
    got, coverage = ask_ours(stripped, addresses, "-d", str(tmp_path / "debug"))
    assert got == want and coverage.source == str(target)
    os.remove(stripped)  # the debug file alone is enough, if the recording knows the build-id
    got, coverage = ask_ours(stripped, addresses, "-d", str(tmp_path / "debug"), "-b", build_id)
    assert got == want and coverage.gap == "none"
    other = build("gcc", "-O1", "-g", "-Wl,--build-id=sha1")
    save_debug(other, target)
    stripped = strip_into(program, tmp_path)
    _, coverage = ask_ours(stripped, addresses, "-d", str(tmp_path / "debug"))
    assert (coverage.gap, coverage.lines) == ("stripped", 0)


def test_debuginfod_is_asked_only_if_wished(build, tmp_path, monkeypatch):
    """Needs libdebuginfod1; the server is one of ours that answers as debuginfod(8) does."""
    program = build("gcc", "-O2", "-g", "-Wl,--build-id=sha1")
    stripped = strip_into(program, tmp_path)
    content = save_debug(program, tmp_path / "elsewhere/file").read_bytes()
    asked = []

    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("DEBUGINFOD_URLS", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        addresses = function_addresses(program, 100)
        _, unasked = ask_ours(stripped, addresses)
        assert (unasked.gap, asked) == ("stripped", [])
        got, coverage = ask_ours(stripped, addresses, "-n")
        server.shutdown()
    want, _ = ask_ours(program, addresses)
    assert got == want
    assert coverage.source.startswith(str(tmp_path / "cache"))
    assert asked == [f"/buildid/{build_id_of(program)}/debuginfo"]


def test_a_replaced_module_gets_no_names(build):
    program = build("gcc", "-O2", "-g", "-Wl,--build-id=sha1")
    answer, coverage = ask_ours(program, function_addresses(program, 50), "-b", "00112233")
    assert all(frames == [] for frames in answer.values())
    assert (coverage.gap, coverage.functions) == ("file changed", 0)
    assert "record again" in coverage.advice


def nm_functions(program, *options):
    listing = subprocess.run(["nm", "-S", "--defined-only", *options, program], capture_output=True,
                             text=True, check=True).stdout
    return [(int(found[1], 16), int(found[2], 16), found[3]) for line in listing.splitlines()
            if (found := re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [TtWi] (\S+)", line))]


@pytest.mark.parametrize("strip_options, nm_options, gap",
                         [(["--strip-debug"], [], "no debug info"), ([], ["-D"], "stripped")])
def test_without_dwarf_the_symbol_table_names_functions(build, tmp_path, strip_options, nm_options, gap):
    program = build("gcc", "-O2", "-g", "-rdynamic")
    stripped = strip_into(program, tmp_path, *strip_options)
    functions = nm_functions(stripped, *nm_options)
    assert {"outer_most", "main"} <= {name for _, _, name in functions}
    for begin, size, name in functions:
        answer, coverage = ask_ours(stripped, [begin, begin + size - 1])
        # One address, two names: the one without underscores is what people call it.
        want = "outer_most" if name == "__private_name" else name
        assert list(answer.values()) == [[(want, "", 0)], [(want, "", 0)]]
        assert (coverage.gap, coverage.advice) == \
            (gap, "build it with -g and do not strip it, or name the directory of its debug file with --debug-dir")


def where(program):
    """{symbol: address}, as nm has them."""
    listing = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return {fields[2]: int(fields[0], 16) for line in listing.splitlines() if len(fields := line.split()) == 3}


ASSEMBLY = """
    .text
    .globl best
    .type best, @function
    .type __inner, @function
    .type a_local_alias, @function
    .type __best, @function
    .globl __best
best:
__best:
__inner:
a_local_alias:
    nop
    nop
    .globl next
    .type next, @function
next:
    nop
"""


def test_of_names_without_sizes_the_public_one_wins(tmp_path):
    """Assembler often gives no sizes, and several names to one place."""
    (tmp_path / "a.s").write_text(ASSEMBLY)
    subprocess.run(["gcc", "-c", "-o", tmp_path / "a.o", tmp_path / "a.s"], check=True)
    program = tmp_path / "program"
    subprocess.run(["ld", "-e", "best", "-o", program, tmp_path / "a.o"], check=True)
    addresses = where(program)
    answer, _ = ask_ours(program, [addresses["best"], addresses["best"] + 1, addresses["next"]])
    assert [[frame[0] for frame in frames] for frames in answer.values()] == [["best"], ["best"], ["next"]]


def test_code_between_the_lines_of_two_units_has_no_line(tmp_path):
    """A line table ends where its code does: what follows, without lines, is not its last line's."""
    (tmp_path / "one.c").write_text("int one(int a) { return a + 1; }\n")
    (tmp_path / "gap.s").write_text("    .text\n    .type gap, @function\ngap:\n" + "    nop\n" * 64 +
                                    "    .size gap, . - gap\n")
    (tmp_path / "two.c").write_text("int two(int a) { return a + 2; }\nint main(void) { return two(0); }\n")
    program = tmp_path / "program"
    for name in ("one.c", "two.c"):
        subprocess.run(["gcc", "-g", "-O1", "-c", "-o", tmp_path / f"{name}.o", tmp_path / name], check=True)
    subprocess.run(["gcc", "-c", "-o", tmp_path / "gap.o", tmp_path / "gap.s"], check=True)
    subprocess.run(["gcc", "-o", program, tmp_path / "one.c.o", tmp_path / "gap.o", tmp_path / "two.c.o"], check=True)
    addresses = where(program)
    inside = [addresses["gap"] + offset for offset in (0, 1, 30, 63)]
    answer, _ = ask_ours(program, inside)
    assert [answer[address] for address in inside] == [[("gap", "", 0)]] * 4
    assert ask_ours(program, [addresses["two"] + 1])[0][addresses["two"] + 1][0][2] == 1


TWO_SEQUENCES = """
    .file 1 "unit.c"
    .section .text.first, "ax"
    .type first, @function
first:
    .loc 1 10
    nop
    .size first, . - first
    .section .text.gap, "ax"
    .type gap, @function
gap:
    nop
    nop
    .size gap, . - gap
    .section .text.last, "ax"
    .type last, @function
last:
    .loc 1 20
    nop
    .size last, . - last
end:
    .section .debug_line
lines:
    .section .debug_abbrev
    .uleb128 1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x01, 0x03, 0x08, 0, 0, 0
    .section .debug_info
    .long 2f - 1f
1:  .short 4
    .long 0
    .byte 8
    .uleb128 1
    .long lines
    .quad first, end
    .string "unit.c"
2:
"""


def test_code_between_two_sequences_of_one_unit_has_no_line(tmp_path):
    """The unit claims all the code from its first function to its last, its line table has two parts."""
    (tmp_path / "a.s").write_text(TWO_SEQUENCES)
    program = tmp_path / "program"
    subprocess.run(["gcc", "-c", "-o", tmp_path / "a.o", tmp_path / "a.s"], check=True)
    subprocess.run(["ld", "-e", "0", "-o", program, tmp_path / "a.o"], check=True)
    at = where(program)
    assert at["first"] < at["gap"] < at["last"]
    inside = [at["first"], at["gap"], at["gap"] + 1, at["last"]]
    answer, _ = ask_ours(program, inside)
    assert [(function, line) for address in inside for function, _, line in answer[address]] == \
        [("first", 10), ("gap", 0), ("gap", 0), ("last", 20)]
    assert answer[at["gap"]][0][1] == ""


def test_a_unit_without_ranges_covers_the_code_of_its_functions(tmp_path):
    """Such units come from old compilers and from assemblers; DWARF 5, section 3.1.1, allows them."""
    source = TWO_SEQUENCES.replace(".uleb128 1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x01, 0x03, 0x08, 0, 0, 0",
                                   ".uleb128 1, 0x11, 1, 0x10, 0x17, 0x03, 0x08, 0, 0\n"
                                   "    .uleb128 2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x01, 0, 0, 0")
    source = source.replace("    .quad first, end\n", "").replace(
        '    .string "unit.c"\n2:', '    .string "unit.c"\n    .uleb128 2\n    .string "called_last"\n'
        "    .quad last, end\n    .byte 0\n2:")
    (tmp_path / "a.s").write_text(source)
    program = tmp_path / "program"
    subprocess.run(["gcc", "-c", "-o", tmp_path / "a.o", tmp_path / "a.s"], check=True)
    subprocess.run(["ld", "-e", "0", "-o", program, tmp_path / "a.o"], check=True)
    at = where(program)
    answer, _ = ask_ours(program, [at["first"], at["last"]])
    assert [(function, line) for function, _, line in answer[at["first"]]] == [("first", 0)]
    assert [line for _, _, line in answer[at["last"]]] == [20]


@pytest.mark.parametrize("sections, gap", [(1, "none"), (3, "no debug info")])
def test_what_sections_inflate_to_is_added_up(build, tmp_path, sections, gap):
    """Each alone is within what is allowed for a file of this size, all together are not."""
    (tmp_path / "zeros").write_bytes(bytes(7 << 20))
    program = tmp_path / "program"
    words = [f"--add-section=.debug_x{i}={tmp_path / 'zeros'}" for i in range(sections)]
    subprocess.run(["objcopy", *words, build("gcc", "-O2", "-g", "-gdwarf-5"), program], check=True)
    subprocess.run(["objcopy", "--compress-debug-sections", program], check=True)
    assert program.stat().st_size < 1 << 20
    _, coverage = ask_ours(program, [where(program)["main"]])
    assert coverage.gap == gap


def test_what_is_no_file_is_said_to_be_none(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text").write_text("no ELF")
    (tmp_path / "empty").write_text("")
    (tmp_path / "short").write_bytes(b"\x7fELF\x02\x01\x01")
    cases = {"nowhere": "no file", "fifo": "damaged", "text": "damaged", "empty": "damaged",
             "short": "damaged", ".": "damaged"}
    for name, gap in cases.items():
        answer, coverage = ask_ours(str(tmp_path / name), [0x1000])
        assert (answer, coverage.gap, coverage.source) == ({0x1000: []}, gap, ""), name
    answer, coverage = ask_ours("linux-vdso.so.1", [0x1000])
    assert (coverage.gap, coverage.advice) == ("no file", "")


def test_what_is_no_file_is_not_even_opened(tmp_path):
    """To open a device may do something."""
    IN_OPEN = 0x20
    libc = ctypes.CDLL(None, use_errno=True)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "text").write_text("no ELF")
    watch = libc.inotify_init1(os.O_NONBLOCK)
    opened = []
    for name in ("fifo", "text"):
        assert libc.inotify_add_watch(watch, str(tmp_path / name).encode(), IN_OPEN) > 0
        ask_ours(str(tmp_path / name), [0x1000])
        try:
            opened.append(len(os.read(watch, 4096)) > 0)
        except BlockingIOError:
            opened.append(False)
    os.close(watch)
    assert opened == [False, True]


def test_the_executable_dir_goes_before_the_plain_path(build, tmp_path):
    program = build("gcc", "-O2", "-g", "-gdwarf-5")
    copy = pathlib.Path(f"{tmp_path}/root/no/such/place/program")
    copy.parent.mkdir(parents=True)
    shutil.copy(program, copy)
    addresses = function_addresses(program, 100)
    want, _ = ask_ours(program, addresses)
    got, coverage = ask_ours("/no/such/place/program", addresses, "-s", str(tmp_path / "root"))
    assert got == want and coverage.source == str(copy)


def sections(program):
    listing = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True)
    pattern = r"\[ *\d+\] (\.debug_\S+|\.symtab|\.strtab|\.note\S*) +\S+ +\S+ +([0-9a-f]+) +([0-9a-f]+)"
    found = [(int(m[2], 16), int(m[3], 16)) for m in re.finditer(pattern, listing.stdout)]
    header = re.search(r"starting at offset 0x([0-9a-f]+)", listing.stdout)
    return found + [(0, 64), (int(header[1], 16), 64 * 30)]


@pytest.mark.parametrize("section", [".debug_line_str", pytest.param(".debug_str", marks=pytest.mark.nightly)])
def test_strings_without_an_end_are_not_read(build, tmp_path, section):
    program = build("g++", "-O2", "-g", "-gdwarf-5")
    addresses = function_addresses(program, 100)
    listing = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True)
    place = re.search(rf"\] {re.escape(section)} +\S+ +\S+ +([0-9a-f]+) +([0-9a-f]+)", listing.stdout)
    end = int(place[1], 16) + int(place[2], 16)
    damaged = bytearray(pathlib.Path(program).read_bytes())
    assert damaged[end - 1] == 0
    damaged[end - 1] = ord("x")
    file = tmp_path / "damaged"
    file.write_bytes(damaged)
    _, coverage = ask_ours(str(file), addresses)
    assert (coverage.lines, coverage.gap) == (0, "damaged")
    assert coverage.functions == len(addresses)  # which the symbol table has


def compressed(program, tmp_path, *options):
    """A copy of the program whose debug sections are compressed by zstd."""
    out = tmp_path / "compressed"
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", *options, program, out], check=True)
    sizes = subprocess.run(["readelf", "-tW", out], capture_output=True, text=True, check=True).stdout
    assert "ZSTD" in sizes
    return str(out)


@pytest.mark.parametrize("variant", [
    ("gcc", "-O2", "-g"), pytest.param(("clang++", "-O2", "-g"), marks=pytest.mark.nightly), ("rustc", "-O", "-g")],
                         ids=" ".join)
def test_debug_sections_that_zstd_compressed_are_read(build, tmp_path, variant):
    program = build(*variant)
    addresses = function_addresses(program, 1000)
    packed = compressed(program, tmp_path)
    expected, _ = ask_ours(program, addresses)
    ours, coverage = ask_ours(packed, addresses)
    assert (coverage.gap, coverage.source) == ("none", packed)
    assert ours == expected
    # Of clang's, addr2line does not find all that was inlined, compressed or not.
    theirs = ask_addr2line(packed, addresses) if variant[0] != "clang++" else ours
    assert [len(ours[address]) for address in addresses] == [len(theirs[address]) for address in addresses]


def test_a_separate_debug_file_that_zstd_compressed_is_read(build, tmp_path):
    program = build("gcc", "-O2", "-g")
    addresses = function_addresses(program, 100)
    expected, _ = ask_ours(program, addresses)
    packed = compressed(program, tmp_path, "--only-keep-debug")
    stripped = tmp_path / "stripped"
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={packed}", program, stripped], check=True)
    ours, coverage = ask_ours(str(stripped), addresses)
    assert (coverage.gap, coverage.source) == ("none", packed)
    assert ours == expected


@pytest.mark.nightly
@pytest.mark.parametrize("variant", [("g++", "-O2", "-g", "-gdwarf-4"), ("clang++", "-O2", "-g"),
                                     ("gcc", "-O2", "-g", "-gz"),
                                     ("gcc", "-O2", "-g", "-Wl,--compress-debug-sections=zstd")], ids=" ".join)
def test_damaged_files_are_survived(build, tmp_path, variant):
    # Without paths of this run in it, so that the same places are damaged in each run.
    program = build(*variant, "-ffile-prefix-map={directory}=/build", "-ffile-prefix-map={sources}=/sources")
    addresses = function_addresses(program, 200)
    original = pathlib.Path(program).read_bytes()
    targets = sections(program)
    chance = random.Random(7)
    for number in range(50 if os.environ.get("CAIRN_NIGHTLY") else 12):
        damaged = bytearray(original)
        begin, size = chance.choice(targets)
        for _ in range(chance.choice([1, 3, 10, 100])):
            at = begin + chance.randrange(size)
            damaged[at] = chance.choice([0, 0x7f, 0x80, 0xff, chance.randrange(256)])
        if number % 10 == 0:
            del damaged[chance.randrange(len(damaged)):]
        file = tmp_path / "damaged"
        file.write_bytes(damaged)
        _, coverage = ask_ours(str(file), addresses)  # exits with 0, in time
        assert coverage.asked == len(addresses)
