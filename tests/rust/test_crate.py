# SPDX-License-Identifier: MIT
"""rust/cairn and rust/cairn-macros: what a program reports by them is what cairn records, by every way in; without a
recorder they do nothing. The crates have the published layout, and pass rustfmt and clippy."""
import hashlib
import json
import os
import re
import subprocess
import tarfile

import pytest

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from cargo_run import NEWER, RUST, TARGET, built, cargo, run, rust_environment
from waiting import DEADLINE_SECONDS

TRUTH = re.compile(r"TRUTH: *(.*)")
LEAKED_NAME = "[pool table]"


@pytest.fixture(scope="module", name="counts")
def fixture_counts():
    """The example of the crate, which states its truth."""
    return built("build", "--locked", "-p", "cairn", "--example", "counts")["counts"]


def stated():
    text = (RUST / "cairn" / "examples" / "counts.rs").read_text()
    return {key: int(value) for key, value in (word.split("=") for word in TRUTH.search(text)[1].split())}


def record(path, *command, options=()):
    done = subprocess.run([CAIRN, "record", "-q", "-o", path, *options, "--", *command], capture_output=True, check=False,
                          env=environment({"IS_RECORDED": "1"}), timeout=DEADLINE_SECONDS)
    assert (done.returncode, done.stderr) == (0, b""), done
    return Recording(path, done)


def assert_counts(recording):
    """The pool's blocks, the event and the marks are those that the example states."""
    recording.assert_whole()
    of_pool = [(costs, frames) for costs, frames in recording.stacks() if frames[0]["function"] == LEAKED_NAME]
    wanted = stated()
    assert {cost: sum(costs[cost] for costs, _ in of_pool) for cost in wanted} == wanted
    marks = recording.report["marks"]
    assert [(mark["kind"], mark["text"]) for mark in marks] == [("phase", "filling"), ("mark", "freed one")]
    events = recording.report["adhoc"]["entries"]
    assert sum(event["weight"] for event in events) == 48 + 96, events
    return of_pool


@pytest.mark.parametrize("options", [[], ["--all-allocators"]], ids=["preload", "agent"])
def test_a_started_program(counts, tmp_path, options):
    of_pool = assert_counts(record(tmp_path / "counts.cairn", counts, options=options))
    functions = {next(frame["function"] for frame in frames[1:] if not frame["inlined"]) for _, frames in of_pool}
    assert functions == {"counts::take", "counts::grow"}


def test_the_callers_of_the_crate_are_call_sites(counts, tmp_path):
    """Not the crate's own functions, which are inlined there."""
    (tmp_path / "plain.rs").write_text(
        "#[inline(never)]\nfn take(byte: &u8) {\n    cairn::report_alloc(byte, 77)\n}\n"
        "fn main() {\n    take(&1)\n}\n")
    library = library_of_crate(tmp_path)
    run(["rustc", "--edition", "2021", "-g", "-L", tmp_path, "--extern", f"cairn={library}", "-o", tmp_path / "plain",
         tmp_path / "plain.rs"])
    plain = record(tmp_path / "plain.cairn", tmp_path / "plain")
    (site,) = [site for site in plain.report["top"]["allocations"] if site["costs"]["allocated_bytes"] == 77]
    assert (site["function"], site["line"]) == ("plain::take", 3), site
    done = subprocess.run([CAIRN, "check", "--github", "--filter-function", "pool table", "--max-leaked", "0", "--",
                           counts], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
                          timeout=DEADLINE_SECONDS)
    assert done.returncode == 1 and "examples/counts.rs,line=" in done.stdout, done.stdout


def test_an_attached_program(counts, tmp_path):
    with subprocess.Popen([counts, "wait"], env=environment()) as program:
        path = tmp_path / "attached.cairn"
        done = subprocess.run([CAIRN, "record", "-q", "-o", path, "-p", str(program.pid)], capture_output=True,
                              check=False, env=environment(), timeout=DEADLINE_SECONDS)
        assert (done.returncode, done.stderr, program.wait(DEADLINE_SECONDS)) == (0, b"", 0)
    assert_counts(Recording(path, done))


def library_of_crate(folder, *flags, has_std=True):
    """The crate as rustc alone makes it."""
    run(["rustc", "--edition", "2021", *flags, "--crate-type", "rlib", "--crate-name", "cairn", "--out-dir", folder,
         *(["--cfg", 'feature="std"'] if has_std else []), RUST / "cairn/src/lib.rs"])
    return folder / "libcairn.rlib"


