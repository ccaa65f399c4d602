//! The same program in the lab.

use crate::work::Phase;
use std::path::Path;
use std::process::Command;

/// Phases of `case` in the lab on the filesystem `fs` of the catalogue.
pub fn measure(
    case: &str,
    fs: &str,
    mkfs: &str,
    options: &str,
    board: &Path,
) -> Result<Vec<Phase>, String> {
    let worker = std::env::current_exe().map_err(|e| e.to_string())?;
    let card = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/virtual_cpu/card.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
        .args([
            "lab",
            "exec",
            "--json",
            "--card-state",
            "fresh",
            "--card",
            card,
            "--fs",
            fs,
        ])
        .args(["--mkfs", mkfs, "--mount", options, "--board"])
        .arg(board)
        .arg("--")
        .arg(worker)
        .args(["work", case])
        .output()
        .map_err(|e| format!("whichfs: {e}"))?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let text = document["stdout"].as_str().unwrap_or_default();
    if document["exit_status"] != 0 {
        return Err(document.to_string());
    }
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}
