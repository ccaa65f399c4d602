//! `whichfs need`: what counts for a purpose and what excludes, and a file of one's own.

use super::choose;
use crate::cli::NeedNewArgs;
use crate::failure::{Failure, Outcome};
use crate::output;
use whichfs_decide::Need;
use whichfs_engine::places;
use whichfs_report::documents::need::{NeedLine, NeedShown, need_table, need_text};

/// Examples in the help text.
pub fn help() -> String {
    let facts: Vec<&str> = whichfs_decide::Fact::all()
        .map(|fact| fact.name())
        .collect();
    let rows: Vec<String> = facts.chunks(5).map(|row| row.join(", ")).collect();
    format!(
        "\
Examples:
  whichfs need list
  whichfs need show rootfs
  whichfs need new sensor --from logger --out sensor.toml    then: whichfs choose --for sensor.toml

Facts that a rule and --need FACT=VALUE may ask for (docs/adding-data.md):
  {}",
        rows.join(",\n  ")
    )
}

/// All needs, a line each.
pub fn list(json: bool) -> Outcome<u8> {
    let lines: Vec<NeedLine> = Need::builtin().iter().map(NeedLine::new).collect();
    match json {
        true => output::list(&lines)?,
        false => output::text_line(&need_table(&lines, output::width()))?,
    }
    Ok(0)
}

/// One need, shipped or of a file.
pub fn show(name: &str, json: bool) -> Outcome<u8> {
    let document = NeedShown::new(&choose::need(name, &[])?);
    match json {
        true => output::document(&document)?,
        false => output::text(&need_text(&document, output::width()))?,
    }
    Ok(0)
}

/// Prints a need file to change, or writes it.
pub fn new(args: &NeedNewArgs) -> Outcome<u8> {
    let text = Need::file_like(&args.from, &args.name).map_err(Failure::input)?;
    let Some(out) = &args.out else {
        output::text(&text)?;
        return Ok(0);
    };
    if out.exists() {
        return Err(Failure::input(format!(
            "--out {}: it exists; name a new file",
            out.display()
        )));
    }
    places::write_whole(out, text.as_bytes())?;
    note!(
        "{}: change it, then whichfs choose --for {0}",
        out.display()
    );
    Ok(0)
}