@pytest.mark.nightly
def test_a_static_program(tmp_path):
    """With the agent, since the loader's preload cannot be."""
    flags = ["rustc", "--edition", "2021", "-C", "target-feature=+crt-static", "-C", "debuginfo=1", "-L", tmp_path]
    library = library_of_crate(tmp_path, *flags[3:])
    run([*flags, "--extern", f"cairn={library}", "-o", tmp_path / "counts",
         RUST / "cairn/examples/counts.rs"])
    assert "INTERP" not in run(["readelf", "-lW", tmp_path / "counts"])
    run([tmp_path / "counts"])
    assert_counts(record(tmp_path / "static.cairn", tmp_path / "counts"))


MUSL_PART = """
#![no_std]
static POOL: cairn::Pool = cairn::Pool::new("table");
static MEMORY: [u8; 512] = [0; 512];
#[panic_handler]
fn stop(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
#[no_mangle]
pub extern "C" fn part_work() -> i32 {
    let (one, other): (*const u8, *const u8) = (&MEMORY[0], &MEMORY[256]);
    POOL.alloc(one, 48);
    POOL.realloc(one, one, 96);
    let peak = cairn::Peak::begin();
    POOL.alloc(other, 100);
    POOL.free(other);
    cairn::event("taken", 5);
    i32::from(cairn::is_recording() && peak.end() == Some(100) && cairn::thread_stats().is_some())
}
"""
MUSL_MAIN = ("#include <stdlib.h>\nint part_work(void);\nvoid rust_eh_personality(void) {}\n"
             "int main(void) { free(malloc(10)); return 7 * part_work(); }\n")


@pytest.mark.nightly
@pytest.mark.parametrize("flags", [[], ["-static"]], ids=["dynamic", "static"])
def test_a_program_with_musl(tmp_path, flags):
    """The core of the crate, without std, in a library that Debian's musl-gcc links: Debian has no std of Rust for musl."""
    library = library_of_crate(tmp_path, "-O", "-C", "panic=abort", has_std=False)
    (tmp_path / "part.rs").write_text(MUSL_PART)
    (tmp_path / "main.c").write_text(MUSL_MAIN)
    run(["rustc", "--edition", "2021", "-O", "-C", "panic=abort", "--extern", f"cairn={library}", "--crate-type", "staticlib",
         "-o", tmp_path / "libpart.a", tmp_path / "part.rs"])
    run(["musl-gcc", *flags, "-o", tmp_path / "program", tmp_path / "main.c", tmp_path / "libpart.a"])
    assert "libc.so.6" not in run(["readelf", "-dW", tmp_path / "program"])
    run([tmp_path / "program"])  # 0: not recorded
    path = tmp_path / "musl.cairn"
    done = subprocess.run([CAIRN, "record", "-q", "-o", path, "--", tmp_path / "program"], capture_output=True, check=False,
                          env=environment(), timeout=DEADLINE_SECONDS)
    assert (done.returncode, done.stderr) == (7, b""), done
    of_pool = [costs for costs, frames in Recording(path, done).stacks() if frames[0]["function"] == LEAKED_NAME]
    assert {cost: sum(costs[cost] for costs in of_pool) for cost in ("allocations", "allocated_bytes", "live_bytes")} == {
        "allocations": 3, "allocated_bytes": 48 + 96 + 100, "live_bytes": 96}


@pytest.mark.nightly
def test_a_library_that_is_loaded_later(tmp_path):
    """The program of the C header's test loads it; its status says whether the call was recorded."""
    (tmp_path / "part.rs").write_text(
        '#[no_mangle]\npub extern "C" fn part_work() -> i32 {\n    cairn::event("late", 3);\n'
        "    i32::from(cairn::is_recording() && cairn::thread_stats().is_some())\n}\n")
    library = library_of_crate(tmp_path)
    run(["rustc", "--edition", "2021", "-L", tmp_path, "--crate-type", "cdylib", "--extern", f"cairn={library}", "-o",
         tmp_path / "libpart.so", tmp_path / "part.rs"])
    path = tmp_path / "late.cairn"
    done = subprocess.run([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / "api_loader", tmp_path / "libpart.so"],
                          capture_output=True, check=False, env=environment(), timeout=DEADLINE_SECONDS)
    assert done.returncode == 7, done
    assert [(event["weight"], event["name"]) for event in Recording(path, done).report["adhoc"]["entries"]] == [
        (3, "[event late]")]
    run([PROGRAMS / "api_loader", tmp_path / "libpart.so"])  # 0: not recorded


