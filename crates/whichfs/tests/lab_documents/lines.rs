//! The lines of the `sh` blocks of a document, and what each of them needs.

use std::path::{Path, PathBuf};

/// What a line of a document needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The lab at most.
    Nothing,
    /// Root and FUSE, for it attaches a card itself.
    Root,
    /// A card: it ends in `# card`, or names one of [`CARDS`].
    Card,
    /// A board: it ends in `# board`, or names one by `ssh://` or `labgrid:`.
    Board,
    /// To be run elsewhere ([`ELSEWHERE`]).
    Elsewhere,
}

/// A line, continued ones joined, without its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub needs: Needs,
    pub code: String,
    /// Number of the block that it stands in.
    pub block: usize,
}

/// Names that stand for the card of a reader.
pub const CARDS: [&str; 4] = ["/dev/sdX", "/dev/mmcblk0", "/media/card", "$DEV"];

/// Lines that this test is within, and where they are run.
pub const ELSEWHERE: [(&str, &str); 4] = [
    ("make test", "is what runs this test (.ci/run calls it)"),
    (
        "make choose",
        "is what `make test` needs (setup build kernel), then `whichfs choose`, which is run here",
    ),
    (
        "make deb wheel image",
        "packages: `make test-packages` builds and tries them",
    ),
    ("make agents", "`make test` does it, with what is installed"),
];

/// What stands in blocks of documents. `make test-python` runs those that are Python.
const LANGUAGES: [&str; 7] = ["sh", "toml", "json", "ini", "python", "text", ""];

/// The lines of `text`, also of blocks within lists.
///
/// # Errors
/// Block of a language that is not known, or commands in a block that is not `sh`: their lines
/// would be run by nobody.
pub fn lines(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    let (mut inside, mut block): (Option<String>, usize) = (None, 0);
    for line in text.replace("\\\n", " ").lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            block += 1;
            inside = match inside {
                Some(_) => None,
                None if LANGUAGES.contains(&language) => Some(language.to_owned()),
                None => return Err(format!("a block of '{language}': is that sh?")),
            };
            continue;
        }
        let (code, mark) = line.split_once(" # ").unwrap_or((line, ""));
        let code = code.trim_end();
        match inside.as_deref() {
            Some("sh") if !code.is_empty() => lines.push(Line {
                needs: needs(code, mark.trim()),
                code: code.to_owned(),
                block,
            }),
            Some(language) if language != "sh" && is_command(code) => {
                return Err(format!("'{code}' stands in a block that is not sh"));
            }
            _ => {}
        }
    }
    Ok(lines)
}

fn is_command(code: &str) -> bool {
    let code = code.strip_prefix("$ ").unwrap_or(code);
    let code = code.strip_prefix("sudo ").unwrap_or(code);
    code.starts_with("whichfs ")
}

fn needs(code: &str, mark: &str) -> Needs {
    let names = |place: &&str| code.contains(*place);
    match mark {
        _ if ELSEWHERE.iter().any(|(line, _)| code == *line) => Needs::Elsewhere,
        "board" => Needs::Board,
        "card" => Needs::Card,
        _ if code.contains("ssh://") || code.contains("labgrid:") => Needs::Board,
        _ if CARDS.iter().any(names) => Needs::Card,
        _ if code.contains("sudo ") => Needs::Root,
        _ => Needs::Nothing,
    }
}

/// All documents with commands but the reference, which is made of the help texts: name and lines.
pub fn documents() -> Vec<(String, Vec<Line>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let of = |directory: &str| {
        let entries = std::fs::read_dir(root.join(directory)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let places = [
        ".",
        "docs",
        "docs/guides",
        "docs/tutorials",
        "kernel",
        "published",
    ];
    let mut paths: Vec<PathBuf> = places.into_iter().flat_map(of).collect();
    let is_read = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "md") && !path.ends_with("docs/commands.md")
    };
    paths.retain(is_read);
    paths.sort();
    let mut documents = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = lines(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        if !lines.is_empty() {
            documents.push((name, lines));
        }
    }
    documents
}

#[test]
fn marks_and_names_say_what_a_line_needs() {
    let text = "1. Do:\n   ```sh\n   whichfs fs list  # all\n   sudo ls\n   ls /tmp   # card\n   \
                ssh pi  # board\n   make test\n   ls /dev/sdX  # as /dev/sdY\n   \
                ls \\\n     ssh://a\n   ```\n```toml\na = 1\n```\n";
    let found = lines(text).unwrap().into_iter();
    let found: Vec<(Needs, String)> = found.map(|line| (line.needs, line.code)).collect();
    let expected = [
        (Needs::Nothing, "whichfs fs list"),
        (Needs::Root, "sudo ls"),
        (Needs::Card, "ls /tmp"),
        (Needs::Board, "ssh pi"),
        (Needs::Elsewhere, "make test"),
        (Needs::Card, "ls /dev/sdX"),
        (Needs::Board, "ls       ssh://a"),
    ];
    let expected = expected.map(|(needs, code)| (needs, code.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn commands_that_nobody_would_run_are_refused() {
    for text in ["```bash\nls\n```\n", "```\n$ whichfs fs list\n```\n"] {
        assert!(lines(text).is_err(), "{text}");
    }
    assert_eq!(lines("```\nuse whichfs\n```\n"), Ok(Vec::new()));
}
