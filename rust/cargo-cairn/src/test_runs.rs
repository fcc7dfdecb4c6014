// SPDX-License-Identifier: MIT
//! Tests: all of them recorded in one run, then each one alone that has a budget in cairn.toml.
//!
//! In a run of one test the peak, the leaks and the resident size are those of the process. The
//! allocations are those of the test's function and of the closures in it, since libtest allocates
//! as well.
use crate::budgets::{self, TestBudget};
use crate::recorder::{could_not_run, status_of};
use crate::runner::{without_patterns, Orders};
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const FAILED: i32 = 101; // libtest's status

/// Limits that apply to the test's function.
const OF_FUNCTION: [&str; 3] = ["max-allocations", "max-allocated", "max-temporary-share"];

/// The status of the tests, or that of the budgets if these alone fail.
pub fn run(
    orders: &Orders,
    program: &str,
    arguments: &[String],
    all: &mut Command,
) -> Result<i32, String> {
    let budgets = budgets_here(orders)?;
    let status = all.status().map_err(|problem| could_not_run(all, &problem))?;
    let status = status_of(status);
    if budgets.is_empty() {
        return Ok(status);
    }
    let every = list(program, &[]);
    note_unmatched(orders, &budgets, &every);
    let ignored = match arguments.iter().any(|word| word.ends_with("ignored")) {
        true => HashSet::new(),
        false => list(program, &["--ignored".into()]).into_iter().collect(),
    };
    let selected: HashSet<String> = list(program, arguments).into_iter().collect();
    let tests: Vec<(&str, Vec<(&str, &str)>)> = every
        .iter()
        .filter(|test| selected.contains(*test) && !ignored.contains(*test))
        .map(|test| (test.as_str(), limits_of(&budgets, test)))
        .filter(|(_, limits)| !limits.is_empty())
        .collect();
    if tests.is_empty() {
        return Ok(status);
    }
    let is_kept = judge(orders, program, &tests, every.len() - tests.len())?;
    Ok(if status == 0 && !is_kept { FAILED } else { status })
}

/// Those of the package, whose folder tests run in, else of the workspace.
fn budgets_here(orders: &Orders) -> Result<Vec<TestBudget>, String> {
    let own = Path::new("cairn.toml");
    if own.exists() {
        return budgets::read(own);
    }
    budgets::read(&orders.root.join("cairn.toml"))
}

/// The tests that libtest lists; none of an executable with a harness of its own.
fn list(program: &str, arguments: &[String]) -> Vec<String> {
    let done = Command::new(program).args(arguments).args(["--list", "--format", "terse"]).output();
    let text = match done {
        Ok(done) if done.status.success() => String::from_utf8(done.stdout).unwrap_or_default(),
        _ => String::new(),
    };
    text.lines().filter_map(|line| line.strip_suffix(": test")).map(String::from).collect()
}

/// Adds to the file `names` whether each budget has a test here: `1 name` or `0 name`.
fn note_unmatched(orders: &Orders, budgets: &[TestBudget], tests: &[String]) {
    let file = fs::OpenOptions::new().create(true).append(true).open(orders.folder.join("names"));
    for budget in budgets {
        let is_matched = tests.iter().any(|test| budget.matches(test));
        if let Ok(mut file) = file.as_ref() {
            let _ = writeln!(file, "{} {}", u8::from(is_matched), budget.name); // a warning less
        }
    }
}

/// Names of budgets that had no test in any executable.
pub fn unmatched(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("names")).unwrap_or_default();
    let _ = fs::remove_file(folder.join("names")); // there may be none
    let of = |sign: &'static str| text.lines().filter_map(move |line| line.strip_prefix(sign));
    let matched: HashSet<&str> = of("1 ").collect();
    let mut names: Vec<String> =
        of("0 ").filter(|name| !matched.contains(name)).map(String::from).collect();
    names.sort();
    names.dedup();
    names
}

