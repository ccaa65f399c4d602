//! Plain text that fits a width and cannot harm a terminal.

/// `text` without control characters, bidirectional overrides and private-use characters:
/// names come from files, and a terminal would obey them.
pub(crate) fn clean(text: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2066}'..='\u{2069}')
            || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..)
    };
    text.chars()
        .map(|c| if harmful(c) { '\u{fffd}' } else { c })
        .collect()
}

/// `text` cut to `width` characters, with `…` where something was cut off.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Appends `text` to `out` in lines of at most `width` characters, the first beginning
/// with `first`, the others with `rest`. Words longer than a line are broken; a no-break
/// space does not end a word and is written as a space.
pub(crate) fn wrap(out: &mut String, text: &str, first: &str, rest: &str, width: usize) {
    let mut line = first.to_owned();
    let mut empty = true;
    let room = width.saturating_sub(rest.chars().count()).max(1);
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        for piece in pieces(word, room) {
            let needed = line.chars().count() + usize::from(!empty) + piece.chars().count();
            if !empty && needed > width {
                out.push_str(line.trim_end());
                out.push('\n');
                line = rest.to_owned();
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(&piece.replace('\u{a0}', " "));
            empty = false;
        }
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// A bar of `width` columns: full up to the first of `ends` (shares of the width), shaded from
/// there to the second.
pub(crate) fn interval_bar(ends: [f64; 2], width: usize) -> String {
    let [low, high] = ends.map(|end| (end.clamp(0.0, 1.0) * width as f64).round() as usize);
    format!(
        "{}{}",
        "█".repeat(low),
        "▒".repeat(high.saturating_sub(low).max(1))
    )
}

fn pieces(word: &str, room: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters
        .chunks(room)
        .map(|chunk| chunk.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_never_exceed_the_width() {
        let mut out = String::new();
        let long = "x".repeat(100);
        wrap(
            &mut out,
            &format!("some words and {long} more"),
            "- ",
            "  ",
            20,
        );
        assert!(out.lines().all(|line| line.chars().count() <= 20), "{out}");
        assert_eq!(out.matches('x').count(), 100);
    }

    #[test]
    fn escapes_are_disarmed() {
        assert_eq!(clean("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(clean("ext4 µ"), "ext4 µ");
    }

    #[test]
    fn bars_are_proportional_and_show_their_interval() {
        assert_eq!(interval_bar([0.5, 1.0], 4), "██▒▒");
        assert_eq!(
            interval_bar([0.5, 0.5], 4),
            "██▒",
            "no interval is drawn as a cell"
        );
        assert_eq!(interval_bar([1.5, 2.0], 2), "██▒");
    }
}
