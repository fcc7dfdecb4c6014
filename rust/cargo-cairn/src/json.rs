// SPDX-License-Identifier: MIT
//! Reads JSON as cargo writes it: whole documents of one value.
//!
//! Numbers stay texts, since none is needed. Nesting is limited, as a value may come from a file.

const DEPTH_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    pub fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.iter().find(|(key, _)| key == name).map(|(_, v)| v),
            _ => None,
        }
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// `None`: this is no JSON.
pub fn parse(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    reader.skip_blanks();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, word: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn take_char(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = &self.rest[first.len_utf8()..];
        Some(first)
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip_blanks();
        match self.rest.chars().next()? {
            '{' => self.members(depth).map(Value::Object),
            '[' => self.items(depth).map(Value::List),
            '"' => self.string().map(Value::Text),
            't' => self.take("true").map(|()| Value::Bool(true)),
            'f' => self.take("false").map(|()| Value::Bool(false)),
            'n' => self.take("null").map(|()| Value::Null),
            _ => self.number().map(Value::Number),
        }
    }

    /// Whether another item follows, where `end` closes the list.
    fn goes_on(&mut self, end: &str, is_first: bool) -> Option<bool> {
        self.skip_blanks();
        if self.take(end).is_some() {
            return Some(false);
        }
        if !is_first {
            self.take(",")?;
            self.skip_blanks();
        }
        Some(true)
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Value>> {
        self.take("[")?;
        let mut items = Vec::new();
        while self.goes_on("]", items.is_empty())? {
            items.push(self.value(depth + 1)?);
        }
        Some(items)
    }

    fn members(&mut self, depth: usize) -> Option<Vec<(String, Value)>> {
        self.take("{")?;
        let mut members = Vec::new();
        while self.goes_on("}", members.is_empty())? {
            let name = self.string()?;
            self.skip_blanks();
            self.take(":")?;
            members.push((name, self.value(depth + 1)?));
        }
        Some(members)
    }

    fn number(&mut self) -> Option<String> {
        let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        number.parse::<f64>().ok()?;
        self.rest = rest;
        Some(number.to_string())
    }

    fn string(&mut self) -> Option<String> {
        self.take("\"")?;
        let mut text = String::new();
        loop {
            match self.take_char()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                control if control < ' ' => return None,
                other => text.push(other),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        Some(match self.take_char()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode(),
            same @ ('"' | '\\' | '/') => same,
            _ => return None,
        })
    }

    /// A pair of surrogates is one character.
    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.take("\\u")?;
        let second = self.hex()?;
        let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest.get(..4)?;
        self.rest = &self.rest[4..];
        digits.chars().all(|c| c.is_ascii_hexdigit()).then_some(())?;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read() {
        let value = parse(
            r#" {"a": [1, -2.5e3, "x\n\u00e9\ud83d\ude00\/"], "b": {"c": null}, "d": true} "#,
        );
        let value = value.unwrap();
        let wanted = Value::List(vec![
            Value::Number("1".into()),
            Value::Number("-2.5e3".into()),
            Value::Text("x\n\u{e9}\u{1f600}/".into()),
        ]);
        assert_eq!(value.get("a"), Some(&wanted));
        assert_eq!(value.get("b").and_then(|b| b.get("c")), Some(&Value::Null));
        assert_eq!(value.get("d"), Some(&Value::Bool(true)));
        assert_eq!(value.get("e"), None);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        let deep = "[".repeat(100_000);
        for text in [
            "",
            "{",
            "[1",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "tru",
            "1 2",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud800x\"",
            "\"\\ud800\\u0041\"",
            "\"\\u+123\"",
            "\"\n\"",
            "-",
            "\"\\u00é\"",
            &deep,
        ] {
            assert_eq!(parse(text), None, "{:?}", text);
        }
    }
}
