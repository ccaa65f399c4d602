//! Plain text that fits a width and cannot harm a terminal.

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};

pub(crate) use whichfs_units::printable as clean;

/// A page whose text of others harms no viewer of its source.
pub(crate) fn rendered(page: &impl askama::Template) -> String {
    let page = page.render();
    let page =
        page.unwrap_or_else(|error| unreachable!("writing to a String cannot fail: {error}"));
    with_code(&whichfs_units::printable_lines(&page))
}

/// Where backticks of a page stay: text that is code already, pictures, and what the script reads.
const VERBATIM: [(&str, &str); 7] = [
    ("<pre", "</pre>"),
    ("<code", "</code>"),
    ("<svg", "</svg>"),
    ("<title", "</title>"),
    ("<style", "</style>"),
    ("<script", "</script>"),
    ("<div id=\"data\"", "</div>"),
];

/// `page` with each command between backticks in its prose as `<code>`, as sentences of the
/// terminal write commands.
fn with_code(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while !rest.is_empty() {
        let verbatim = VERBATIM.iter().find(|(begin, _)| rest.starts_with(begin));
        let end = match (verbatim, rest.starts_with('<')) {
            (Some((_, end)), _) => rest.find(end).map(|at| at + end.len()),
            (None, true) => rest.find('>').map(|at| at + 1),
            (None, false) => rest.find('<'),
        };
        let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
        if piece.starts_with('<') {
            out.push_str(piece);
        } else {
            push_prose(&mut out, piece);
        }
        rest = after;
    }
    out
}

/// Appends `prose`, which has no elements; a backtick without a second one stays.
fn push_prose(out: &mut String, mut prose: &str) {
    while let Some((before, after)) = prose.split_once('`') {
        let Some((command, after)) = after.split_once('`') else {
            break;
        };
        out.extend([before, "<code>", command, "</code>"]);
        prose = after;
    }
    out.push_str(prose);
}

