# SPDX-License-Identifier: MIT
"""docs/user/rust.md: the first minutes of a user of Rust with Debian's cargo, from a clean home: each command of the page
in its order, with what the page shows. The folder of the sources does not change."""
import re
import subprocess

import pytest

from cairn_run import BUILD, ROOT, environment
from cargo_run import TARGET, rust_environment
from waiting import DEADLINE_SECONDS

GUIDE = (ROOT / "docs/user/rust.md").read_text()
WASTEFUL = """
pub fn parse(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for word in text.split(' ') {
        let copy = String::from(word);
        words.push(copy.clone());
    }
    words
}
"""
FRUGAL = """
pub fn parse(text: &str) -> Vec<&str> {
    let mut words = Vec::with_capacity(text.split(' ').count());
    words.extend(text.split(' '));
    words
}
"""
MAIN = 'fn main() {\n    println!("{}", app::parse(&"word ".repeat(1000)).len());\n}\n'


class User:
    """A home with a package, and a shell in it."""

    def __init__(self, folder):
        self.folder = folder
        subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / "usr"], check=True, env=environment(),
                       capture_output=True)
        self.share = folder / "usr/share/cairn"
        self.settings = {**rust_environment(), "HOME": str(folder), "PATH":
                         f"{folder}/.cargo/bin:{folder}/usr/bin:/usr/bin:/bin"}
        for name in ("CARGO_TARGET_DIR", "CARGO_HOME"):
            del self.settings[name]
        (folder / "app/src").mkdir(parents=True)
        (folder / "app/input.txt").write_text("")
        self.write("Cargo.toml", '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n')
        self.write("src/lib.rs", WASTEFUL)
        self.write("src/main.rs", MAIN)
        self.run("git init -q -b main .")

    def write(self, name, text):
        (self.folder / "app" / name).write_text(text.replace("/usr/share/cairn", str(self.share)))

    def run(self, command, status=0):
        command = command.replace("/usr/share/cairn", str(self.share)).replace("/tmp/cargo-cairn", f"{TARGET.parent}/install")
        done = subprocess.run(command, shell=True, cwd=self.folder / "app", env=self.settings, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS * 2)
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr


@pytest.fixture(name="user")
def fixture_user(tmp_path):
    return User(tmp_path)


def fences(kind):
    return [text for its, text in re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.M | re.S) if its == kind]


def test_each_command_of_the_guide_runs(user):
    commands = re.findall(r"^    (c(?:argo|airn) .*)$", GUIDE, re.M)
    install, run, report, run_more, diff, test = commands
    (dependency, budgets), (tests,), (site, broken) = fences("toml"), fences("rust"), fences("")
    before = {path: path.stat().st_mtime_ns for path in user.share.rglob("*")}

    user.settings["CARGO_PROFILE_RELEASE_OPT_LEVEL"] = "0"  # which takes a third of the time
    user.run(install)
    del user.settings["CARGO_PROFILE_RELEASE_OPT_LEVEL"]
    assert site in user.run(run)
    assert re.search(r"^  1\. +1,009 +49\.9% +app::parse\n +lib\.rs:6 in app", user.run(report), re.M)
    user.run(run_more)

    assert "This run is the baseline of main" in user.run(diff)
    user.write("src/lib.rs", FRUGAL)
    verdict, = re.findall(r"^    (VERDICT: .*)$", GUIDE, re.M)
    assert verdict in user.run(diff)
    user.write("src/lib.rs", WASTEFUL)
    assert "VERDICT" in user.run(diff)
    user.run(f"{diff} --save")
    user.run(f"{diff} --from main")

    user.write("Cargo.toml", (user.folder / "app/Cargo.toml").read_text() + dependency)
    (user.folder / "app/tests").mkdir()
    user.write("tests/words.rs", tests)
    user.run("cargo test")
    said = user.run(test, status=101)
    assert broken.strip() in said and "test parses_in_place ... FAILED\n" in said and "test frees_all ... ok\n" in said
    user.write("src/lib.rs", FRUGAL)
    user.run(test)

    user.write("src/lib.rs", FRUGAL + "#[cfg(test)]\nmod tests {\n    #[test] fn parses_all() { super::parse(\"a b\"); }\n"
               "    #[test] fn parses_one() { let _ = [0; 101].map(Box::new); }\n}\n")
    user.write("cairn.toml", budgets)
    shown = "".join(line + "\n" for line in re.findall(r"^    (running 2 .*|test tests::.*)$", GUIDE, re.M))
    assert shown.count("\n") == 3 and shown in user.run(test, status=101)
    assert {path: path.stat().st_mtime_ns for path in user.share.rglob("*")} == before
