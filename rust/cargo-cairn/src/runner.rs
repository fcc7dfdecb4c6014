// SPDX-License-Identifier: MIT
//! What cargo starts in place of the program: it records the program, and judges budgets of tests.
//!
//! The first process leaves its orders in the environment, and the recordings that were made are in
//! the file `made` of the folder, a line each.
use crate::cargo::Workspace;
use crate::recorder::could_not_run;
use crate::test_runs;
use crate::words::Words;
use std::env;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PREFIX: &str = "CARGO_CAIRN_";

/// What the runner needs from the first process.
pub struct Orders {
    pub verb: String,
    pub folder: PathBuf,
    pub root: PathBuf,
    pub of_cairn: Vec<String>,
}

impl Orders {
    /// Into the environment of cargo, with the names of what else was set there.
    pub fn give(words: &Words, workspace: &Workspace, cargo: &mut Command) {
        let verb = if words.verb == "diff" { "run" } else { &words.verb };
        let set: Vec<_> = cargo.get_envs().map(|(name, _)| name.to_string_lossy()).collect();
        let orders = [
            ("VERB", verb.to_string()),
            ("FOLDER", workspace.folder.to_string_lossy().into_owned()),
            ("ROOT", workspace.root.to_string_lossy().into_owned()),
            ("OPTIONS", words.of_cairn.join("\n")),
            ("SET", set.join("\n")),
        ];
        cargo.envs(orders.map(|(name, value)| (format!("{PREFIX}{name}"), value)));
    }

    /// Reads and removes them: the program has the environment that it would have without us.
    fn take() -> Option<Orders> {
        let take = |name: &str| {
            let name = format!("{PREFIX}{name}");
            let value = env::var(&name).ok();
            env::remove_var(&name);
            value
        };
        let (verb, folder, root, options) =
            (take("VERB"), take("FOLDER"), take("ROOT"), take("OPTIONS"));
        for name in take("SET").unwrap_or_default().lines() {
            env::remove_var(name); // before there is a second thread
        }
        Some(Orders {
            verb: verb?,
            folder: folder?.into(),
            root: root?.into(),
            of_cairn: options?.lines().map(String::from).collect(),
        })
    }

    /// `cairn record` for a program, without its words.
    pub fn record(&self, to: &Path, program: &str) -> Command {
        let mut command = Command::new("cairn");
        command.args(["record", "-q", "-o"]).arg(without_patterns(to)).args(&self.of_cairn);
        command.arg("--").arg(program);
        command
    }
}

/// In names of recordings `%` begins a pattern.
pub fn without_patterns(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%%")
}

/// The name of a program, without the hash that cargo gives to executables of tests.
fn name_of(program: &str) -> String {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|c| c.is_ascii_hexdigit()) => {
            name.to_string()
        }
        _ => name,
    }
}

pub fn made(folder: &Path) -> Vec<PathBuf> {
    let text = fs::read_to_string(folder.join("made")).unwrap_or_default();
    text.lines().map(PathBuf::from).collect()
}

/// Empties the list of recordings.
pub fn begin(folder: &Path) -> Result<(), String> {
    let tell = |problem| format!("cannot write to {}: {problem}", folder.display());
    fs::create_dir_all(folder).map_err(tell)?;
    test_runs::unmatched(folder); // of an earlier call
    fs::write(folder.join("made"), "").map_err(tell)
}

/// A name that no recording of this call has, noted in the list.
fn new_recording(orders: &Orders, program: &str) -> Result<PathBuf, String> {
    let known = made(&orders.folder);
    let stem = format!("{}-{}", orders.verb, name_of(program));
    let names = std::iter::once(format!("{stem}.cairn"))
        .chain((2..).map(|number| format!("{stem}-{number}.cairn")));
    let mut paths = names.map(|name| orders.folder.join(name));
    let path = paths.find(|path| !known.contains(path)).ok_or("no name is left")?;
    let _ = fs::remove_file(&path); // of an earlier call, if any
    let list = fs::OpenOptions::new().append(true).open(orders.folder.join("made"));
    list.and_then(|mut list| writeln!(list, "{}", path.display()))
        .map_err(|problem| format!("cannot write to {}: {problem}", orders.folder.display()))?;
    Ok(path)
}

/// Becomes the program, recorded; returns only if that fails, or after the budgets of tests.
pub fn run(words: &[String]) -> Result<i32, String> {
    let (program, arguments) = words.split_first().ok_or("cargo names no program")?;
    let orders = match Orders::take() {
        Some(orders) if !is_question(arguments) => orders,
        _ => return Err(become_it(Command::new(program).args(arguments))),
    };
    let path = new_recording(&orders, program)?;
    let mut command = orders.record(&path, program);
    command.args(arguments);
    if orders.verb == "test" {
        return test_runs::run(&orders, program, arguments, &mut command);
    }
    Err(become_it(&mut command))
}

/// A listing of tests is for a program, and no run.
fn is_question(arguments: &[String]) -> bool {
    arguments.iter().any(|word| ["--list", "--help", "-h"].contains(&word.as_str()))
}

fn become_it(command: &mut Command) -> String {
    let problem = command.exec();
    could_not_run(command, &problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_named_after_programs() {
        for (program, wanted) in [
            ("target/debug/app", "app"),
            ("target/debug/deps/my_app-0123456789abcdef", "my_app"),
            ("target/debug/my-app", "my-app"),
            ("/a/my-0123456789abcdeg", "my-0123456789abcdeg"),
        ] {
            assert_eq!(name_of(program), wanted);
        }
    }
}
