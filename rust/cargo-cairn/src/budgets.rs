// SPDX-License-Identifier: MIT
//! The tables `[[test]]` of cairn.toml: budgets of tests by name.
//!
//! Only these tables are read, and `cairn check` reads the others, so a value goes to its option as
//! it is. The subset of TOML is cairn's: bare keys, texts on one line, whole numbers.
use std::fs;
use std::path::Path;

const LIMITS: [&str; 6] = [
    "max-peak",
    "max-allocations",
    "max-allocated",
    "max-leaked",
    "max-temporary-share",
    "max-rss",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestBudget {
    /// As libtest lists it; `*` stands for any text.
    pub name: String,
    /// Limit and value.
    pub limits: Vec<(String, String)>,
}

impl TestBudget {
    pub fn matches(&self, test: &str) -> bool {
        is_match(self.name.as_bytes(), test.as_bytes())
    }
}

/// Each `*` takes as little as it can; the last one that has to take more decides.
fn is_match(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut in_text, mut star) = (0, 0, None);
    while in_text < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, in_text));
            at += 1;
        } else if pattern.get(at) == Some(&text[in_text]) {
            at += 1;
            in_text += 1;
        } else if let Some((star_at, taken)) = star {
            star = Some((star_at, taken + 1));
            at = star_at + 1;
            in_text = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|c| *c == b'*')
}

/// A missing file has no budgets.
pub fn read(file: &Path) -> Result<Vec<TestBudget>, String> {
    match fs::read_to_string(file) {
        Ok(text) => parse(&text).map_err(|mistake| format!("{}:{mistake}", file.display())),
        Err(_) if !file.exists() => Ok(Vec::new()),
        Err(problem) => Err(format!("cannot read {}: {problem}", file.display())),
    }
}

fn parse(text: &str) -> Result<Vec<TestBudget>, String> {
    let mut budgets: Vec<TestBudget> = Vec::new();
    let mut lines_of: Vec<usize> = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.starts_with('[') {
            is_inside = line.split('#').next().map(str::trim_end) == Some("[[test]]");
            if is_inside {
                budgets.push(TestBudget::default());
                lines_of.push(number);
            }
        } else if let (true, Some(budget)) = (is_inside, budgets.last_mut()) {
            if !line.is_empty() && !line.starts_with('#') {
                set(budget, line).map_err(|mistake| format!("{number}: {mistake}"))?;
            }
        }
    }
    match budgets.iter().position(|budget| budget.name.is_empty()) {
        Some(at) => Err(format!("{}: a [[test]] needs a name", lines_of[at])),
        None => Ok(budgets),
    }
}

fn set(budget: &mut TestBudget, line: &str) -> Result<(), String> {
    let (key, value) = line.split_once('=').ok_or("expected KEY = VALUE")?;
    let key = key.trim_end();
    let value = value_of(value.trim_start())
        .ok_or_else(|| format!("{key}: expected a number, or a text in quotes on one line"))?;
    if key == "name" {
        budget.name = value;
        return Ok(());
    }
    if !LIMITS.contains(&key) {
        return Err(format!("unknown setting {key}; there are name, {}", LIMITS.join(", ")));
    }
    budget.limits.push((key.to_string(), value));
    Ok(())
}

/// A number or a text; a comment may follow.
fn value_of(text: &str) -> Option<String> {
    let (value, rest) = match text.chars().next()? {
        '\'' => text[1..].split_once('\'').map(|(value, rest)| (value.to_string(), rest))?,
        '"' => quoted(&text[1..])?,
        _ => {
            let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
            (text[..end].replace('_', ""), &text[end..])
        }
    };
    let rest = rest.trim_start();
    (!value.is_empty() && (rest.is_empty() || rest.starts_with('#'))).then_some(value)
}

/// The text up to the next quote without a backslash, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    loop {
        match chars.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, '\\') => match chars.next()?.1 {
                same @ ('"' | '\\') => value.push(same),
                _ => return None,
            },
            (_, other) => value.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_with_wildcards() {
        for (pattern, text, wanted) in [
            ("a::b", "a::b", true),
            ("a::b", "a::bc", false),
            ("a::*", "a::bc", true),
            ("*", "", true),
            ("*b*d", "abcbcd", true),
            ("*b*d", "abcbc", false),
            ("a*a", "a", false),
            ("", "a", false),
        ] {
            let budget = TestBudget { name: pattern.into(), ..TestBudget::default() };
            assert_eq!(budget.matches(text), wanted, "{pattern} {text}");
        }
    }

    #[test]
    fn only_the_tables_of_tests_are_read() {
        let text = "[check]\nmax-peak = 1.5\n[[test]] # first\nname = \"a\\\"#\" # comment\n\n\
                    max-peak = '1MiB'\nmax-allocations = 1_000\n[[function]]\nmatch = \"x\"\n[[test]]\nname='b'\n";
        let budgets = parse(text).unwrap();
        let limits = [("max-peak", "1MiB"), ("max-allocations", "1000")];
        let limits = limits.map(|(key, value)| (key.to_string(), value.to_string()));
        assert_eq!(budgets[0], TestBudget { name: "a\"#".into(), limits: limits.into() });
        assert_eq!(budgets[1], TestBudget { name: "b".into(), limits: vec![] });
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, wanted) in [
            ("[[test]]\nmax-peak = 1", "1: a [[test]] needs a name"),
            ("[[test]]\nname = \"a\nmax-peak = 1", "2: name: expected a number"),
            ("[[test]]\nname", "2: expected KEY = VALUE"),
            ("[[test]]\nmax-peek = 1", "2: unknown setting max-peek"),
            ("[[test]]\nname = 'a' b", "2: name: expected a number"),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(wanted), "{text:?}: {found}");
        }
    }
}
