//! Words as a shell takes them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// `word`, which may be no text, quoted where a shell (bash, zsh, ksh) needs it.
pub fn quoted_os(word: &OsStr) -> String {
    let Some(text) = word.to_str() else {
        let bytes = word.as_bytes().iter();
        let escaped: String = bytes.map(|byte| format!("\\x{byte:02x}")).collect();
        return format!("$'{escaped}'");
    };
    quoted(text)
}

/// `word`, quoted where a shell needs it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        let plain = "stride=4,stripe_width=1024";
        assert_eq!(quoted(plain), plain);
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("{a,b}"), "'{a,b}'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("^has_journal"), "'^has_journal'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_word_that_is_no_text_is_told_by_its_bytes() {
        assert_eq!(quoted_os(OsStr::new("a b")), "'a b'");
        assert_eq!(quoted_os(OsStr::from_bytes(b"t\xff")), r"$'\x74\xff'");
    }
}