@pytest.mark.nightly
def test_without_a_recorder_a_call_is_a_load_and_a_branch(tmp_path):
    """The code of a release build, as binutils shows it, on the way without a recorder."""
    (tmp_path / "one.rs").write_text('#[no_mangle]\npub extern "C" fn one(block: *const u8) {\n'
                                     "    cairn::report_free(block)\n}\n")
    library = library_of_crate(tmp_path, "-O", has_std=False)
    run(["rustc", "--edition", "2021", "-O", "-L", tmp_path, "--crate-type", "cdylib", "--extern", f"cairn={library}",
         "-o", tmp_path / "one.so", tmp_path / "one.rs"])
    code = run(["objdump", "-d", "--no-show-raw-insn", "--disassemble=one", tmp_path / "one.so"])
    lines = re.findall(r"^ +([0-9a-f]+):\t(\S+) *(.*)$", code, re.M)
    if os.uname().machine == "x86_64":
        (_, address, where), (_, load, _), (_, test, _), (_, branch, operand) = lines[:4]
        assert (address, load, test) == ("lea", "mov", "test") and "cairn_api_here" in where, code
        goes_on = operand.split()[0] if branch == "je" else lines[4][0]
        assert branch in ("je", "jne") and (goes_on, "ret") in {(at, name) for at, name, _ in lines}, code


def test_budgets_with_and_without_a_recorder(tmp_path):
    tests = built("test", "--locked", "--no-run", "-p", "cairn", "--all-features", "--test", "budget")["budget"]
    assert "6 passed" in run([tests])
    recording = record(tmp_path / "budget.cairn", tests)
    assert b"6 passed" in recording.finished.stdout, recording.finished.stdout


@pytest.mark.nightly
def test_examples_of_the_documentation_run():
    said = cargo("test", "--locked", "-q", "--all-features", "--lib", "--bins")
    assert "0 failed" in said
    assert re.search(r"^test result: ok\. \d\d passed; 0 failed", cargo("test", "--locked", "-q", "-p", "cairn", "--doc",
                                                                        "--all-features"), re.M)


MISTAKES = [
    ('#[cairn::budget()] fn f() {}', "expected a limit: allocations, allocated, live or peak"),
    ('#[cairn::budget(most = 1)] fn f() {}', "expected a limit: allocations, allocated, live or peak"),
    ('#[cairn::budget(peak)] fn f() {}', "expected `=`"),
    ('#[cairn::budget(peak = )] fn f() {}', "expected a number of bytes, or a size such as \"10MiB\""),
    ('#[cairn::budget(peak = "10 apples")] fn f() {}', "expected a number of bytes, or a size such as \"10MiB\""),
    ('#[cairn::budget(allocations = "10k")] fn f() {}', "expected a number"),
    ('#[cairn::budget(allocations = -1)] fn f() {}', "expected a number"),
    ('#[cairn::budget(live = 0 peak = 1)] fn f() {}', "expected `,`"),
    ('#[cairn::budget(live = 0, live = 1)] fn f() {}', "this limit is set twice"),
    ('#[cairn::budget(live = 0)] struct S;', "a budget is for functions"),
    ('trait T { #[cairn::budget(live = 0)] fn f(); }', "a budget needs a function with a body"),
    ('#[cairn::budget(live = 0)] const fn f() {}', "a budget is not for a function with `const`"),
    ('#[cairn::budget(live = 0)] async fn f() {}', "a budget is not for a function with `async`"),
]


def test_mistakes_in_budgets_are_told_at_their_place(tmp_path):
    built("test", "--locked", "--no-run", "-p", "cairn", "--all-features", "--test", "budget")
    source = "".join(f"pub mod m{number} {{ {line} }}\n" for number, (line, _) in enumerate(MISTAKES))
    (tmp_path / "wrong.rs").write_text(source)
    newest = max((TARGET / "debug" / "deps").glob("libcairn-*.rlib"), key=lambda path: has_budget(path))
    said = run(["rustc", "--edition", "2021", "--crate-type", "lib", "--emit", "metadata", "--error-format", "json",
                "-L", TARGET / "debug" / "deps", "--extern", f"cairn={newest}", "-o", tmp_path / "out",
                tmp_path / "wrong.rs"], status=1)
    errors = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    found = {(error["spans"][0]["line_start"] - 1, error["message"]) for error in errors if error["spans"]}
    assert {(number, message) for number, (_, message) in enumerate(MISTAKES)} <= found, found


