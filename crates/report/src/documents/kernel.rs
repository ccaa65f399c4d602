//! Which kernel the lab runs.

use crate::document::Document;
use crate::text::folded_after;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// JSON of `lab kernel`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LabKernel {
    /// Where the executable is on this machine.
    pub path: PathBuf,
    /// Version with the revision of Debian, as the kernel reports it.
    pub release: String,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Lines of build-info.txt by their first word; a word that comes again is joined by ", ".
    pub build: BTreeMap<String, String>,
}

impl Document for LabKernel {
    const NAME: &'static str = "lab kernel";
}

/// The kernel in lines of at most `width` columns.
pub fn kernel_text(kernel: &LabKernel, width: usize) -> String {
    let mut text = format!(
        "path      {}\nrelease   {}\nsha256    {}",
        kernel.path.display(),
        kernel.release,
        kernel.sha256
    );
    let known = ["release", "sha256"];
    for (word, rest) in kernel
        .build
        .iter()
        .filter(|(word, _)| !known.contains(&word.as_str()))
    {
        let line = format!("{word:<9} {rest}");
        let _ = write!(text, "\n{}", folded_after(&line, 10, width));
    }
    text
}
