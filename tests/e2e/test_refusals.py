# SPDX-License-Identifier: MIT
"""Refusals: one clear sentence on stderr, the status that a shell would return, no files left."""
import gzip
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, assert_totals, environment, expected_totals, some_of

OTHER_TEXT = b"v what is this, a poem?\n" * 3


def refuse(scratch, arguments, status, *words):
    """Run cairn with the arguments and check what is common to all refusals."""
    before = sorted(scratch.rglob("*"))
    run = subprocess.run([CAIRN, *map(str, arguments)], cwd=scratch, env=environment(),
                         stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
    said = run.stderr.decode()
    assert run.returncode == status, said
    assert run.stdout == b""
    assert said.startswith("cairn: ") and said.endswith("\n") and said.count("\n") == 1, said
    for word in words:
        assert word.lower() in said.lower(), said
    assert sorted(scratch.rglob("*")) == before


def elf32():
    """The smallest executable for 32-bit x86 that Linux would start: it exits with 0."""
    code = b"\xb8\x01\x00\x00\x00\x31\xdb\xcd\x80"
    head = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, 0x8048054, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    size = 52 + 32 + len(code)
    return head + struct.pack("<IIIIIIII", 1, 0, 0x8048000, 0x8048000, size, size, 5, 0x1000) + code


def make_executable(path, content):
    path.write_bytes(content)
    path.chmod(0o755)
    return path


def setuid_program(scratch):
    """A program that runs as another user than its caller."""
    if os.geteuid() != 0:
        return pathlib.Path("/usr/bin/passwd")
    program = scratch / "privileged"
    shutil.copy(PROGRAMS / "ending", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    return program


def test_no_such_program(scratch):
    refuse(scratch, ["./nowhere"], 127, "nowhere", "no such")
    refuse(scratch, ["record", "--", "no-such-program-anywhere"], 127, "no-such-program-anywhere",
           "PATH")


def test_not_executable(scratch):
    (scratch / "plain").write_text("text\n")
    (scratch / "folder").mkdir()
    refuse(scratch, ["./plain"], 126, "plain", "execut")
    refuse(scratch, ["./folder"], 126, "folder", "directory")


def test_a_script_without_its_interpreter(scratch):
    make_executable(scratch / "script", b"#!/no/such/shell -e\n")
    refuse(scratch, ["./script"], 127, "'./script'", "interpreter '/no/such/shell'")
    make_executable(scratch / "carried", b"#!/bin/sh\r\n")  # its lines end as on Windows
    refuse(scratch, ["./carried"], 127, "'./carried'", "interpreter '/bin/sh\\x0d'")


def test_a_program_of_go_is_told_what_helps(scratch):
    subprocess.run(["objcopy", "--add-section", ".note.go.buildid=/dev/null",
                    PROGRAMS / "static_program", scratch / "gopher"], check=True, timeout=60)
    refuse(scratch, ["./gopher"], 126, "gopher", "Go", "runtime/pprof")


def test_a_32_bit_executable(scratch):
    make_executable(scratch / "small", elf32())
    refuse(scratch, ["./small"], 126, "small", "32-bit")


def test_another_machine_s_executable(scratch):
    foreign = bytearray((PROGRAMS / "ending").read_bytes())
    foreign[18:20] = struct.pack("<H", 243)  # e_machine: RISC-V
    make_executable(scratch / "foreign", bytes(foreign))
    refuse(scratch, ["./foreign"], 126, "foreign")


def compiled(scratch, compiler, *options):
    """A small program, built by this compiler."""
    (scratch / "small.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([compiler, *options, "-o", scratch / "small", scratch / "small.c"], check=True,
                   timeout=60)
    return scratch / "small"


WITHOUT_LIBC = r"""
static char pool[100000];
static unsigned long used;
__attribute__((noinline)) void *malloc(unsigned long size)
{
    void *block = pool + used;
    used += (size + 15) & ~15ul;
    return block;
}
static long call(long number, long a, const void *b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c)
                     : "rcx", "r11", "memory");
    return result;
}
void _start(void)
{
    for (int i = 0; i < 100; i++) {
        *(volatile char *)malloc(100) = 1;
    }
    (void)call(1, 1, "fine\n", 5);
    (void)call(231, 5, (void *)0, 0);
}
"""


def test_an_executable_without_a_libc(scratch):
    """Its thread has no thread pointer, at which hooks would find what they keep of it."""
    (scratch / "bare.c").write_text(WITHOUT_LIBC)
    subprocess.run(["gcc", "-O1", "-nostdlib", "-static", "-fno-builtin", "-o", scratch / "bare",
                    scratch / "bare.c"], check=True, timeout=60)
    refuse(scratch, ["./bare"], 126, "bare", "thread pointer")
    refuse(scratch, ["--allocator", "malloc=malloc", "./bare"], 126, "bare", "thread pointer")
    run = subprocess.run([CAIRN, "record", "-q", "-o", "x.cairn", "--", "sh", "-c", "./bare; exit $?"],
                         cwd=scratch, env=environment(), check=False, capture_output=True, timeout=60)
    assert (run.returncode, run.stdout) == (5, b"fine\n"), run.stderr


@pytest.mark.parametrize("sanitizer", some_of(["address", "thread"], 2))
def test_an_executable_with_a_sanitizer(scratch, sanitizer):
    refuse(scratch, [compiled(scratch, "gcc", f"-fsanitize={sanitizer}")], 126, "small", "sanitizer")


@pytest.mark.parametrize("compiler, options, name", some_of([
    ("gcc", ["-fsanitize=address", "-static-libasan"], "AddressSanitizer"),
    ("gcc", ["-fsanitize=thread", "-static-libtsan"], "ThreadSanitizer"),
    ("clang", ["-fsanitize=address"], "AddressSanitizer"),
    ("clang", ["-fsanitize=thread", "-s"], "ThreadSanitizer"),
    ("clang", ["-fsanitize=memory", "-s"], "MemorySanitizer"),
    ("clang", ["-fsanitize=dataflow"], "DataFlowSanitizer"),
    ("gcc", ["-fsanitize=address", "-static-libasan", "-s"], "a sanitizer"),
    ("gcc", ["-fsanitize=thread", "-static-libtsan", "-s"], "a sanitizer")], 3))
def test_an_executable_with_a_sanitizer_inside(scratch, compiler, options, name):
    """It ends at once if cairn maps memory where the sanitizer's shadow belongs."""
    program = compiled(scratch, compiler, *options)
    refuse(scratch, [program], 126, "small", name, "build it without -fsanitize")
    run = subprocess.run([CAIRN, "record", "-q", "--all-allocators", "-o", "x.cairn", "--", "sh", "-c",
                          f"{program} && echo fine"], cwd=scratch, env=environment(), check=False,
                         capture_output=True, timeout=60)
    assert run.stdout == b"fine\n", run.stderr


@pytest.mark.parametrize("compiler, options", [
    ("gcc", ["-fsanitize=undefined", "-static-libubsan", "-s"]),
    ("clang", ["-fsanitize=leak", "-s"])])
def test_a_sanitizer_that_has_no_shadow_is_no_reason_to_refuse(record, scratch, compiler, options):
    assert record(compiled(scratch, compiler, *options)).totals["processes"] == 1


def test_a_setuid_executable(scratch):
    refuse(scratch, [setuid_program(scratch)], 126, "setuid")


def loader_of(program):
    """The loader of shared libraries that an executable names."""
    listing = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True,
                             timeout=60).stdout
    return re.search(r"program interpreter: ([^\]]+)\]", listing).group(1)


@pytest.mark.parametrize("options", [[], ["--argv0", "other", "--inhibit-cache"]])
@pytest.mark.parametrize("name", [None, "ld.so"])
def test_the_loader_as_the_program_is_no_reason_to_refuse(record, scratch, name, options):
    """The program that the loader runs is recorded under its own name, and once, whatever the loader is called. It
    is refused as if it were started directly."""
    program = PROGRAMS / "malloc_family"
    loader = pathlib.Path(loader_of(program))
    if name is not None:
        (scratch / name).symlink_to(loader)
        loader = scratch / name
    recording = record(loader, *options, program)
    assert_totals(recording, expected_totals("malloc_family"))
    (image,) = recording.report["processes"]
    assert image["executable"] == str(program)


@pytest.mark.parametrize("script, want", [
    ("#!/bin/sh\necho from a script\n", b"from a script\n"),
    ("echo without a first line\n", b"without a first line\n"),
])
def test_a_script_is_no_reason_to_refuse(record, scratch, script, want):
    make_executable(scratch / "script", script.encode())
    if script.startswith("#!"):
        assert record(scratch / "script").finished.stdout == want
    else:
        # Only a shell starts such a file; exec returns an error.
        refuse(scratch, ["./script"], 126, "script")


def test_output_that_cannot_be_written(scratch):
    (scratch / "file").write_text("")
    refuse(scratch, ["-o", "file/out.cairn", PROGRAMS / "ending"], 2, "file/out.cairn")
    refuse(scratch, ["-o", "/proc/out.cairn", PROGRAMS / "ending"], 2, "/proc/out.cairn")
    (scratch / "taken.cairn").mkdir()
    refuse(scratch, ["-o", "taken.cairn", PROGRAMS / "ending"], 2, "taken.cairn")


def xxh64_of_16_bytes(data):
    """XXH64 with seed 0, for exactly 16 bytes; written from its specification."""
    prime = (11400714785074694791, 14029467366897019727, 1609587929392839161,
             9650029242287828579, 2870177450012600261)
    mask = (1 << 64) - 1

    def rotated(value, count):
        return (value << count | value >> (64 - count)) & mask

    state = (prime[4] + 16) & mask
    for lane in struct.unpack("<QQ", data):
        state ^= rotated(lane * prime[1] & mask, 31) * prime[0] & mask
        state = (rotated(state, 27) * prime[0] + prime[3]) & mask
    state = (state ^ state >> 33) * prime[1] & mask
    state = (state ^ state >> 29) * prime[2] & mask
    return state ^ state >> 32


def with_later_version(recording):
    """The same file with the next version of the format (docs/format/recording.md, 2.1)."""
    content = bytearray(recording.path.read_bytes())
    assert struct.unpack_from("<Q", content, 16)[0] == xxh64_of_16_bytes(bytes(content[:16]))
    version = struct.unpack_from("<H", content, 8)[0]
    struct.pack_into("<H", content, 8, version + 1)
    struct.pack_into("<Q", content, 16, xxh64_of_16_bytes(bytes(content[:16])))
    return bytes(content)


@pytest.mark.parametrize("content, words", [
    (b"", ["empty"]),
    (b"#!/bin/sh\necho hello\n", ["not a recording"]),
    (bytes(range(256)) * 64, ["not a recording"]),
    (OTHER_TEXT, ["not a recording"]),
    (gzip.compress(OTHER_TEXT), ["compressed file, not a recording"]),
    # One raw block in a zstd frame: magic, descriptor, size, block header, content.
    (b"\x28\xb5\x2f\xfd\x20" + bytes([len(OTHER_TEXT)]) +
     (len(OTHER_TEXT) << 3 | 1).to_bytes(3, "little") + OTHER_TEXT, ["compressed file, not a recording"]),
])
def test_files_that_are_no_recordings(scratch, content, words):
    (scratch / "given.cairn").write_bytes(content)
    for form in (["report", "given.cairn"], ["--analyze", "given.cairn"], ["given.cairn"]):
        refuse(scratch, form, 2, "given.cairn", *words)


def test_files_that_are_not_there(scratch):
    refuse(scratch, ["report", "gone.cairn"], 2, "gone.cairn", "no such")
    refuse(scratch, ["report", "."], 2, "directory")


def test_a_recording_of_a_later_version(record, scratch):
    content = with_later_version(record(PROGRAMS / "ending"))
    (scratch / "later.cairn").write_bytes(content)
    refuse(scratch, ["report", "later.cairn"], 2, "later.cairn", "newer")


@pytest.mark.parametrize("arguments, words", [
    (["--pid", "1", "true"], ["contradict"]),
    (["--no-such-option", "true"], ["--no-such-option"]),
    (["record", "--max-frames", "many", "true"], ["--max-frames", "many"]),
    (["record", "--overflow", "perhaps", "true"], ["--overflow", "perhaps"]),
    (["record", "--checkpoint-interval", "-1", "true"], ["--checkpoint-interval"]),
    (["record"], ["program"]),
    (["report"], ["file"]),
    (["report", "-n", "x", "f"], ["-n"]),
    (["report", "--sort", "beauty", "f"], ["--sort", "beauty"]),
    (["report", "--filter-function", "(", "f"], ["--filter-function"]),
])
def test_command_lines_that_make_no_sense(scratch, arguments, words):
    refuse(scratch, arguments, 2, *words)
