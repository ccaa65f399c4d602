//! Counts in sentences.

use std::fmt::Display;

/// `count` with its noun, which is given for one: "1 figure", "2 figures", "3 entries",
/// "4 flushes", "5 series".
pub fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let noun = number(noun, count == "1");
    format!("{count} {noun}")
}

/// `noun`, which is given for one, as it is if there is `one`, else of many.
fn number(noun: &str, one: bool) -> String {
    let stem = noun.strip_suffix('y');
    match stem.filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        _ if one || noun.ends_with('s') => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with(['x', 'h']) => format!("{noun}es"),
        None => format!("{noun}s"),
    }
}

/// `word`, quoted where a shell (sh, bash, zsh) needs it. Not by the crate shlex, which quotes
/// every word with `=` or `,` and so most options of mkfs and mount.
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=,./:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::{counted, shell_word};

    #[test]
    fn one_is_singular_and_everything_else_is_not() {
        assert_eq!(counted(0_u64, "figure"), "0 figures");
        assert_eq!(counted(1_u64, "figure"), "1 figure");
        assert_eq!(counted(2_usize, "finished trial"), "2 finished trials");
        assert_eq!(counted(1_usize, "AU copy"), "1 AU copy");
        assert_eq!(counted(3_usize, "AU copy"), "3 AU copies");
        assert_eq!(counted(3_usize, "day"), "3 days");
        assert_eq!(counted(4_u32, "flush"), "4 flushes");
        assert_eq!(counted(1_u32, "flush"), "1 flush");
        assert_eq!(counted(5_u32, "series"), "5 series");
    }

    #[test]
    fn words_are_quoted_only_where_a_shell_needs_it() {
        let plain = "stride=4,stripe_width=1024";
        assert_eq!(shell_word(plain), plain);
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("{a,b}"), "'{a,b}'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("^has_journal"), "'^has_journal'");
        assert_eq!(shell_word(""), "''");
    }
}
