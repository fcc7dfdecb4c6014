# SPDX-License-Identifier: MIT
"""rust/cargo-cairn: `cargo cairn run`, `test`, `bench`, `build` and `diff` in packages of the test."""
import os
import re

import pytest

from cairn_run import PROGRAMS, ROOT, Recording
from cargo_project import Project
from cargo_run import RUST


@pytest.fixture(scope="module", name="project")
def fixture_project(tmp_path_factory):
    return Project(tmp_path_factory.mktemp("project") / "app")


def report_of(path):
    return Recording(path, None).report_json()


def test_run_records_the_program_alone_with_names_and_lines(project):
    """In a release build, whose profile has no debug information. The status is the program's."""
    output, said = project.run("cargo cairn run --release --offline -- 3", status=3)
    assert output.endswith("\nRecording: target/cairn/run-app.cairn\n")
    assert "1001 words\n" in output and re.search(r"app::words +lib\.rs:3", output), output
    assert "Finished release [optimized + debuginfo]" in said
    report = report_of(project.recording("run-app"))
    assert [process["command_line"] for process in report["processes"]] == ["target/release/app 3"]
    sites = {site["function"]: site["costs"] for site in report["top"]["allocations"]}
    assert sites["app::words"]["allocations"] >= 1001


@pytest.mark.nightly
def test_options_go_to_cairn_and_no_report_is_shown(project):
    output, _ = project.run("cargo cairn run --no-report --cairn=--sample=64k -q")
    assert output == "1001 words\n" and report_of(project.recording("run-app"))["run"]["sampling"]["sample_bytes"] == 65536


@pytest.mark.nightly
def test_the_whole_environment_and_profile_can_be_the_users(project):
    _, said = project.run("cargo cairn run --release --no-report", env={"CARGO_PROFILE_RELEASE_DEBUG": "false"},
                          status=101)  # the program finds a variable that the user has set
    assert "Finished release [optimized]" in said


BUDGETS = """
[check]
max-peak = "1GiB"
[[test]]
name = "tests::*"
max-allocations = 9
max-leaked = 0
[[test]]
name = "holds"        # libtest has a buffer, too
max-peak = "2MiB"
"""


@pytest.mark.nightly
def test_tests_are_recorded_and_judged_by_name_in_the_words_of_libtest(project):
    project.write("cairn.toml", BUDGETS)
    output, said = project.run("cargo cairn test", status=101)
    assert "test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out" in output
    first, _, second = output.partition("failures:\n\n---- tests::spawns budget ----\n")
    assert "running 2 budgets\ntest tests::spawns ... FAILED\ntest tests::splits ... ok\n" in first, output
    assert re.search(r"BROKEN  max-allocations of .*tests::spawns.* 10; at most 9 allowed", second)
    assert re.search(r"\nfailures:\n    tests::spawns\n\nbudget result: FAILED\. 1 passed; 1 failed; 0 ignored; 0 measured; "
                     r"1 filtered out; finished in \d+\.\d\ds\n", second), second
    assert "nobody" not in said and project.recording("test-app").exists()

    project.write("cairn.toml", BUDGETS.replace("= 9", "= 10") + '[[test]]\nname = "nobody"\nmax-peak = 1\n')
    output, said = project.run("cargo cairn test")
    assert output.count("budget result: ok.") == 2 and "running 1 budget\ntest holds ... ok\n" in output
    assert "cairn.toml has a budget for 'nobody', and no test that ran has that name" in said
    assert re.search(r"^cairn report target/cairn/test-outer\.cairn$", output, re.M)
    assert report_of(project.recording("test-outer"))["totals"]["peak_bytes"] >= 1 << 20

    output, _ = project.run("cargo cairn test -- splits")
    assert output.count("test tests::splits ... ok") == 2 and "tests::spawns" not in output and "holds" not in output
    output, _ = project.run("cargo cairn test --lib -- --list")
    assert "tests::later: test" in output and "budget" not in output

    project.write("cairn.toml", '[[test]]\nname = "holds"\nmax-peak = "1MiB"\n')
    output, _ = project.run("cargo cairn test --test outer", status=101)
    assert re.search(r"BROKEN  max-peak +1\.0\d MiB; at most 1\.00 MiB allowed", output), output

    project.write("cairn.toml", '[[test]]\nname = "holds"\nmax-peek = "1MiB"\n')
    output, said = project.run("cargo cairn test --test outer", status=2)
    assert output == "" and "cairn.toml:3: unknown setting max-peek" in said
    (project.folder / "cairn.toml").unlink()


