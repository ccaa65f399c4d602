//! Names that do not exist: what may have been meant, and where all are listed.

use std::fmt;

/// Most names that a message lists.
const LISTED_MAX: usize = 6;
/// Most names that a message offers.
const OFFERED_MAX: usize = 3;
/// Similarity (0 to 1) from which on a name may have been meant.
const SIMILAR_ENOUGH: f64 = 0.75;
/// How much less similar than the best another name may be that is offered beside it.
const BESIDE: f64 = 0.005;

/// A name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What it was to name: `card`, `metric`.
    pub kind: &'static str,
    /// The name that was given.
    pub name: String,
    /// The names that may have been meant, the likeliest first; none if none is near.
    pub nearest: Vec<String>,
    hint: String,
}

impl UnknownName {
    /// The error that `name` is none of `names`, which `listed` lists, a command or a document
    /// (`` `whichfs card list` ``), if there is one.
    pub fn new<S: AsRef<str>>(
        kind: &'static str,
        name: &str,
        names: &[S],
        listed: Option<&str>,
    ) -> UnknownName {
        UnknownName {
            kind,
            name: name.to_owned(),
            nearest: nearest(name, names)
                .into_iter()
                .map(str::to_owned)
                .collect(),
            hint: hint(name, names, listed),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} '{}'; {}", self.kind, self.name, self.hint)
    }
}

impl std::error::Error for UnknownName {}

/// What to say of `name`, which is none of `names`: those that may have been meant, and where all
/// are `listed`; few names are listed at once.
pub fn hint<S: AsRef<str>>(name: &str, names: &[S], listed: Option<&str>) -> String {
    let near = nearest(name, names);
    let all = listed.map(|place| format!("{place} lists all"));
    if !near.is_empty() {
        let meant = format!("did you mean {}?", either(&near));
        return all.map_or(meant.clone(), |all| format!("{meant} {all}"));
    }
    let given = names.iter().map(AsRef::as_ref);
    let few: Vec<&str> = given.take(LISTED_MAX).collect();
    match (names.len(), all) {
        (0, None) => "there is none to name".to_owned(),
        (1..=LISTED_MAX, _) => format!("there are {}", few.join(", ")),
        (_, Some(all)) => all,
        (count, None) => format!("there are {count}, among them {}", few.join(", ")),
    }
}

/// Those of `names` that `name` may have been meant to be, the likeliest first, at most three.
pub fn nearest<'a, S: AsRef<str>>(name: &str, names: &'a [S]) -> Vec<&'a str> {
    let wanted = plain(name);
    let mut near: Vec<(f64, usize, &str)> = names
        .iter()
        .map(AsRef::as_ref)
        .map(|known| {
            let apart = strsim::damerau_levenshtein(&wanted, &plain(known));
            (similarity(&wanted, &plain(known)), apart, known)
        })
        .filter(|(similarity, ..)| *similarity >= SIMILAR_ENOUGH)
        .collect();
    // A stable order: that of `names` decides between equals.
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let best = near.first().map_or(1.0, |(similarity, ..)| *similarity);
    near.retain(|(similarity, ..)| *similarity >= best - BESIDE);
    near.into_iter()
        .take(OFFERED_MAX)
        .map(|(.., known)| known)
        .collect()
}

/// What the message of a parser of TOML or JSON says of a key or word that does not exist, as what
/// was found and the hint; none if the message is about something else. The message itself lists
/// all names.
pub fn unknown_key(message: &str) -> Option<(String, String)> {
    let (what, rest) = ["field", "variant"].into_iter().find_map(|what| {
        let (_, rest) = message.split_once(&format!("unknown {what} `"))?;
        Some((if what == "field" { "key" } else { "word" }, rest))
    })?;
    let (name, rest) = rest.split_once('`')?;
    let (_, legal) = rest.split_once("expected ")?;
    let legal: Vec<&str> = legal.split('`').skip(1).step_by(2).collect();
    Some((format!("unknown {what} '{name}'"), hint(name, &legal, None)))
}

/// What is `expected`, as the end of a message: after "expected", unless it is a sentence of its
/// own, as a [`hint`] is.
pub fn wanted(expected: &str) -> String {
    let own = [
        "did you mean ",
        "there is ",
        "there are ",
        "unknown ",
        "workload ",
        "`whichfs ",
    ];
    let own = own.iter().any(|begin| expected.starts_with(begin));
    match own || expected.ends_with(" lists all") {
        true => expected.to_owned(),
        false => format!("expected {expected}"),
    }
}

