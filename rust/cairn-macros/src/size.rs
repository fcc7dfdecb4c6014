// SPDX-License-Identifier: MIT
//! Sizes as cairn's command line takes them: a number with an optional fraction, and a unit.

const UNITS: [(&str, u128); 15] = [
    ("", 1),
    ("B", 1),
    ("k", 1 << 10),
    ("K", 1 << 10),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("KB", 1_000),
    ("M", 1 << 20),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("G", 1 << 30),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("T", 1 << 40),
    ("TiB", 1 << 40),
];

/// Fractions of bytes are rounded.
pub fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let (number, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit.trim_start())?;
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.len() > 18 {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let digits = u32::try_from(fraction.len()).ok()?;
    let fraction: u64 = fraction.parse().ok()?;
    let scale = 10u128.pow(digits);
    let part = (u128::from(fraction) * factor + scale / 2) / scale;
    u64::try_from(u128::from(whole) * factor + part).ok()
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn sizes_are_those_of_the_command_line() {
        for (text, wanted) in [
            ("0", Some(0)),
            ("1_000", Some(1000)),
            ("10MiB", Some(10 << 20)),
            ("10 MiB", Some(10 << 20)),
            ("64k", Some(65536)),
            ("2MB", Some(2_000_000)),
            ("1.5MiB", Some(1_572_864)),
            ("0.1k", Some(102)),
            ("16777216TiB", None),
            ("", None),
            ("MiB", None),
            (".5k", None),
            ("5.", None),
            ("1.2.3", None),
            ("-1", None),
            ("3miB", None),
        ] {
            assert_eq!(parse(text), wanted, "{:?}", text);
        }
    }
}
