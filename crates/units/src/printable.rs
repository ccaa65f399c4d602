//! Text of others that a person can look at: names, labels and messages come from disks, boards,
//! guests and files of strangers, and a terminal obeys control characters.

/// What stands for a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';

/// Whether a terminal or viewer obeys `c` instead of showing it: control characters (C0, C1),
/// characters without width, line separators, overrides of the direction of writing, private use.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..)
}

fn replaced(text: &str, stays: impl Fn(char) -> bool) -> String {
    let shown = |c: char| match is_harmful(c) && !stays(c) {
        true => REPLACEMENT,
        false => c,
    };
    text.chars().map(shown).collect()
}

/// `text` in one line, with U+FFFD for each harmful character.
pub fn printable(text: &str) -> String {
    replaced(text, |_| false)
}

/// The same of a text of several lines, which may have tabs.
pub fn printable_lines(text: &str) -> String {
    replaced(text, |c| matches!(c, '\n' | '\t'))
}

/// A JSON text that says the same, with `\u` escapes for harmful characters.
pub fn printable_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        // Between its strings a JSON text has no control characters but line ends and tabs.
        if !is_harmful(c) || matches!(c, '\n' | '\t') {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attack_what_a_terminal_obeys_is_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(
            printable("\u{9b}2J\u{202e}x\u{7f}"),
            "\u{fffd}2J\u{fffd}x\u{fffd}"
        );
        assert_eq!(printable("ext4 µ 'é'"), "ext4 µ 'é'");
        assert_eq!(printable_lines("a\tb\nc\r"), "a\tb\nc\u{fffd}");
    }

    #[test]
    fn a_json_text_says_the_same() {
        let text = "{\n\t\"a\": \"\u{202e}\u{9b}\u{e0001}é\"\n}";
        let safe = printable_json(text);
        assert_eq!(safe, "{\n\t\"a\": \"\\u202e\\u009b\\udb40\\udc01é\"\n}");
    }
}
