//! U-Boot: what it can read of each partition; and what the board needs before it.

use crate::plan::DiskPlan;
use whichfs_fs::{Can, Matter, care};

/// `u-boot.txt`: for each partition whether U-Boot reads its filesystem.
pub(super) fn note(plan: &DiskPlan, origin: &str) -> String {
    let mut text =
        format!("# {origin}\n# What U-Boot can read, and from where it loads the kernel.\n\n");
    for one in &plan.partitions {
        let fs = one.candidate.name;
        let reads = care(fs).get(&Matter::Uboot);
        let (word, how) = match reads {
            Some(line) if line.can == Can::No => ("no", line.how.as_str()),
            Some(line) => ("yes", line.how.as_str()),
            None => ("not known", ""),
        };
        text += &format!(
            "{}  {}  {fs}  readable: {word}  {how}\n",
            one.number, one.wanted.name
        );
    }
    match plan.kernel_partition() {
        Some(one) => {
            let root = plan.partitions.iter().find(|one| one.is_root());
            text += &format!(
                "\nKernel: partition {0} ({1}):\n  load mmc 0:{0} ${{kernel_addr_r}} {2}Image\n",
                one.number,
                one.wanted.name,
                if one.is_root() { "/boot/" } else { "/" },
            );
            if let Some(root) = root {
                text += &format!(
                    "  setenv bootargs root=PARTUUID={} rootfstype={} rootwait\n",
                    root.partuuid, root.recipe.kernel_fs
                );
            }
        }
        None => text += "\nKernel: not on this card, as the layout says.\n",
    }
    if let Some(board) = &plan.board {
        text += &format!("\n{}:\n", board.name);
    }
    for note in plan.board_notes() {
        text += &format!("  {note}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::emit::testing::{plan, text};
    use crate::table::Kind;

    #[test]
    fn the_kernel_comes_from_a_partition_that_u_boot_reads() {
        let note = text(&plan("boot-root-data", Kind::Gpt, "f2fs"), "u-boot.txt");
        assert!(note.contains("f2fs  readable: no"), "{note}");
        assert!(
            note.contains("load mmc 0:1 ") && note.contains("rootfstype=f2fs"),
            "{note}"
        );
    }
}
