// SPDX-License-Identifier: MIT
//! The program `cairn`: whether it is there and new enough, and what its end means.
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

pub fn could_not_run(command: &Command, problem: &std::io::Error) -> String {
    let name = command.get_program().to_string_lossy();
    if name == "cairn" && problem.kind() == std::io::ErrorKind::NotFound {
        return "cairn is not in PATH".into();
    }
    format!("cannot run {name}: {problem}")
}

/// The status as a shell has it.
pub fn status_of(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Fails before anything is built, which can take long.
pub fn require() -> Result<(), String> {
    let mut command = Command::new("cairn");
    let done = command.arg("--version").output();
    let done = done.map_err(|problem| could_not_run(&command, &problem))?;
    let said = String::from_utf8_lossy(&done.stdout);
    judge(said.trim(), env!("CARGO_PKG_VERSION"))
}

/// `said`: `cairn 1.2.3`. This crate uses what the cairn of its own version has.
fn judge(said: &str, own: &str) -> Result<(), String> {
    let own = release(own).ok_or("this program has no version")?;
    match said.strip_prefix("cairn ").and_then(release) {
        Some(found) if found >= own => Ok(()),
        Some(_) => Err(format!("{said} is too old: {}.{} or newer is needed", own.0, own.1)),
        None => {
            Err("the program cairn in PATH is another one: it does not tell its version".into())
        }
    }
}

fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn older_and_other_programs_are_refused() {
        for (said, wanted) in [
            ("cairn 1.2.0", ""),
            ("cairn 1.10.3", ""),
            ("cairn 2.0.0-rc1", ""),
            ("cairn 1.1.9", "cairn 1.1.9 is too old: 1.2 or newer is needed"),
            ("cairn 0.9", "cairn 0.9 is too old: 1.2 or newer is needed"),
            ("", "the program cairn in PATH is another one: it does not tell its version"),
            (
                "cairns 3.0",
                "the program cairn in PATH is another one: it does not tell its version",
            ),
        ] {
            assert_eq!(judge(said, "1.2.4").err().unwrap_or_default(), wanted);
        }
    }
}
