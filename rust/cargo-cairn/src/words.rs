// SPDX-License-Identifier: MIT
//! The command line: words for this program, for cargo, and behind `--` for the recorded program.

pub const USAGE: &str = "\
Usage: cargo cairn run|test|bench|build|diff [options] [options of cargo] [-- ARGS]

Build with debug information, run, and record the heap with cairn.

  run     like `cargo run`, then the report
  test    like `cargo test`; then each test that has a budget in cairn.toml is
          run alone:

              [[test]]
              name = \"tests::parses*\"      # as `cargo test -- --list` has it
              max-peak = \"1MiB\"
              max-allocations = 100

  bench   like `cargo bench`
  build   like `cargo build`, then the command that records each program
  diff    like `run`, then what has changed since the baseline of the branch; the
          first run is the baseline

Options:
      --view           open the viewer, in place of the report
      --no-report      no report
      --cairn=OPTION   an option of `cairn record`, such as --cairn=--sample;
                       repeatable
      --save           with diff: the new run becomes the baseline
      --from=BRANCH    with diff: compare with the baseline of this branch
  -h, --help           show this text

Recordings are in target/cairn. The exit status is cargo's; that of test is 101 if
a budget is exceeded, and that of diff 1 if the program needs more memory.
";

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub verb: String,
    pub is_viewed: bool,
    pub is_silent: bool,
    pub is_saved: bool,
    pub from_branch: Option<String>,
    pub of_cairn: Vec<String>,
    /// All else, in its order, `--` and what follows included.
    pub of_cargo: Vec<String>,
}

/// `Ok(None)`: the usage is asked for.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Option<Words>, String> {
    let mut words = words.into_iter();
    let verb = match words.next() {
        None => return Ok(None),
        Some(word) if ["help", "-h", "--help"].contains(&word.as_str()) => return Ok(None),
        Some(word) => word,
    };
    if !["run", "test", "bench", "build", "diff"].contains(&verb.as_str()) {
        return Err(format!("'{verb}' is no command; there are run, test, bench, build and diff"));
    }
    let mut out = Words { verb, ..Words::default() };
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (word.as_str(), None),
        };
        let mut value = || value.clone().or_else(|| words.next());
        let missing = || format!("{name} needs a value");
        match name {
            "-h" | "--help" => return Ok(None),
            "--view" => out.is_viewed = true,
            "--no-report" => out.is_silent = true,
            "--save" => out.is_saved = true,
            "--from" => out.from_branch = Some(value().ok_or_else(missing)?),
            "--cairn" => out.of_cairn.push(of_record(value().ok_or_else(missing)?)?),
            "--" => {
                out.of_cargo.push(word);
                out.of_cargo.extend(words.by_ref());
            }
            _ => out.of_cargo.push(word),
        }
    }
    let is_diff = out.verb == "diff";
    if !is_diff && (out.is_saved || out.from_branch.is_some()) {
        return Err("--save and --from are options of diff".into());
    }
    Ok(Some(out))
}

/// The place of the recording is decided here, and shown afterwards.
fn of_record(option: String) -> Result<String, String> {
    if option.starts_with("-o") || option.starts_with("--output") {
        return Err(format!(
            "--cairn={option}: recordings are in target/cairn; copy it from there"
        ));
    }
    Ok(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Option<Words>, String> {
        parse(text.split_whitespace().map(String::from))
    }

    #[test]
    fn words_go_to_the_program_that_they_are_for() {
        let found = words("diff --release --view --cairn=--sample --cairn --python --bin x --save --from=a -- --view -h");
        let found = found.unwrap().unwrap();
        assert_eq!(found.of_cargo.join(" "), "--release --bin x -- --view -h");
        assert_eq!(found.of_cairn, ["--sample", "--python"]);
        assert!(found.is_viewed && found.is_saved && !found.is_silent);
        assert_eq!(found.from_branch.as_deref(), Some("a"));
    }

    #[test]
    fn mistakes_are_told() {
        for text in
            ["fly", "run --save", "run --from x", "diff --from", "run --cairn", "run --cairn=-o"]
        {
            assert!(words(text).is_err(), "{text}");
        }
        for text in ["", "help", "run --help", "test -h"] {
            assert_eq!(words(text), Ok(None), "{text}");
        }
    }
}
