// SPDX-License-Identifier: MIT
//! The baseline of each branch: `target/cairn/baseline/BRANCH/run-NAME.cairn`.
use crate::words::Words;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The branch of the current folder, as git has it, also before its first commit.
fn current_branch() -> String {
    let done = Command::new("git").args(["symbolic-ref", "-q", "--short", "HEAD"]).output();
    let name = match done {
        Ok(done) if done.status.success() => String::from_utf8(done.stdout).unwrap_or_default(),
        _ => String::new(),
    };
    let name = name.trim();
    if name.is_empty() { "no branch" } else { name }.to_string()
}

/// A folder's name for a branch: different branches have different ones.
fn folder_of(branch: &str) -> String {
    let mut name = String::new();
    for c in branch.bytes() {
        match c {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(c.into()),
            b'.' if !name.is_empty() => name.push('.'),
            _ => name = format!("{name}+{c:02x}"),
        }
    }
    name
}

/// Compares a new recording with its baseline; the status of the comparison.
pub fn compare(folder: &Path, recording: &Path, words: &Words) -> Result<i32, String> {
    let own_branch = current_branch();
    let from = words.from_branch.as_ref().unwrap_or(&own_branch);
    let place = |branch: &str| -> PathBuf {
        let name = recording.file_name().unwrap_or_default();
        folder.join("baseline").join(folder_of(branch)).join(name)
    };
    let (old, own) = (place(from), place(&own_branch));
    if !old.exists() {
        if words.from_branch.is_some() {
            return Err(format!("the branch {from} has no baseline: {}", old.display()));
        }
        save(recording, &own)?;
        println!("This run is the baseline of {own_branch} from now on: {}", own.display());
        return Ok(0);
    }
    let mut command = Command::new("cairn");
    if words.is_viewed {
        command.arg("analyze").arg("--diff").arg(&old).arg(recording);
    } else {
        command.arg("diff").arg(&old).arg(recording);
    }
    let done =
        command.status().map_err(|problem| crate::recorder::could_not_run(&command, &problem));
    let status = done?.code().unwrap_or(2);
    if words.is_saved && status < 2 {
        save(recording, &own)?;
        return Ok(0);
    }
    Ok(status)
}

fn save(recording: &Path, baseline: &Path) -> Result<(), String> {
    let folder = baseline.parent().unwrap_or(baseline);
    fs::create_dir_all(folder)
        .and_then(|()| fs::copy(recording, baseline))
        .map(|_| ())
        .map_err(|problem| format!("cannot write {}: {problem}", baseline.display()))
}

#[cfg(test)]
mod tests {
    use super::folder_of;

    #[test]
    fn branches_have_folders_of_their_own() {
        for (branch, wanted) in [
            ("main", "main"),
            ("feature/x", "feature+2fx"),
            ("feature+2fx", "feature+2b2fx"),
            ("..", "+2e."),
            ("v1.2", "v1.2"),
        ] {
            assert_eq!(folder_of(branch), wanted);
        }
    }
}
