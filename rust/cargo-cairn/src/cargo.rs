// SPDX-License-Identifier: MIT
//! What cargo is asked: where the target folder is, which executables it built, and to run programs
//! by this program, its runner, so that cargo decides which program runs, where, and with which
//! environment.
use crate::json::{self, Value};
use crate::recorder::status_of;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The workspace that the current folder is in.
pub struct Workspace {
    pub root: PathBuf,
    /// Where recordings go: `target/cairn`.
    pub folder: PathBuf,
}

/// The cargo that started this program.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

/// The value of an option among cargo's words: `--name VALUE` or `--name=VALUE`.
fn value_of<'a>(words: &'a [String], name: &str) -> Option<&'a str> {
    let words = words.iter().take_while(|word| *word != "--");
    let mut words = words.map(String::as_str);
    while let Some(word) = words.next() {
        if word == name {
            return words.next();
        }
        if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

impl Workspace {
    /// `words`: those of cargo, which may name another manifest or target folder.
    pub fn find(words: &[String]) -> Result<Workspace, String> {
        let mut command = cargo();
        command.args(["metadata", "--format-version=1", "--no-deps"]);
        if let Some(manifest) = value_of(words, "--manifest-path") {
            command.args(["--manifest-path", manifest]);
        }
        let done = command.output(); // cargo will say its warnings when it builds
        let done = done.map_err(|problem| format!("cannot run cargo: {problem}"))?;
        if !done.status.success() {
            eprint!("{}", String::from_utf8_lossy(&done.stderr));
            return Err("cargo finds no package here".into());
        }
        let metadata = String::from_utf8(done.stdout).ok();
        let metadata = metadata.and_then(|text| json::parse(&text)).unwrap_or(Value::Null);
        let path = |name| metadata.get(name).and_then(Value::text).map(PathBuf::from);
        match (path("workspace_root"), path("target_directory")) {
            (Some(root), Some(target)) => {
                let target = value_of(words, "--target-dir").map_or(target, PathBuf::from);
                Ok(Workspace { root, folder: absolute(target)?.join("cairn") })
            }
            _ => Err("cargo's metadata have no target folder".into()),
        }
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf, String> {
    let here = env::current_dir().map_err(|problem| format!("no current folder: {problem}"))?;
    Ok(here.join(path))
}

/// Cargo with debug information in each profile that it may use, unless the user's environment says
/// otherwise.
pub fn with_debug_information(words: &[String]) -> Command {
    let mut command = cargo();
    let own = value_of(words, "--profile").unwrap_or("dev");
    for profile in ["dev", "release", "test", "bench", own] {
        let profile = profile.to_uppercase().replace('-', "_");
        for (setting, value) in [("DEBUG", "true"), ("STRIP", "none")] {
            let name = format!("CARGO_PROFILE_{profile}_{setting}");
            if env::var_os(&name).is_none() {
                command.env(name, value);
            }
        }
    }
    command
}

/// Cargo with this program as its runner.
pub fn with_runner(words: &[String]) -> Result<Command, String> {
    let own =
        env::current_exe().map_err(|problem| format!("this program has no path: {problem}"))?;
    let own = own.to_str().ok_or("the path of this program is not UTF-8")?;
    let own = own.replace('\\', "\\\\").replace('"', "\\\"");
    let mut command = with_debug_information(words);
    command.arg("--config").arg(format!("target.'cfg(all())'.runner=[\"{own}\", \"as-runner\"]"));
    Ok(command)
}

/// Builds; the executables, and cargo's exit status.
pub fn build(words: &[String]) -> Result<(Vec<String>, i32), String> {
    let mut command = with_debug_information(words);
    command.args(["build", "--message-format=json-render-diagnostics"]).args(words);
    let child = command.stdout(Stdio::piped()).spawn();
    let mut child = child.map_err(|problem| format!("cannot run cargo: {problem}"))?;
    let messages = child.stdout.take().map(BufReader::new);
    let mut executables = Vec::new();
    for line in messages.into_iter().flat_map(BufRead::lines).map_while(Result::ok) {
        let message = json::parse(&line).unwrap_or(Value::Null);
        if let Some(path) = message.get("executable").and_then(Value::text) {
            executables.push(path.to_string());
        }
    }
    let status = child.wait().map_err(|problem| format!("cargo is lost: {problem}"))?;
    Ok((executables, status_of(status)))
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn values_of_options_are_found() {
        let words: Vec<String> =
            ["--bin", "x", "--profile=fast", "--", "--target-dir", "y"].map(String::from).into();
        assert_eq!(value_of(&words, "--bin"), Some("x"));
        assert_eq!(value_of(&words, "--profile"), Some("fast"));
        assert_eq!(value_of(&words, "--target-dir"), None);
        assert_eq!(value_of(&words, "--b"), None);
    }
}
