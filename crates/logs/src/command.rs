//! Command lines of flashbench and dd, as a shell's transcript has them.

use crate::text::Line;
use crate::{Caveat, Operation, SYNC_EACH, UNSYNCED};
use whichfs_units::SECTOR;

/// What a command line of flashbench asked for; defaults are the program's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flashbench {
    pub align: bool,
    pub fat: bool,
    pub open_au: bool,
    pub random: bool,
    pub open_aus: u32,
    pub fat_aus: u32,
    /// Unknown where the argument is a shell variable.
    pub block_bytes: Option<u64>,
    pub erase_bytes: Option<u64>,
    pub device: Option<String>,
}

/// What a command line of dd asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dd {
    /// Unknown where neither side tells: a copy from file to file.
    pub operation: Option<Operation>,
    pub block_bytes: Option<u64>,
    pub direct: bool,
    /// What is read or written: a block device without the number of its partition, or a file.
    pub device: Option<String>,
    pub file: Option<String>,
    /// As [`crate::Rate::caveat`].
    pub caveat: Option<Caveat>,
    /// `status=progress`: lines like the result come before it.
    pub progress: bool,
    /// It stands for several: in a loop of the shell, or in a heading.
    pub repeats: bool,
}

/// Long options of flashbench, their short names, and whether they take an argument
/// (`parse_arguments` of flashbench.c).
const OPTIONS: [(&str, char, bool); 17] = [
    ("out", 'o', true),
    ("scatter", 's', false),
    ("scatter-order", 'S', true),
    ("scatter-span", '$', true),
    ("align", 'a', false),
    ("interval", 'i', false),
    ("interval-order", 'I', true),
    ("find-fat", 'f', false),
    ("fat-nr", 'F', true),
    ("open-au", 'O', false),
    ("open-au-nr", '0', true),
    ("offset", 't', true),
    ("random", 'r', false),
    ("verbose", 'v', false),
    ("count", 'c', true),
    ("blocksize", 'b', true),
    ("erasesize", 'e', true),
];

/// The flashbench command in `text`; none where it has no action, as in prose.
pub(super) fn flashbench(text: &str) -> Option<Flashbench> {
    let words = command(text, "flashbench")?;
    let mut found = Flashbench {
        align: false,
        fat: false,
        open_au: false,
        random: false,
        open_aus: 2,
        fat_aus: 6,
        block_bytes: Some(16384),
        erase_bytes: Some(4 << 20),
        device: None,
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let Some((_, short, argument)) = long_option(name) else {
                continue;
            };
            let value = if argument {
                value.or_else(|| words.next())
            } else {
                None
            };
            found.set(short, value.as_deref());
        } else if let Some(cluster) = word.strip_prefix('-').filter(|c| !c.is_empty()) {
            let mut letters = cluster.chars();
            while let Some(letter) = letters.next() {
                // Of the short forms only these take arguments: "o:siafF:Ovrc:b:e:p".
                let value = "oFcbe".contains(letter).then(|| match letters.as_str() {
                    "" => words.next(),
                    rest => Some(rest.to_owned()),
                });
                let ends = value.is_some();
                found.set(letter, value.flatten().as_deref());
                if ends {
                    break;
                }
            }
        } else {
            found.device.get_or_insert(word);
        }
    }
    (found.align || found.fat || found.open_au).then_some(found)
}

/// The largest erase or block size that is believed, in bytes.
const SIZE_MAX: u64 = 1 << 40;

impl Flashbench {
    /// What its `--erasesize` or `--blocksize` should have been, where the test asks for it and it
    /// says one that no device has.
    pub fn wrong_size(&self) -> Option<&'static str> {
        let possible = 1..=SIZE_MAX;
        let erases = |bytes: u64| possible.contains(&bytes) && bytes.is_multiple_of(SECTOR);
        if (self.fat || self.open_au) && !self.erase_bytes.is_none_or(erases) {
            return Some("an --erasesize in whole sectors of 512 bytes, at most 1 TiB");
        }
        let reads = |bytes: u64| possible.contains(&bytes);
        (!self.block_bytes.is_none_or(reads)).then_some("a --blocksize of 1 byte to 1 TiB")
    }

    fn set(&mut self, option: char, value: Option<&str>) {
        let beyond = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        let number = value.and_then(|text| match arithmetic(text) {
            None if !text.is_empty() && beyond(text) => Some(u64::MAX),
            number => number,
        });
        let small = number.and_then(|number| u32::try_from(number).ok());
        match option {
            'a' => self.align = true,
            'f' => self.fat = true,
            'O' => self.open_au = true,
            'r' => self.random = true,
            '0' => self.open_aus = small.unwrap_or(0),
            'F' => self.fat_aus = small.unwrap_or(0),
            'b' => self.block_bytes = number,
            'e' => self.erase_bytes = number,
            _ => {}
        }
    }
}

