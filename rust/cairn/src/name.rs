// SPDX-License-Identifier: MIT
//! Texts as the recorder takes them: with a zero byte at their end, and of limited length.

/// A text of at most `SIZE` - 1 bytes.
pub(crate) struct Name<const SIZE: usize> {
    bytes: [u8; SIZE],
}

impl<const SIZE: usize> Name<SIZE> {
    /// Ends at a zero byte of the text, or before the first character that does not fit.
    pub(crate) const fn new(text: &str) -> Name<SIZE> {
        let text = text.as_bytes();
        let mut end = 0;
        while end < text.len() && text[end] != 0 && end < SIZE {
            end += 1;
        }
        if end == SIZE {
            end -= 1;
            while end > 0 && text[end] & 0xc0 == 0x80 {
                end -= 1; // within a character
            }
        }
        let mut bytes = [0; SIZE];
        let mut at = 0;
        while at < end {
            bytes[at] = text[at];
            at += 1;
        }
        Name { bytes }
    }

    #[inline(always)]
    pub(crate) const fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::Name;

    fn text_of(text: &str) -> &[u8] {
        let name = Name::<6>::new(text);
        assert_eq!(name.bytes[5], 0);
        let end = name.bytes.iter().position(|byte| *byte == 0).unwrap();
        text.get(..end).unwrap().as_bytes() // panics within a character
    }

    #[test]
    fn names_are_cut_between_characters_and_at_zero_bytes() {
        for (text, wanted) in [
            ("", ""),
            ("abc", "abc"),
            ("abcde", "abcde"),
            ("abcdef", "abcde"),
            ("abcdé", "abcd"),
            ("abcéf", "abcé"),
            ("ab€", "ab€"),
            ("abc€", "abc"),
            ("€€€", "€"),
            ("ab\0cd", "ab"),
        ] {
            assert_eq!(text_of(text), wanted.as_bytes(), "{:?}", text);
        }
    }
}