/// `text` cut to `width` characters, with `…` where something was cut off.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Lines of at most `width` columns, the first beginning with `first`, the others with `rest`;
/// broken between words, which only blanks divide.
fn lines<'a>(first: &'a str, rest: &'a str, width: usize) -> Options<'a> {
    Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(WordSeparator::AsciiSpace)
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// Appends `text` to `out` in lines of at most `width` characters, the first beginning
/// with `first`, the others with `rest`. Words longer than a line are broken; a no-break
/// space does not end a word and is written as a space.
pub(crate) fn wrap(out: &mut String, text: &str, first: &str, rest: &str, width: usize) {
    let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    for line in textwrap::wrap(&text, lines(first, rest, width)) {
        out.push_str(line.replace('\u{a0}', " ").trim_end());
        out.push('\n');
    }
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

/// `sentence` in lines of at most `width` columns, where its words allow it. Spaces at its
/// beginning stay; those between words become one. Lines after the first begin with `indent`
/// spaces.
pub fn folded(sentence: &str, indent: usize, width: usize) -> String {
    let begin = sentence.len() - sentence.trim_start().len();
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let blanks = " ".repeat(indent);
    let options = lines(&sentence[..begin], &blanks, width).break_words(false);
    textwrap::fill(&words.join(" "), options)
}

/// `sentence` in one line of at most `width` columns: an end that lacks is shown, and the option
/// that tells it.
pub fn one_line(sentence: &str, width: usize) -> String {
    const MORE: &str = " … (-v)";
    let whole = folded(sentence, 0, usize::MAX);
    if whole.chars().count() <= width {
        return whole;
    }
    let room = width.saturating_sub(MORE.chars().count());
    let cut = folded(&whole, 0, room);
    let first = cut.lines().next().unwrap_or_default();
    // A word may be longer than the line.
    let first: String = first.chars().take(room).collect();
    first.trim_end_matches([',', ';', ':', ' ']).to_owned() + MORE
}

/// The same for a line of which the first `indent` columns are a word and blanks that stay.
pub(crate) fn folded_after(line: &str, indent: usize, width: usize) -> String {
    let Some((head, rest)) = line.split_at_checked(indent) else {
        return line.to_owned();
    };
    let blanks = " ".repeat(indent);
    let text = folded(&format!("{blanks}{}", rest.trim_start()), indent, width);
    format!("{head}{}", text.get(indent..).unwrap_or_default())
}

/// `rows` under `head`, of at most `width` columns: columns without lines between them, wrapped.
/// Names, which stand in the first column and are copied, stay whole.
pub fn table(head: &[&str], rows: Vec<Vec<String>>, width: usize) -> String {
    let names = rows.iter().filter_map(|row| row.first());
    let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(head)
        .add_rows(rows);
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    if let Some(first) = table.column_mut(0).filter(|_| longest <= width / 2) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}

/// Text for a terminal of a known width, line by line.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    text: String,
    width: usize,
}

impl Lines {
    /// None yet, of at most `width` columns.
    pub fn new(width: usize) -> Lines {
        Lines {
            text: String::new(),
            width,
        }
    }

    /// Adds `text`, whose lines fit already.
    pub fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a line as it is.
    pub fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a sentence, folded; lines after the first begin with `indent` spaces.
    pub fn paragraph(&mut self, sentence: &str, indent: usize) {
        self.line(&folded(sentence, indent, self.width));
    }

    /// Adds `rows` under `head`.
    pub fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>) {
        self.line(&table(head, rows, self.width));
    }

    /// Adds what a command is for, and the command: in one line if that fits, else the command in
    /// a line of its own, which is never broken.
    pub fn with_command(&mut self, what: &str, command: &str) {
        let line = format!("{what} {command}");
        match line.chars().count() <= self.width {
            true => self.line(&line),
            false => self.line(&format!("{what}\n  {command}")),
        }
    }

    /// All lines, each ended.
    pub fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn commands_in_prose_become_code() {
        let check = |page, expected| assert_eq!(super::with_code(page), expected);
        check(
            "<p title=\"`a`\">run `whichfs probe` or `b &lt;c&gt;`, `d</p>",
            "<p title=\"`a`\">run <code>whichfs probe</code> or <code>b &lt;c&gt;</code>, `d</p>",
        );
        let verbatim = "<pre>`a`</pre><code>`b`</code><svg><title>`c`</title></svg>\
                        <script>`d` < `e`</script><div id=\"data\" hidden>`f`</div>";
        check(verbatim, verbatim);
        check("a ` b<b>`</b>", "a ` b<b>`</b>");
    }

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
    fn bars_are_proportional_and_show_their_interval() {
        assert_eq!(interval_bar([0.5, 1.0], 4), "██▒▒");
        assert_eq!(
            interval_bar([0.5, 0.5], 4),
            "██▒",
            "no interval is drawn as a cell"
        );
        assert_eq!(interval_bar([1.5, 2.0], 2), "██▒");
    }

    #[test]
    fn a_command_has_a_line_of_its_own_where_it_does_not_fit() {
        let said = |width| {
            let mut lines = Lines::new(width);
            lines.with_command("Show it:", "ls -l");
            lines.text()
        };
        assert_eq!(said(14), "Show it: ls -l\n");
        assert_eq!(said(13), "Show it:\n  ls -l\n");
    }

    #[test]
    fn a_sentence_is_folded_between_words() {
        assert_eq!(folded("  one two three", 4, 10), "  one two\n    three");
        assert_eq!(folded("one two", 4, 7), "one two");
        assert_eq!(folded_after("a   one two", 4, 8), "a   one\n    two");
        assert_eq!(folded_after("a", 4, 8), "a");
        assert_eq!(folded("averylongword x", 2, 5), "averylongword\n  x");
        assert_eq!(folded("", 2, 5), "");
    }

    #[test]
    fn a_note_takes_one_line_and_says_how_to_see_the_rest() {
        assert_eq!(one_line("one  two", 8), "one two");
        assert_eq!(one_line("one two, three four", 17), "one two … (-v)");
        let long = one_line(&"x".repeat(90), 20);
        assert_eq!(
            (long.chars().count(), long.ends_with(" … (-v)")),
            (20, true)
        );
        for width in 8..60 {
            let line = one_line(
                "ext4: it cannot be shrunk while it is mounted, é and so on",
                width,
            );
            assert!(
                line.chars().count() <= width && !line.contains('\n'),
                "{line}"
            );
        }
    }

    #[test]
    fn a_name_stays_whole_beside_many_columns() {
        let cells = vec!["one two three four".to_owned(); 5];
        let row = [vec!["sandisk-extreme-pro-128gb".to_owned()], cells].concat();
        let text = table(&["name", "a", "b", "c", "d", "e"], vec![row], 80);
        assert!(text.contains("sandisk-extreme-pro-128gb"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_long_cell_wraps_and_nothing_is_lost() {
        let words = "one two three four five six seven eight nine ten eleven twelve";
        let text = table(&["a", "b"], vec![vec!["x".into(), words.into()]], 40);
        assert!(
            text.lines().all(|line| line.chars().count() <= 40),
            "{text}"
        );
        let found: Vec<&str> = text.split_whitespace().collect();
        assert!(words.split(' ').all(|word| found.contains(&word)), "{text}");
    }
}