@pytest.mark.nightly
def test_check_reads_the_same_file(project):
    """`cairn check` takes the tables of tests for another's, and judges its own."""
    project.write("cairn.toml", BUDGETS)
    output, _ = project.run("cairn check -- /bin/true")
    assert re.search(r"ok +max-peak .* of 1\.00 GiB", output), output
    (project.folder / "cairn.toml").unlink()


@pytest.mark.nightly
def test_bench_and_build(project):
    output, _ = project.run("cargo cairn bench --bench speed")
    assert "fast 2\n" in output and report_of(project.recording("bench-speed"))["totals"]["allocations"] > 3
    output, _ = project.run("cargo cairn build --release")
    assert output == "cairn target/release/app\n"
    _, said = project.run("cargo cairn build --bin nobody", status=101)
    assert "no bin target named `nobody`" in said


@pytest.mark.nightly
def test_diff_has_a_baseline_for_each_branch(project):
    output, _ = project.run("cargo cairn diff")
    assert "This run is the baseline of main from now on" in output
    output, _ = project.run("cargo cairn diff")
    assert re.search(r"^VERDICT: ", output, re.M), output
    source = (project.folder / "src/main.rs").read_text()
    project.write("src/main.rs", source.replace("repeat(1000)", "repeat(3000)"))
    project.run("git symbolic-ref HEAD refs/heads/feature/more")
    output, _ = project.run("cargo cairn diff --from main", status=1)
    assert re.search(r"app::words", output) and re.search(r"^VERDICT: .*", output, re.M)
    output, _ = project.run("cargo cairn diff")
    assert "This run is the baseline of feature/more from now on" in output
    project.run("git symbolic-ref HEAD refs/heads/main")
    project.run("cargo cairn diff", status=1)
    project.run("cargo cairn diff --save")
    project.run("cargo cairn diff")
    _, said = project.run("cargo cairn diff --from nobody", status=2)
    assert "the branch nobody has no baseline" in said
    project.write("src/main.rs", source)
    project.run("cargo cairn diff -- 7", status=7)


def test_mistakes_are_told(project):
    _, said = project.run("cargo cairn fly", status=2)
    assert said == "cargo-cairn: 'fly' is no command; there are run, test, bench, build and diff\n"
    output, _ = project.run("cargo cairn --help")
    assert output.startswith("Usage: cargo cairn run|test|bench|build|diff")
    project.run("mkdir -p empty")
    settings = {"PATH": f"{project.folder}/bin:/usr/bin:/bin"}
    _, said = project.run("cargo cairn run", status=2, env=settings)
    assert said == "cargo-cairn: cairn is not in PATH\n"  # before cargo builds
    project.write("empty/cairn", "#!/bin/sh\necho cairn 0.9.1\n")
    (project.folder / "empty/cairn").chmod(0o755)
    settings["PATH"] = f"{project.folder}/empty:{settings['PATH']}"
    _, said = project.run("cargo cairn test", status=2, env=settings)
    assert said == "cargo-cairn: cairn 0.9.1 is too old: 1.0 or newer is needed\n"
    (project.folder / "empty/cairn").unlink()
    _, said = project.run("cargo cairn run --cairn=-o --cairn=mine.cairn", status=2)
    assert said == "cargo-cairn: --cairn=-o: recordings are in target/cairn; copy it from there\n"


def test_the_end_of_the_program_is_told(project):
    project.run("cargo cairn run -q --no-report -- abort", status=128 + 6)
    triple = "x86_64-unknown-linux-gnu" if os.uname().machine == "x86_64" else "aarch64-unknown-linux-gnu"
    project.write(".cargo/config.toml", f"[target.{triple}]\nrunner = 'true'\n")
    output, said = project.run("cargo cairn run -q", status=2)
    assert output == "" and "nothing was recorded: does .cargo/config.toml name another runner?" in said
    (project.folder / ".cargo/config.toml").unlink()


