//! The smallest partition that each candidate of a study can be used on.

use schemars::JsonSchema;
use serde::Serialize;
use whichfs_units::Bytes;

/// What was found for a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SmallestFound<'a> {
    /// As `--fs` takes it.
    pub candidate: &'a str,
    /// Variant; empty if the study has one only.
    pub variant: &'a str,
    /// Bytes of the smallest partition; `None` if none was found.
    pub bytes: Option<u64>,
    /// Sizes are left to be tried.
    pub unfinished: bool,
    /// Smallest partition as the catalogue has it, whatever the variant.
    pub catalogue_bytes: u64,
    /// Bytes that any user may write on the smallest.
    pub free_bytes: Option<f64>,
    /// Files that may be made on it; `None` where they are not counted.
    pub free_inodes: Option<f64>,
    /// Why the next smaller size failed.
    pub why: String,
}

/// The head of the table of what was `found`.
pub(super) const HEAD: [&str; 6] = [
    "smallest partition",
    "",
    "bytes",
    "free on it",
    "inodes",
    "catalogue",
];

/// The rows under it.
pub(super) fn rows(found: &[SmallestFound]) -> Vec<Vec<String>> {
    let row = |found: &SmallestFound| {
        let bytes = match (found.bytes, found.unfinished) {
            (_, true) => "not all tried".to_owned(),
            (Some(bytes), _) => Bytes(bytes).to_string(),
            (None, _) => "none that was tried".to_owned(),
        };
        let free = found.free_bytes.filter(|_| !found.unfinished);
        let inodes = found.free_inodes.filter(|_| !found.unfinished);
        vec![
            found.candidate.to_owned(),
            found.variant.to_owned(),
            bytes,
            free.map_or("-".to_owned(), |free| Bytes(free as u64).to_string()),
            inodes.map_or("-".to_owned(), |count| format!("{count:.0}")),
            Bytes(found.catalogue_bytes).to_string(),
        ]
    };
    found.iter().map(row).collect()
}

/// What of `found` is to be read in sentences: for a page that has no such table.
pub(super) fn sentences(found: &[SmallestFound]) -> Vec<String> {
    let sentence = |found: &SmallestFound| {
        let bytes = found.bytes.filter(|_| !found.unfinished)?;
        let name = match found.variant {
            "" => found.candidate.to_owned(),
            variant => format!("{} ({variant})", found.candidate),
        };
        let free = found.free_bytes.map_or(String::new(), |free| {
            format!(", of which {} are free", Bytes(free as u64))
        });
        let why = match found.why.as_str() {
            "" => String::new(),
            why => format!("; below: {why}"),
        };
        Some(format!(
            "smallest partition of {name}: {}{free}{why}",
            Bytes(bytes)
        ))
    };
    found.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_a_row_and_a_sentence() {
        let mut one = SmallestFound {
            candidate: "vfat",
            variant: "defaults",
            bytes: Some(65_536),
            unfinished: false,
            catalogue_bytes: 8 << 20,
            free_bytes: Some(2048.0),
            free_inodes: None,
            why: "mkfs.vfat ended with status 1".to_owned(),
        };
        let row = rows(std::slice::from_ref(&one)).concat().join(" ");
        assert_eq!(row, "vfat defaults 64 KiB 2 KiB - 8 MiB");
        let said = sentences(std::slice::from_ref(&one)).concat();
        assert!(
            said.contains("(defaults): 64 KiB, of which 2 KiB are free; below: mkfs"),
            "{said}"
        );
        one.unfinished = true;
        assert!(
            rows(std::slice::from_ref(&one))
                .concat()
                .join(" ")
                .contains("not all tried - -")
        );
        assert!(sentences(&[one]).is_empty());
    }
}
