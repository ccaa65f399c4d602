//! Prints where a tree breaks the house rules: `cargo run --release -p whichfs-tidy [ROOT]`.

use std::process::ExitCode;

use whichfs_tidy::{check, tree};

fn main() -> ExitCode {
    let root = std::env::args_os()
        .nth(1)
        .map_or_else(tree::root, Into::into);
    let files = match tree::read(&root) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("tidy: {error}");
            return ExitCode::from(2);
        }
    };
    let findings = check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("tidy: {} files, {} findings", files.len(), findings.len());
    ExitCode::from(u8::from(!findings.is_empty()))
}