/// Of several budgets for a test the last one that sets a limit decides.
fn limits_of<'a>(budgets: &'a [TestBudget], test: &str) -> Vec<(&'a str, &'a str)> {
    let mut limits: Vec<(&str, &str)> = Vec::new();
    for (name, value) in
        budgets.iter().filter(|budget| budget.matches(test)).flat_map(|budget| &budget.limits)
    {
        limits.retain(|(known, _)| known != name);
        limits.push((name, value));
    }
    limits
}

/// Runs each test alone; whether all budgets were kept. Speaks as libtest does.
fn judge(
    orders: &Orders,
    program: &str,
    tests: &[(&str, Vec<(&str, &str)>)],
    others: usize,
) -> Result<bool, String> {
    let begin = Instant::now();
    let plural = if tests.len() == 1 { "" } else { "s" };
    println!("running {} budget{plural}", tests.len());
    let mut failures = Vec::new();
    for (test, limits) in tests {
        print!("test {test} ... ");
        let _ = std::io::stdout().flush(); // a closed stdout ends nothing
        match check(orders, program, test, limits)? {
            None => println!("ok"),
            Some(said) => {
                println!("FAILED");
                failures.push((test, said));
            }
        }
    }
    if !failures.is_empty() {
        println!("\nfailures:\n");
        for (test, said) in &failures {
            println!("---- {test} budget ----\n{}\n", said.trim_end());
        }
        println!("\nfailures:");
        failures.iter().for_each(|(test, _)| println!("    {test}"));
    }
    println!(
        "\nbudget result: {}. {} passed; {} failed; 0 ignored; 0 measured; {others} filtered out; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        tests.len() - failures.len(),
        failures.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(failures.is_empty())
}

/// What `cairn check` says, if the budget is exceeded or the test fails.
fn check(
    orders: &Orders,
    program: &str,
    test: &str,
    limits: &[(&str, &str)],
) -> Result<Option<String>, String> {
    let mut command = Command::new("cairn");
    let recording = orders.folder.join("test-budget.cairn");
    command.args(["check", "--no-config", "-o"]).arg(without_patterns(&recording));
    let option = |(name, value): &(&str, &str)| format!("--{name}={value}");
    let (of_function, of_process): (Vec<_>, Vec<_>) =
        limits.iter().partition(|(name, _)| OF_FUNCTION.contains(name));
    command.args(of_process.iter().map(option));
    if !of_function.is_empty() {
        command.arg(format!("--function={}", function_of(test)));
        command.args(of_function.iter().map(option));
    }
    command.args(&orders.of_cairn).arg("--").arg(program);
    command.args([test, "--exact", "--test-threads=1", "--include-ignored"]);
    let done = command.output().map_err(|problem| could_not_run(&command, &problem))?;
    if done.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    Ok(Some(said.into_owned()))
}

/// A regular expression for the functions of a test: `a::b` is `CRATE::a::b`, and its closures are
/// `CRATE::a::b::{{closure}}`.
fn function_of(test: &str) -> String {
    let mut name = String::new();
    for c in test.chars() {
        if !c.is_alphanumeric() && c != '_' && c != ':' {
            name.push('\\');
        }
        name.push(c);
    }
    format!("^\\w+::{name}(::|$)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_budget_decides_for_each_limit() {
        let budget = |name: &str, limits: &[(&str, &str)]| TestBudget {
            name: name.into(),
            limits: limits.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
        };
        let budgets = [
            budget("a*", &[("max-peak", "1"), ("max-leaked", "2")]),
            budget("b", &[("max-peak", "3")]),
            budget("ab", &[("max-peak", "4")]),
        ];
        assert_eq!(limits_of(&budgets, "ab"), [("max-leaked", "2"), ("max-peak", "4")]);
        assert_eq!(limits_of(&budgets, "c"), []);
    }

    #[test]
    fn functions_of_tests_are_matched_whole() {
        assert_eq!(function_of("tests::r#fn"), "^\\w+::tests::r\\#fn(::|$)");
    }
}
