//! How to apply a candidate: commands and the fstab line, for a person to paste.

use crate::{cards, external_journal};
use whichfs_decide::PartitionRule;
use whichfs_fs::apply::{of_recipe, word};
use whichfs_fs::{Geometry, Helper, Purpose, Recipe};
use whichfs_study::SecondCard;

/// The commands for `candidate` on a card of `geometry`, to be mounted on `target` for good, in the
/// partition that the need has a rule for; `None` if it does not fit the card.
pub fn commands(
    geometry: &Geometry,
    candidate: &str,
    target: &str,
    partition: Option<&PartitionRule>,
) -> Option<Vec<String>> {
    let called = candidate;
    let candidate = whichfs_fs::find_of_trial(called).ok()?;
    let mut recipe = candidate.recipe(geometry, Purpose::User).ok()?;
    let journal = called != candidate.name;
    if journal && !external_journal::keep_on(&mut recipe, candidate.name, JOURNAL) {
        return None;
    }
    let mut lines = of_recipe(&recipe, target);
    if journal {
        with_journal(&mut lines, &recipe);
    }
    if let Some(rule) = partition {
        lines.splice(..1, partitioned(geometry, &recipe, rule));
    }
    let packages = candidate.facts().packages.join(" ");
    lines.extend(beside(&recipe, target, &packages));
    Some(lines)
}

/// Stands for the journal's device in commands before it is named.
const JOURNAL: &str = "JOURNAL_DEVICE";

/// Has `lines` for `recipe` make the journal on a second card first.
fn with_journal(lines: &mut Vec<String>, recipe: &Recipe) {
    for line in lines.iter_mut() {
        let device = match line.starts_with('#') {
            true => "/dev/disk/by-partuuid/…",
            false => "$JOURNAL",
        };
        *line = line.replace(JOURNAL, device);
    }
    let make =
        (recipe.kernel_fs != "xfs").then(|| "mke2fs -q -O journal_dev -b 4096 $JOURNAL".to_owned());
    let partition = format!(
        "JOURNAL=/dev/sda1   # a partition of {} MiB on the second card",
        SecondCard::JOURNAL_MIB
    );
    lines.splice(1..1, [partition].into_iter().chain(make));
}

/// The commands that give the card the one partition of `rule`, begun on an AU boundary.
fn partitioned(geometry: &Geometry, recipe: &Recipe, rule: &PartitionRule) -> Vec<String> {
    let (number, kind) = (rule.number, whichfs_layout::mbr_type(recipe));
    let start = cards::first_au(geometry.au_bytes) / 512;
    vec![
        "DISK=/dev/mmcblk0   # the whole card: all that is on it is lost".to_owned(),
        format!("# {}", rule.because),
        format!("echo '{number} : start={start}, type={kind}' | sfdisk --label dos $DISK"),
        format!("DEV=${{DISK}}p{number}   # /dev/sdX{number} where the card is /dev/sdX"),
    ]
}

/// The process that belongs to it while it is mounted, if there is one: how it is started, and
/// in which packages it is.
fn beside(recipe: &Recipe, target: &str, packages: &str) -> Option<String> {
    let helper = recipe.helper.as_ref().filter(|helper| !helper.mounts)?;
    let words = helper.argv.iter().map(|argument| match argument.as_str() {
        Helper::MOUNT => target.to_owned(),
        argument => word(argument),
    });
    let command = words.collect::<Vec<_>>().join(" ");
    Some(format!(
        "# {packages}: mount.{} of it starts what must run while it is mounted; where mount(8) \
         does not, as BusyBox': {command}",
        recipe.kernel_fs
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_must_run_beside_it_is_told() {
        let geometry = Geometry {
            partition_bytes: 1 << 30,
            page_bytes: 8 << 10,
            write_unit_bytes: 32 << 10,
            au_bytes: 4 << 20,
            discard: false,
            flush: false,
        };
        let last = |name| commands(&geometry, name, "/data", None).and_then(|mut all| all.pop());
        let told = last("nilfs2").unwrap_or_default();
        assert!(
            told.starts_with("# nilfs-tools: mount.nilfs2 of it starts")
                && told.ends_with("BusyBox': nilfs_cleanerd $DEV /data"),
            "{told}"
        );
        // The kernel's driver of NTFS needs nothing beside it, nor do others.
        for name in ["ntfs3", "ext4"] {
            let told = last(name).unwrap_or_default();
            assert!(told.starts_with("# fstab:"), "{told}");
        }
    }

    #[test]
    fn a_journal_on_a_second_card_is_made_first_and_named_everywhere() {
        let geometry = Geometry {
            partition_bytes: 1 << 30,
            page_bytes: 8 << 10,
            write_unit_bytes: 32 << 10,
            au_bytes: 4 << 20,
            discard: false,
            flush: false,
        };
        let of = |name| commands(&geometry, name, "/data", None).unwrap_or_default();
        let ext4 = of("ext4+journal");
        assert!(ext4[1].starts_with("JOURNAL=/dev/"), "{ext4:?}");
        assert!(ext4[2].ends_with("-O journal_dev -b 4096 $JOURNAL"));
        assert!(ext4[3].ends_with("-J device=$JOURNAL $DEV"), "{ext4:?}");
        let xfs = of("xfs+journal").join("\n");
        assert!(xfs.contains(",logdev=$JOURNAL $DEV"), "{xfs}");
        assert!(xfs.contains("-o noatime,logdev=$JOURNAL $DEV"), "{xfs}");
        assert!(
            xfs.contains("noatime,logdev=/dev/disk/by-partuuid/…  0"),
            "{xfs}"
        );
        assert!(of("f2fs+journal").is_empty(), "it has none");
    }

    /// An exchange card has one partition in an MBR, with the type that its filesystem has there.
    #[test]
    fn a_card_for_exchange_is_partitioned_as_the_standard_has_it() {
        let geometry = Geometry {
            partition_bytes: 1 << 34,
            page_bytes: 8 << 10,
            write_unit_bytes: 32 << 10,
            au_bytes: 6 << 20,
            discard: false,
            flush: false,
        };
        let need = whichfs_decide::Need::named("exchange").unwrap();
        let rule = need.partition.as_ref();
        for (name, kind) in [("vfat", "0c"), ("exfat", "07")] {
            let lines = commands(&geometry, name, "/data", rule).unwrap();
            let made = format!("echo '1 : start=12288, type={kind}' | sfdisk --label dos $DISK");
            assert!(lines.contains(&made), "{lines:?}");
            assert!(lines[1].contains("SD Association") && lines[3].starts_with("DEV=${DISK}p1"));
            assert!(
                !lines.iter().any(|line| line.contains("mmcblk0p2")),
                "{lines:?}"
            );
        }
    }
}
