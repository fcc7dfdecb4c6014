// SPDX-License-Identifier: MIT
//! cargo-cairn: records the heap of what cargo builds, with cairn.
//!
//! ```text
//! cargo cairn run --release -- ARGS
//!   cargo-cairn          sets debug information and its runner
//!     cargo run          builds, and decides what runs, where, with which environment
//!       cargo-cairn      as the runner: names the recording, and becomes
//!         cairn record   which runs the program
//!   cargo-cairn          shows the report
//! ```
mod baseline;
mod budgets;
mod cargo;
mod json;
mod recorder;
mod runner;
mod test_runs;
mod words;

use cargo::Workspace;
use runner::Orders;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use words::Words;

const FAILURE: i32 = 2;
const NOTHING: &str = "nothing was recorded: does .cargo/config.toml name another runner?";
const SIGINT: i32 = 2;

extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
}

/// Ctrl-C ends the program; this process then shows what was recorded. A handler, unlike an ignored
/// signal, is not inherited by what is executed.
extern "C" fn go_on(_: i32) {}

fn main() -> ExitCode {
    // SAFETY: the handler does nothing.
    unsafe { signal(SIGINT, go_on) };
    let mut words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let done = match words.first().map(String::as_str) {
        Some("as-runner") => runner::run(&words[1..]),
        Some("cairn") => {
            words.remove(0); // how cargo calls it
            begin(words)
        }
        _ => begin(words),
    };
    let status = done.unwrap_or_else(|message| {
        eprintln!("cargo-cairn: {message}");
        FAILURE
    });
    ExitCode::from(u8::try_from(status).unwrap_or(1))
}

fn begin(words: Vec<String>) -> Result<i32, String> {
    match words::parse(words)? {
        None => {
            print!("{}", words::USAGE);
            Ok(0)
        }
        Some(words) if words.verb == "build" => build(&words),
        Some(words) => run(&words),
    }
}

/// A path for people: below the current folder where it is.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

fn build(words: &Words) -> Result<i32, String> {
    let (executables, status) = cargo::build(&words.of_cargo)?;
    for path in executables {
        println!("cairn {}", shown(Path::new(&path)));
    }
    Ok(status)
}

fn run(words: &Words) -> Result<i32, String> {
    recorder::require()?;
    let workspace = Workspace::find(&words.of_cargo)?;
    runner::begin(&workspace.folder)?;
    let verb = if words.verb == "diff" { "run" } else { &words.verb };
    let mut command = cargo::with_runner(&words.of_cargo)?;
    command.arg(verb).args(&words.of_cargo);
    Orders::give(words, &workspace, &mut command);
    let status = command.status().map_err(|problem| format!("cannot run cargo: {problem}"))?;
    let status = recorder::status_of(status);
    let unmatched = test_runs::unmatched(&workspace.folder);
    for name in unmatched.iter().filter(|_| status == 0) {
        eprintln!(
            "cargo-cairn: cairn.toml has a budget for '{name}', and no test that ran has that name"
        );
    }
    let mut made = runner::made(&workspace.folder);
    made.retain(|path| path.exists());
    if words.verb == "diff" {
        return if status == 0 { compare(&made, words, &workspace) } else { Ok(status) };
    }
    if made.is_empty() && status == 0 && words.verb != "test" {
        return Err(NOTHING.into()); // of tests, those in documentation are not recorded
    }
    show(&made, words)?;
    Ok(status)
}

fn compare(made: &[PathBuf], words: &Words, workspace: &Workspace) -> Result<i32, String> {
    match made {
        [one] => baseline::compare(&workspace.folder, one, words),
        _ => Err(NOTHING.into()),
    }
}

/// One recording of a program is shown; several, and those of tests, are named.
fn show(made: &[PathBuf], words: &Words) -> Result<(), String> {
    let command = if words.is_viewed { "analyze" } else { "report" };
    match made {
        _ if words.is_silent => Ok(()),
        [one] if words.verb != "test" || words.is_viewed => {
            let mut report = Command::new("cairn");
            report.arg(command).arg(one);
            report.status().map_err(|problem| recorder::could_not_run(&report, &problem))?;
            println!("Recording: {}", shown(one));
            Ok(())
        }
        _ => {
            made.iter().for_each(|path| println!("cairn {command} {}", shown(path)));
            Ok(())
        }
    }
}
