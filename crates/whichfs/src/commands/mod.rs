//! One file a command.

pub mod attach;
pub mod board;
pub mod cache;
mod capacity;
pub mod card;
pub mod card_rank;
pub mod check;
pub mod choose;
pub mod crash;
pub mod curves;
pub mod doctor;
pub mod emit;
pub mod exec;
pub mod fit;
pub mod format;
pub mod fs;
pub mod identify;
pub mod image;
pub mod kernel;
pub mod life;
pub mod manual;
pub mod need;
pub mod probe;
mod probe_progress;
pub mod report;
pub mod store;
pub mod study;
mod table;
pub mod trial;
pub mod workload;

/// Tells what was passed over in logs, unless the answer is a JSON document.
pub fn passed_over(json: bool) -> impl Fn(&str) {
    move |what| {
        if !json {
            note!("{what}");
        }
    }
}

/// Refuses a list in which a name stands twice, whatever the case of its letters: it would be made
/// twice, or once although two are asked for. `flag` is what the list was given by.
pub fn once(flag: &str, names: &[String]) -> crate::failure::Outcome {
    let same = |name: &&String| {
        names
            .iter()
            .filter(|o| o.eq_ignore_ascii_case(name))
            .count()
            > 1
    };
    match names.iter().find(same) {
        None => Ok(()),
        Some(name) => Err(crate::failure::Failure::input(format!(
            "{flag}: {name} stands twice; name each once"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::once;

    #[test]
    fn a_name_stands_once_in_a_list() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            once("--fs", &names)
        };
        assert!(of(&["ext4", "xfs"]).is_ok() && of(&[]).is_ok());
        for twice in [["ext4", "ext4"], ["ext4", "EXT4"]] {
            let refused = of(&twice).map_err(|failure| failure.message);
            assert_eq!(
                refused,
                Err("--fs: ext4 stands twice; name each once".to_owned())
            );
        }
    }
}
