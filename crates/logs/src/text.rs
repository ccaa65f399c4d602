//! Bytes of a log as lines of text, without what terminals, editors and mail left in it.

/// One line of a log, cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Counted from 1, as editors do.
    pub number: usize,
    /// Without line end, colours, overwritten text and quotation marks of mail.
    pub text: String,
    /// Something other than a line end was taken away.
    pub cleaned: bool,
    /// A line end follows; the last line of a file that was cut off has none.
    pub ended: bool,
}

/// Text of any bytes: UTF-16 with its mark, UTF-8, and Latin-1 wherever it is not UTF-8,
/// since one log may hold both.
pub(super) fn decode(bytes: &[u8]) -> String {
    let wide = |order: fn([u8; 2]) -> u16| {
        let units = bytes[2..].chunks_exact(2).map(|b| order([b[0], b[1]]));
        char::decode_utf16(units)
            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => return wide(u16::from_le_bytes),
        [0xfe, 0xff, ..] => return wide(u16::from_be_bytes),
        _ => {}
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|&byte| char::from(byte)));
    }
    text
}

/// The lines of `text`, cleaned and numbered.
pub(super) fn lines(text: &str) -> Vec<Line> {
    // Only a file without any line feed can have carriage returns as line ends.
    let end = if text.contains('\n') { '\n' } else { '\r' };
    let ends = text.ends_with(end);
    let mut raw: Vec<&str> = text.split(end).collect();
    if raw.last().is_some_and(|last| last.is_empty()) {
        raw.pop();
    }
    let count = raw.len();
    raw.into_iter()
        .enumerate()
        .map(|(i, raw)| {
            let raw = raw.trim_end_matches('\r');
            let text = clean(raw);
            Line {
                number: i + 1,
                cleaned: text.trim() != raw.trim(),
                text,
                ended: i + 1 < count || ends,
            }
        })
        .collect()
}

/// What a reader of a terminal would have seen of `raw`.
fn clean(raw: &str) -> String {
    let shown = if raw.chars().any(char::is_control) {
        shown(raw)
    } else {
        raw.to_owned()
    };
    let mut text = shown.trim_end();
    while let Some(rest) = text.strip_prefix(['>', '|']) {
        text = rest.strip_prefix(' ').unwrap_or(rest);
    }
    while let Some(rest) = echo_at_start(text) {
        text = rest;
    }
    while let Some(rest) = echo_at_end(text) {
        text = rest.trim_end();
    }
    text.to_owned()
}

/// `^C4MiB` without the control key that the terminal echoed as two characters.
fn echo_at_start(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('^')?.chars();
    let key = rest.next()?;
    ('@'..='_').contains(&key).then_some(rest.as_str())
}

fn echo_at_end(text: &str) -> Option<&str> {
    let mut rest = text.chars();
    let key = rest.next_back()?;
    let caret = rest.next_back()?;
    (caret == '^' && ('@'..='_').contains(&key)).then_some(rest.as_str())
}

/// Plays carriage returns, backspaces and escape sequences; drops other controls.
fn shown(raw: &str) -> String {
    let mut line: Vec<char> = Vec::new();
    let mut at = 0_usize;
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => at = 0,
            '\u{8}' => at = at.saturating_sub(1),
            '\u{1b}' => skip_escape(&mut chars),
            c if c.is_control() && c != '\t' => {}
            c => {
                if at < line.len() {
                    line[at] = c;
                } else {
                    line.push(c);
                }
                at += 1;
            }
        }
    }
    line.into_iter().collect()
}

/// ECMA-48: CSI ends at a byte from `@` to `~`; OSC, DCS, SOS, PM and APC at BEL or ESC \; others
/// have one byte behind intermediate ones.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            for c in chars.by_ref() {
                if ('@'..='~').contains(&c) {
                    break;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                if c == '\u{7}' {
                    break;
                }
                if c == '\u{1b}' {
                    chars.next_if_eq(&'\\');
                    break;
                }
            }
        }
        Some(' '..='/') => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next();
        }
        _ => {}
    }
}

/// At most `limit` characters of `text` for a message, controls made visible.
pub(super) fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String = text
        .trim()
        .chars()
        .take(limit)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.trim().chars().count() > limit {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cleaned(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn micro_is_read_in_every_encoding() {
        assert_eq!(decode("diff 5µs".as_bytes()), "diff 5µs");
        assert_eq!(decode(b"diff 5\xb5s"), "diff 5µs");
        assert_eq!(decode(b"\xef\xbb\xbfdiff"), "diff");
        let wide: Vec<u8> = "\u{feff}5µs\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(decode(&wide), "5µs\n");
        assert_eq!(decode(b"\xff\xfe\x35"), "");
    }

    #[test]
    fn line_ends_of_every_system_are_line_ends() {
        assert_eq!(cleaned("a\r\nb\r\n"), ["a", "b"]);
        assert_eq!(cleaned("a\rb\r"), ["a", "b"]);
        let cut = lines("a\nb");
        assert!(cut[0].ended && !cut[1].ended);
        assert!(!lines("a\r\n")[0].cleaned, "a line end is not noise");
    }

    #[test]
    fn what_the_terminal_overwrote_is_gone() {
        assert_eq!(cleaned("10%\r50%\rdone\n"), ["done"]);
        assert_eq!(cleaned("4MiX\u{8}B\n"), ["4MiB"]);
        assert_eq!(cleaned("\u{1b}[1;32m4MiB\u{1b}[0m  3M/s\n"), ["4MiB  3M/s"]);
        assert_eq!(cleaned("\u{1b}]0;title\u{7}x\n"), ["x"]);
        assert_eq!(cleaned("\u{1b}Pq#0\u{1b}\\x\n"), ["x"]);
        let reset = "\u{1b}(B\u{1b}[m";
        assert_eq!(
            cleaned(&format!("{reset}4MiB  3M/s{reset}\n")),
            ["4MiB  3M/s"]
        );
        assert_eq!(
            cleaned("^N2MiB    7.08M/s \n64KiB ^C\n"),
            ["2MiB    7.08M/s", "64KiB"]
        );
        assert_eq!(cleaned("> > align 4096\n"), ["align 4096"]);
    }
}