/// getopt_long takes any unambiguous beginning of a name.
fn long_option(name: &str) -> Option<(&'static str, char, bool)> {
    let exact = OPTIONS.iter().find(|option| option.0 == name);
    let mut begin = OPTIONS.iter().filter(|option| option.0.starts_with(name));
    let unique = match (begin.next(), begin.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    };
    exact.or(unique).copied()
}

/// Entries of `/dev` that hold nothing, or memory.
const NO_DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "shm/"];

/// Writes that are synced one by one count as the card's from this size on, in bytes.
const SYNCED_LEAST: u64 = 512 << 10;

/// The disk of a block device or of a partition: `/dev/sda` of `/dev/sda2`, `/dev/mmcblk0` of
/// `/dev/mmcblk0p1`, macOS's `/dev/disk2` of `/dev/rdisk2s1`.
pub(super) fn whole_disk(path: &str) -> Option<String> {
    let name = path.strip_prefix("/dev/")?;
    if NO_DEVICES.iter().any(|other| name.starts_with(other)) {
        return None;
    }
    let name = name
        .strip_prefix('r')
        .filter(|name| name.starts_with("disk"))
        .unwrap_or(name);
    let digit = |c: char| c.is_ascii_digit();
    let letters = name.trim_end_matches(digit);
    let disk = match letters.strip_suffix(['p', 's']) {
        Some(disk) if disk.ends_with(digit) => disk,
        _ if ["sd", "hd", "vd"]
            .iter()
            .any(|kind| letters.starts_with(kind)) =>
        {
            letters
        }
        _ => name,
    };
    Some(format!("/dev/{disk}"))
}

/// The dd command in `text`.
pub(super) fn dd(text: &str) -> Option<Dd> {
    let words = command(text, "dd")?;
    let value = |key: &str| {
        let find = |word: &String| word.strip_prefix(key)?.strip_prefix('=').map(str::to_owned);
        words.iter().find_map(find)
    };
    let (input, output) = (value("if"), value("of"));
    if input.is_none() && output.is_none() {
        return None;
    }
    let endless = |path: &Option<String>| {
        path.as_ref()
            .is_some_and(|p| p.starts_with("/dev/") && whole_disk(p).is_none())
    };
    let device = |path: &Option<String>| path.as_deref().and_then(whole_disk);
    let operation = match [&input, &output].map(|path| (endless(path), device(path).is_some())) {
        [(false, _), (true, _)] | [(false, true), (false, false)] => Some(Operation::Read),
        [(true, _), (false, _)] | [(false, false), (false, true)] => Some(Operation::Write),
        _ => None,
    };
    let writes = operation == Some(Operation::Write);
    let (block, flags, path) = match writes {
        true => ("obs", "oflag", &output),
        false => ("ibs", "iflag", &input),
    };
    let has = |key: &str, wanted: &[&str]| {
        value(key).is_some_and(|flags| flags.split(',').any(|flag| wanted.contains(&flag)))
    };
    let block_bytes = value("bs").or_else(|| value(block));
    let block_bytes = block_bytes.and_then(|text| dd_number(&text));
    let raw = path
        .as_deref()
        .is_some_and(|path| path.starts_with("/dev/rdisk"));
    let direct = raw || has(flags, &["direct"]);
    let each = has("oflag", &["sync", "dsync"]);
    // The close of a block device writes what the page cache holds, and dd counts it.
    let synced = direct || each || device(path).is_some() || has("conv", &["fsync", "fdatasync"]);
    let before = text.split("dd ").next().unwrap_or("");
    let caveat = match input.as_deref() {
        _ if !writes => None,
        _ if !synced => Some(UNSYNCED),
        Some("/dev/random" | "/dev/urandom") => {
            Some(Caveat::at_least("the host makes random numbers meanwhile"))
        }
        None if before.contains('|') => Some(Caveat::at_least("fed by another program")),
        _ if each && block_bytes.is_none_or(|bytes| bytes < SYNCED_LEAST) => Some(SYNC_EACH),
        _ => None,
    };
    Some(Dd {
        operation,
        block_bytes,
        direct,
        device: device(path),
        file: path.clone().filter(|_| device(path).is_none()),
        caveat,
        progress: value("status").as_deref() == Some("progress"),
        repeats: has_word(text, "do"),
    })
}

