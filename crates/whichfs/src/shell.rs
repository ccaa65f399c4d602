//! Words as a shell takes them.

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
}