def has_budget(path):
    """Of the crate's builds those with the attribute come last."""
    return b"cairn_macros" in path.read_bytes(), path.stat().st_mtime


def vendor(crate, folder):
    """Unpack a packaged crate as `cargo vendor` does."""
    with tarfile.open(crate) as archive:
        archive.extractall(folder)
    checksum = hashlib.sha256(crate.read_bytes()).hexdigest()
    unpacked = folder / crate.stem
    (unpacked / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))


@pytest.mark.nightly
def test_packages_are_complete(tmp_path):
    """In the order in which crates are published: what is packaged first is the registry of what follows."""
    settings = {"CARGO_TARGET_DIR": str(TARGET.parent / "packages")}
    registry = tmp_path / "registry"
    registry.mkdir()
    replaced = ["--config", "source.crates-io.replace-with='packaged'", "--config",
                f"source.packaged.directory='{registry}'"]
    for name in ("cairn-macros", "cairn", "cargo-cairn"):
        said = cargo("package", "--allow-dirty", *replaced, "--manifest-path", RUST / name / "Cargo.toml", env=settings)
        assert "Verifying" in said and "error" not in said, said
        crate = TARGET.parent / "packages" / "package" / f"{name}-1.0.0.crate"
        vendor(crate, registry)
        with tarfile.open(crate) as archive:
            names = {member.name.partition("/")[2] for member in archive.getmembers()}
            assert archive.extractfile(f"{name}-1.0.0/LICENSE").read().startswith(b"MIT License")
        assert {"Cargo.toml", "README.md", "LICENSE"} <= names and names & {"src/lib.rs", "src/main.rs"}


@pytest.mark.nightly
def test_format_and_clippy():
    cargo("fmt", "--all", "--check")
    for words in (["--all-targets", "--all-features"], ["-p", "cairn", "--no-default-features"]):
        cargo("clippy", "--locked", *words, "--", "-D", "warnings")


@pytest.mark.nightly
@pytest.mark.parametrize("folder", [folder for folder in ("/usr/bin", NEWER) if os.path.exists(f"{folder}/cargo")])
def test_each_compiler_of_the_machine(folder):
    settings = {"PATH": f"{folder}:{rust_environment()['PATH']}", "RUSTUP_HOME": os.path.expanduser("~/.rustup"),
                "CARGO_TARGET_DIR": str(TARGET.parent / ("newer" if folder == NEWER else "older")), "RUSTDOCFLAGS": "-D warnings"}
    for words in (["--all-targets", "--all-features"], ["-p", "cairn", "--no-default-features"]):
        cargo("clippy", "--locked", *words, "--", "-D", "warnings", env=settings)
        cargo("doc", "--locked", "--no-deps", *[word for word in words if word != "--all-targets"], env=settings)
    assert "6 passed" in cargo("test", "--locked", "--all-features", env=settings)


STUBS = """
fn parse(text: &str) -> usize { text.len() }
fn handle(request: &str) { drop(String::from(request)) }
fn main() {
    let (node, count, line, request, file) = (&0u8 as *const u8, 3, "line", "request", "file");
"""


def test_the_code_of_the_guide_of_the_interface_compiles_and_runs(tmp_path):
    guide = (ROOT / "docs/user/program-api.md").read_text()
    (settings,), (code,) = (re.findall(f"^```{kind}\n(.*?)^```", guide, re.M | re.S) for kind in ("toml", "rust"))
    settings = settings.replace("/usr/share/cairn/rust", str(RUST))
    static, _, body = code.partition("\n")
    calls, _, test = body.partition("#[test]")
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text('[package]\nname = "guide"\nversion = "0.1.0"\nedition = "2021"\n' + settings)
    (tmp_path / "src/main.rs").write_text(f"{static}\n{STUBS}{calls}    drop(lines);\n}}\n#[test]{test.replace('...', '')}")
    cargo("run", cwd=tmp_path)
    assert "parses_in_little_memory ... ok" in cargo("test", cwd=tmp_path)