@pytest.mark.nightly
def test_a_global_allocator_changes_nothing(tmp_path):
    """jemalloc as the crates have it: linked statically, with the prefix _rjem_. The program states its counts."""
    library = PROGRAMS / "attach"
    source = (ROOT / "tests/programs/attach/rust_jemalloc.rs").read_text()
    project = Project(tmp_path / "app", {
        "src/main.rs": source,
        ".cargo/config.toml": f'[build]\nrustflags = ["-L", "native={library}", "-l", "static=rjem"]\n'})
    project.run("printf 'r\\nq\\n' | cargo cairn run --release --no-report > said.txt")
    sites = report_of(project.recording("run-app"))["top"]["allocations"]
    counts = [site["costs"]["allocations"] for site in sites if site["function"] == "app::build_boxes"]
    assert sorted(counts) == [1, 50], sites


MIMALLOC = """
use std::alloc::{GlobalAlloc, Layout};
extern "C" {
    fn mi_malloc_aligned(size: usize, align: usize) -> *mut u8;
    fn mi_realloc_aligned(old: *mut u8, size: usize, align: usize) -> *mut u8;
    fn mi_free(old: *mut u8);
}
struct Mimalloc;
unsafe impl GlobalAlloc for Mimalloc {
    unsafe fn alloc(&self, of: Layout) -> *mut u8 { mi_malloc_aligned(of.size(), of.align()) }
    unsafe fn dealloc(&self, old: *mut u8, _: Layout) { mi_free(old) }
    unsafe fn realloc(&self, old: *mut u8, of: Layout, size: usize) -> *mut u8 {
        mi_realloc_aligned(old, size, of.align())
    }
}
#[global_allocator]
static ALLOCATOR: Mimalloc = Mimalloc;
#[inline(never)]
fn build_boxes() -> Vec<Box<[u8; 100]>> {
    let mut boxes = Vec::with_capacity(50);
    for i in 0..50 { boxes.push(Box::new([i as u8; 100])); }
    boxes
}
fn main() { let boxes = build_boxes(); println!("{}", boxes.len()); std::mem::forget(boxes); }
"""


@pytest.mark.nightly
def test_mimalloc_changes_nothing(tmp_path):
    """50 boxes of 100 bytes and a vector of 50 pointers live at the end."""
    library = f"/usr/lib/{os.uname().machine}-linux-gnu/libmimalloc.so.2"
    project = Project(tmp_path / "app", {
        "src/main.rs": MIMALLOC, ".cargo/config.toml": f'[build]\nrustflags = ["-C", "link-arg={library}"]\n'})
    project.run("cargo cairn run --release --no-report > said.txt")
    costs = [site["costs"] for site in report_of(project.recording("run-app"))["top"]["allocations"]
             if site["function"] == "app::build_boxes"]
    assert sorted((cost["allocations"], cost["live_bytes"]) for cost in costs) == [(1, 50 * 8), (50, 50 * 100)]


@pytest.mark.nightly
def test_budgets_of_the_crate_are_judged(tmp_path):
    project = Project(tmp_path / "app", {
        "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dev-dependencies]\n'
                      f'cairn = {{ path = "{RUST}/cairn", features = ["budget"] }}\n',
        "src/lib.rs": "pub fn words(text: &str) -> Vec<String> { text.split(' ').map(String::from).collect() }\n"
                      "#[test] #[cairn::budget(allocations = 3)] fn few() { words(\"a b\"); }\n"
                      "#[test] #[cairn::budget(allocations = 3)] fn many() { words(\"a b c d\"); }\n"})
    for name in ("src/main.rs", "tests/outer.rs", "benches/speed.rs"):
        (project.folder / name).unlink()
    project.run("cargo test --lib")
    output, _ = project.run("cargo cairn test --lib", status=101)
    assert "test few ... ok" in output and "test many ... FAILED" in output
    assert "many: 5 allocations; at most 3 allowed" in output
