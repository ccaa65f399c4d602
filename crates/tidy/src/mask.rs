//! Rust text with comments, strings and test code blanked out, so that a rule sees only the code.
//!
//! Lengths and line breaks stay as they are: a place in the masked text is the
//! same place in the file.

/// Blanks comments, string and character literals.
pub fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_end(&chars, at);
        if end > at {
            out.extend(
                chars[at..end]
                    .iter()
                    .map(|&c| if c == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// The end of the comment or literal that starts at `at`; `at` itself if none does.
fn literal_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => until(chars, at, |c| c == '\n'),
        '/' if next == Some('*') => block_comment_end(chars, at),
        '"' => quoted_end(chars, at + 1),
        'r' if !follows_word(chars, at) => raw_string_end(chars, at).unwrap_or(at),
        '\'' => char_literal_end(chars, at).unwrap_or(at),
        _ => at,
    }
}

fn until(chars: &[char], from: usize, stop: impl Fn(char) -> bool) -> usize {
    chars[from..]
        .iter()
        .position(|&c| stop(c))
        .map_or(chars.len(), |n| from + n)
}

/// True if the character before `at` belongs to a word, so that `r` is no prefix.
/// A `b` before it is one.
fn follows_word(chars: &[char], at: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    match at.checked_sub(1).map(|i| chars[i]) {
        Some('b') => at >= 2 && is_word(chars[at - 2]),
        Some(c) => is_word(c),
        None => false,
    }
}

fn block_comment_end(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i < chars.len() {
        match (chars[i], chars.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

/// The end of a string whose text starts at `from`.
fn quoted_end(chars: &[char], from: usize) -> usize {
    let mut i = from;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let quote = until(chars, at + 1, |c| c != '#');
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let hashes = quote - at - 1;
    let mut i = quote + 1;
    while i < chars.len() {
        let closes = chars[i] == '"'
            && chars.len() > i + hashes
            && chars[i + 1..=i + hashes].iter().all(|&c| c == '#');
        if closes {
            return Some(i + 1 + hashes);
        }
        i += 1;
    }
    Some(chars.len())
}

/// The end of a character literal; `None` where the quote starts a lifetime.
fn char_literal_end(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        return Some(until(chars, (at + 3).min(chars.len()), |c| c == '\'') + 1)
            .map(|end| end.min(chars.len()));
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(at + 3)
}

/// Blanks the items behind `#[cfg(test)]` in text that `code` has masked.
pub fn without_tests(masked: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut out = masked.to_owned();
    let mut from = 0;
    while let Some(found) = out[from..].find(ATTRIBUTE) {
        let start = from + found;
        let end = item_end(&out, start + ATTRIBUTE.len());
        let blank: String = out[start..end]
            .bytes()
            .map(|b| if b == b'\n' { '\n' } else { ' ' })
            .collect();
        out.replace_range(start..end, &blank);
        from = end;
    }
    out
}

/// The end of the item that starts at `from`: its semicolon, or the brace that closes its block.
fn item_end(text: &str, from: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, c) in text[from..].char_indices() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return from + offset + 1;
                }
            }
            ';' if depth == 0 => return from + offset + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_stays() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("b", c)"#, "f(   , c)"),
            (r#"f("\"b", c)"#, "f(     , c)"),
            (r##"f(r#"b"c"#, d)"##, "f(        , d)"),
            ("f('{', 'a')", "f(   ,    )"),
            (r"f('\'', b)", "f(    , b)"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("for r in x", "for r in x"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn unfinished_literals_end_with_the_text() {
        for text in ["\"a", "r#\"a", "/* a", "'\\", "\"\\"] {
            assert_eq!(code(text).chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn test_code_is_blanked_and_what_follows_stays() {
        let text = "a();\n#[cfg(test)]\nmod t { fn f() { b(); } }\nfn c() {}\n";
        let rest = without_tests(text);
        assert!(rest.contains("a();") && rest.contains("fn c()") && !rest.contains("b()"));
        assert_eq!(rest.len(), text.len());
        assert!(without_tests("#[cfg(test)]\nuse x;\nfn d() {}").contains("fn d()"));
    }
}
