# SPDX-License-Identifier: MIT
"""cargo_project: a package in a folder of the test, and `cargo cairn` in it."""
import subprocess

from cargo_run import built, rust_environment
from waiting import DEADLINE_SECONDS

FILES = {
    "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n'
                  '[[bench]]\nname = "speed"\nharness = false\n',
    "src/lib.rs": """
#[inline(never)]
pub fn words(text: &str) -> Vec<String> { text.split(' ').map(String::from).collect() }
#[cfg(test)]
mod tests {
    #[test] fn splits() { assert_eq!(super::words("a b c").len(), 3); }
    #[test] fn spawns() { std::thread::spawn(|| super::words("a b c").len()).join().unwrap(); }
    #[test] #[ignore] fn later() { panic!("never") }
}
""",
    # Its status is that of its argument, or it aborts. It has the environment that it would have without us.
    "src/main.rs": """
fn main() {
    assert!(std::env::vars().all(|(name, _)| !name.starts_with("CARGO_CAIRN") && !name.starts_with("CARGO_PROFILE")));
    let words = app::words(&"word ".repeat(1000));
    println!("{} words", words.len());
    std::process::exit(std::env::args().nth(1).map_or(0, |status| status.parse().unwrap_or_else(|_| std::process::abort())));
}
""",
    "tests/outer.rs": "#[test] fn holds() { let v = vec![1u8; 1 << 20]; assert_eq!(v[5], 1); }\n",
    "benches/speed.rs": "fn main() { println!(\"fast {}\", app::words(\"a b\").len()) }\n",
}


class Project:
    def __init__(self, folder, more=None):
        """Packages share nothing but the compiler: the target folder is the package's own."""
        self.folder = folder
        bin_folder = folder / "bin"
        bin_folder.mkdir(parents=True)
        (bin_folder / "cargo-cairn").symlink_to(built("build", "--locked", "-p", "cargo-cairn")["cargo-cairn"])
        self.settings = rust_environment()
        self.settings["PATH"] = f"{bin_folder}:{self.settings['PATH']}"
        self.settings["HOME"] = str(folder)
        del self.settings["CARGO_TARGET_DIR"]
        for name, text in {**FILES, **(more or {})}.items():
            self.write(name, text)
        self.run("git init -q -b main .")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, command, status=0, env=None):
        """Run a command line; return its output, and what it and cargo said of themselves."""
        done = subprocess.run(command, shell=True, cwd=self.folder, env={**self.settings, **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=DEADLINE_SECONDS * 2)
        assert done.returncode == status, (command, done.stdout, done.stderr)
        return done.stdout, done.stderr

    def recording(self, name):
        return self.folder / "target" / "cairn" / f"{name}.cairn"