/// How much `wanted` and `known` are alike, 0 to 1; both are [`plain`].
fn similarity(wanted: &str, known: &str) -> f64 {
    /// Of the beginning of a name, of a part, and of an abbreviation (`rpi4`).
    const BEGINNING: f64 = 0.95;
    const PART: f64 = 0.88;
    const ABBREVIATION: f64 = 0.82;
    let alike = strsim::jaro_winkler(wanted, known);
    let letters = wanted.chars().count();
    if letters < 2 || known.chars().count() < 2 {
        return 0.0;
    }
    if known != wanted && known.starts_with(wanted) {
        return alike.max(BEGINNING);
    }
    if known.contains(wanted) {
        return alike.max(PART);
    }
    let mut rest = known.chars();
    let in_order = wanted
        .chars()
        .all(|letter| rest.any(|other| other == letter));
    let begins = wanted.chars().next() == known.chars().next();
    match letters >= 3 && begins && in_order {
        true => alike.max(ABBREVIATION),
        false => alike,
    }
}

/// `name` without what people write in one way or another: case, hyphens, underscores, dots.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !"-_. ".contains(*c));
    letters.flat_map(char::to_lowercase).collect()
}

/// "'a'", "'a' or 'b'", "'a', 'b' or 'c'".
fn either(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARDS: [&str; 7] = [
        "a1-32gb",
        "a2-64gb",
        "a2-cq-64gb",
        "class10-16gb",
        "class4-4gb",
        "emmc-8gb",
        "usb-stick-16gb",
    ];
    const LIST: Option<&str> = Some("`whichfs card list`");

    #[test]
    fn the_nearest_name_is_offered_and_the_list_is_named() {
        let unknown = UnknownName::new("card", "a1_32gb", &CARDS, LIST);
        let text = "unknown card 'a1_32gb'; did you mean 'a1-32gb'? `whichfs card list` lists all";
        assert_eq!(unknown.to_string(), text);
        assert_eq!(unknown.nearest, ["a1-32gb"]);
        assert_eq!(
            hint("loger", &["logger", "rootfs"], None),
            "did you mean 'logger'?"
        );
        let equal = hint("ext5", &["ext2", "ext3", "ext4", "f2fs"], None);
        assert_eq!(equal, "did you mean 'ext2', 'ext3' or 'ext4'?");
    }

    #[test]
    fn far_from_all_names_the_list_is_named_or_is_short() {
        assert_eq!(hint("zzz", &CARDS, LIST), "`whichfs card list` lists all");
        assert_eq!(hint("zzz", &["a", "b"], LIST), "there are a, b");
        assert_eq!(hint("zzz", &[""; 0], None), "there is none to name");
        let some = hint("zzz", &CARDS, None);
        assert!(
            some.starts_with("there are 7, among them a1-32gb, "),
            "{some}"
        );
        assert!(!some.contains("usb-stick"), "{some}");
    }

    #[test]
    fn a_hint_is_a_sentence_of_its_own() {
        assert_eq!(wanted("yes or no"), "expected yes or no");
        for name in ["a1_32gb", "zzz"] {
            let hint = hint(name, &CARDS, LIST);
            assert_eq!(wanted(&hint), hint);
        }
        assert_eq!(wanted("docs/cards.md lists all"), "docs/cards.md lists all");
    }

    #[test]
    fn parts_and_abbreviations_are_near() {
        let boards = ["beaglebone-black", "raspberry-pi-1", "raspberry-pi-4"];
        assert_eq!(nearest("rpi4", &boards), ["raspberry-pi-4"]);
        assert_eq!(nearest("Emmc", &CARDS), ["emmc-8gb"]);
        assert_eq!(nearest("stick", &CARDS), ["usb-stick-16gb"]);
        assert_eq!(
            nearest("torn", &["torn-512", "torn-4k", "bit-rot"]),
            ["torn-4k", "torn-512"]
        );
        for far in ["", "x", "foo", "fsck"] {
            assert!(nearest(far, &["ext4", "f2fs", "btrfs"]).is_empty(), "{far}");
        }
    }

    #[test]
    fn the_list_of_a_parsers_message_is_taken_for_a_hint() {
        let of = |message: &str| unknown_key(message);
        let both = |found: &str, hint: &str| Some((found.to_owned(), hint.to_owned()));
        assert_eq!(
            of("unknown field `titel`, expected one of `name`, `title`, `workload`"),
            both("unknown key 'titel'", "did you mean 'title'?")
        );
        assert_eq!(
            of("unknown variant `x`, expected `gpt` or `mbr`"),
            both("unknown word 'x'", "there are gpt, mbr")
        );
        assert_eq!(of("missing field `name`"), None);
        assert_eq!(of("unknown field `x`, there are no fields"), None);
    }
}
