//! An image of a tuned filesystem with a directory's files in it.

use super::format::checks_table;
use crate::document::Document;
use crate::text::Lines;
use schemars::JsonSchema;
use serde::Serialize;
use whichfs_layout::Check;
use whichfs_units::Bytes;

/// An image with a directory's files in it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ImageDocument<'a> {
    /// Where the image was written.
    pub image: String,
    /// Candidate that the image holds.
    pub fs: &'a str,
    /// Length of the image in bytes.
    pub bytes: u64,
    /// The allocation unit that it is tuned to.
    pub au_bytes: u64,
    /// How that is known.
    pub au_why: &'a str,
    /// Options, and why.
    pub tuning: &'a [(String, String)],
    /// What was checked.
    pub checks: &'a [Check],
}

impl Document for ImageDocument<'_> {
    const NAME: &'static str = "image";
}

impl ImageDocument<'_> {
    /// Whether a check failed, in which case there is no image.
    pub fn is_bad(&self) -> bool {
        self.checks.iter().any(Check::is_bad)
    }
}

/// The document in lines of at most `width` columns.
pub fn image_text(document: &ImageDocument, width: usize) -> String {
    let (size, au) = (Bytes(document.bytes), Bytes(document.au_bytes));
    let sentence = match document.is_bad() {
        true => format!("{}: not made, because a check failed.", document.image),
        false => format!(
            "{}: {} of {size}; allocation unit of {au}: {}.",
            document.image, document.fs, document.au_why
        ),
    };
    let mut out = Lines::new(width);
    out.paragraph(&sentence, 2);
    for (what, why) in document.tuning {
        out.paragraph(&format!("  {what}: {why}"), 4);
    }
    out.line("");
    checks_table(&mut out, document.checks);
    out.text()
}