/// Lines over which a loop of a shell is looked for.
const LOOP_LINES_MAX: usize = 16;

/// Whether what follows `lines` is in a loop of the shell that they begin and do not end.
pub(super) fn in_loop(lines: &[Line]) -> bool {
    let mut ended = 0_usize;
    let mut lines = lines.iter().rev().take(LOOP_LINES_MAX).peekable();
    while let Some(line) = lines.next() {
        let text = after_prompt(&line.text);
        let begins = match text {
            "do" => lines.peek().is_some_and(|before| is_loop(&before.text)),
            _ => is_loop(text) && text.contains(';') && has_word(text, "do"),
        };
        if first_word(text) == "done" {
            ended += 1;
        } else if begins && !has_word(text, "done") {
            if ended == 0 {
                return true;
            }
            ended -= 1;
        }
    }
    false
}

/// Whether a line begins a loop of the shell.
fn is_loop(text: &str) -> bool {
    ["for", "while", "until"].contains(&first_word(after_prompt(text)))
}

/// A line of a transcript without the shell's prompt: `$`, `>`, `root@pi:~#`, `pi@pi:~ $`.
fn after_prompt(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(word) = rest.split_whitespace().next() {
        if !word.contains('@') && !word.ends_with(['$', '#', '>']) {
            break;
        }
        rest = rest[word.len()..].trim_start();
    }
    rest
}

fn first_word(text: &str) -> &str {
    shell_words(text).next().unwrap_or("")
}

fn has_word(text: &str, wanted: &str) -> bool {
    shell_words(text).any(|word| word == wanted)
}

/// What blanks, quotes and ends of commands part.
fn shell_words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ';', '\t', '\'', '"'])
}

/// dd's numbers: `4M` and `4K` are binary, `4MB` and `4kB` decimal.
pub(super) fn dd_number(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let value: u64 = text[..digits].parse().ok()?;
    let scale = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "c" => 1,
        "b" => 512,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return None,
    };
    value.checked_mul(scale).filter(|&bytes| bytes > 0)
}

/// A number as the shell hands it on: digits, or a product in `$[…]` or `$((…))`.
fn arithmetic(text: &str) -> Option<u64> {
    let inner = |open: &str, close: &str| text.strip_prefix(open)?.strip_suffix(close);
    let product = inner("$((", "))").or_else(|| inner("$[", "]"));
    match product {
        Some(product) => product.split('*').try_fold(1_u64, |all, factor| {
            all.checked_mul(factor.trim().parse().ok()?)
        }),
        None => text.parse().ok(),
    }
}

/// The words after the program `name` up to a pipe, a redirection or the next command.
pub(super) fn command(text: &str, name: &str) -> Option<Vec<String>> {
    let words = words(text);
    if let Some(script) = script(&words) {
        return command(script, name);
    }
    let is_program = |word: &String| {
        let path = word.trim_start_matches(['$', '#', '`', '(']);
        path.rsplit('/').next() == Some(name)
    };
    let start = words.iter().position(is_program)? + 1;
    let ends = |word: &String| word.starts_with(['|', '>', ';', '&', '`']) || word.contains(">&");
    let of_command = words[start..].iter().take_while(|word| !ends(word));
    Some(
        of_command
            .map(|word| word.trim_end_matches([';', '`']).to_owned())
            .collect(),
    )
}

/// What `sh -c 'script'` runs.
fn script(words: &[String]) -> Option<&str> {
    let is_shell = |word: &String| {
        let program = word.rsplit('/').next().unwrap_or(word);
        ["sh", "bash", "dash", "ash", "zsh", "ksh"].contains(&program)
    };
    let shell = words.iter().position(is_shell)?;
    match &words[shell + 1..] {
        [option, script, ..] if option == "-c" => Some(script),
        _ => None,
    }
}

/// Splits at blanks outside `$[…]`, `$((…))` and quotes.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0_usize;
    let mut quote = None;
    for c in text.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => quote = Some(c),
            ('[' | '(', None) if depth > 0 || word.ends_with('$') => {
                depth += 1;
                word.push(c);
            }
            (']' | ')', None) if depth > 0 => {
                depth -= 1;
                word.push(c);
            }
            (c, None) if c.is_whitespace() && depth == 0 => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn commands_of_the_readme_and_of_scripts() {
        let text = "$ sudo ./flashbench -O --erasesize=$[4 * 1024 * 1024] \
                    --blocksize=$[256 * 1024] /dev/mmcblk0  --open-au-nr=3";
        let found = flashbench(text).unwrap();
        assert!(found.open_au && !found.random && !found.align);
        assert_eq!(found.open_aus, 3);
        assert_eq!(found.erase_bytes, Some(4 << 20));
        assert_eq!(found.block_bytes, Some(256 << 10));
        assert_eq!(found.device.as_deref(), Some("/dev/mmcblk0"));
        let found = flashbench("# flashbench --rand --open-au --open-au-n 5 /dev/sdb -b 4096");
        let found = found.unwrap();
        assert!(found.random && found.open_au);
        assert_eq!((found.open_aus, found.block_bytes), (5, Some(4096)));
        let found = flashbench("flashbench -fr --fat-nr=8 -b1024 /dev/sdb > log 2>&1").unwrap();
        assert!(found.fat && found.random);
        assert_eq!((found.fat_aus, found.block_bytes), (8, Some(1024)));
        for none in ["0", "3", "4000", "99999999999999999999", "2199023255552"] {
            let found = flashbench(&format!("flashbench -O --erasesize={none} d")).unwrap();
            assert!(found.wrong_size().is_some(), "{none}");
            let found = flashbench(&format!("flashbench -a --erasesize={none} d")).unwrap();
            assert_eq!(found.wrong_size(), None, "reads know no erase size");
        }
        for none in ["0", "99999999999999999999"] {
            let found = flashbench(&format!("flashbench -a --blocksize={none} d")).unwrap();
            assert!(found.wrong_size().is_some(), "{none}");
        }
        let found = flashbench("flashbench -aO -e $((24*1024*1024)) $DEV").unwrap();
        assert_eq!(found.wrong_size(), None);
        assert_eq!((found.open_aus, found.erase_bytes), (2, Some(24 << 20)));
        assert_eq!(found.device.as_deref(), Some("$DEV"));
    }

    #[test]
    fn prose_is_no_command() {
        for text in [
            "I ran flashbench on my card",
            "flashbench: need at least one action",
            "apt install flashbench",
            "",
            "--- flashbench",
        ] {
            assert_eq!(flashbench(text), None, "{text}");
        }
        assert_eq!(dd("dd: error writing"), None);
        assert_eq!(dd("Linear read speed (dd, 4M block)"), None);
    }

    #[test]
    fn dd_tells_its_direction() {
        let read = dd("$ sudo dd if=/dev/sdb of=/dev/null bs=4M iflag=direct count=10").unwrap();
        assert_eq!(read.operation, Some(Operation::Read));
        assert_eq!(read.block_bytes, Some(4 << 20));
        assert!(read.direct);
        let write = dd("dd if=/dev/zero of=file bs=64K conv=fdatasync").unwrap();
        assert_eq!(write.operation, Some(Operation::Write));
        assert!(!write.direct);
        assert_eq!(dd("dd if=a of=b").unwrap().operation, None);
        let shell = "$ sudo sh -c 'dd if=test of=/dev/null bs=4M'";
        assert_eq!(dd(shell).unwrap().operation, Some(Operation::Read));
        assert_eq!(dd("sh -c"), None);
        assert_eq!(dd_number("4MB"), Some(4_000_000));
        assert_eq!(dd_number("99999999999G"), None);
        assert_eq!(dd_number("$BS"), None);
    }
}
