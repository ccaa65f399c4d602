//! A layout for a board: what of it gives way to the board, and what is refused.

use crate::boot::{BootBoard, BootRules};
use crate::error::LayoutError;
use crate::file::{KernelFrom, Layout};
use crate::plan::DiskPlan;
use crate::table::Kind;

impl Layout {
    /// This layout with `table`, if the user asked for one.
    pub fn with_table(self, table: Option<Kind>) -> Layout {
        Layout {
            table: table.unwrap_or(self.table),
            ..self
        }
    }

    /// This layout for the board `name` that boots by `rules`, with the table that the user asked
    /// for, if any. A kind of table that the board does not boot from gives way to the board's
    /// usual one, and so does one that the layout does not say; a card that no kernel is loaded
    /// from stays as it is.
    ///
    /// # Errors
    /// The board does not boot from the `table` that the user asked for.
    pub fn for_board(
        mut self,
        name: &str,
        rules: &BootRules,
        table: Option<Kind>,
    ) -> Result<Layout, LayoutError> {
        self = self.with_table(table);
        if self.kernel == KernelFrom::Elsewhere {
            return Ok(self);
        }
        let mut changes = Vec::new();
        let kind = |kind: Kind| kind.word().to_uppercase();
        let usual = rules.tables.first().copied().unwrap_or(self.table);
        let boots = rules.tables.contains(&self.table);
        let why = format!(
            "{} of {name} does not boot from a card with {}",
            rules.reader,
            kind(self.table)
        );
        match (table.is_some(), self.table_is_said) {
            (true, _) if !boots => {
                let remedy = format!("take {} (--table {0})", usual.word());
                return Err(LayoutError::plan(why, remedy));
            }
            (false, true) if !boots => changes.push(format!("{why}: the table is {}", kind(usual))),
            (false, false) if usual != self.table => changes.push(format!(
                "{} of {name} boots from {}: so is the table",
                rules.reader,
                kind(usual)
            )),
            _ => {}
        }
        if !changes.is_empty() {
            self.table = usual;
        }
        self.board = Some(BootBoard {
            name: name.to_owned(),
            rules: rules.clone(),
            changes,
        });
        Ok(self)
    }
}

impl DiskPlan {
    /// Whether the boot partition is one that the board boots from.
    pub(crate) fn check_board(&self) -> Result<(), LayoutError> {
        let Some(board) = &self.board else {
            return Ok(());
        };
        let (name, rules) = (&board.name, &board.rules);
        let Some(wanted) = &rules.filesystem else {
            return Ok(());
        };
        let reads = format!("{} of {name} reads a partition with {wanted}", rules.reader);
        let Some(boot) = self.boot() else {
            return Err(LayoutError::plan(
                format!("{reads}, and the layout has none of role boot"),
                format!(
                    "add one with role = \"boot\" and fs = \"{wanted}\", or say kernel = \
                     \"elsewhere\""
                ),
            ));
        };
        let partition = &boot.wanted.name;
        if boot.recipe.kernel_fs != wanted {
            let fs = boot.candidate.name;
            return Err(LayoutError::plan(
                format!("partition {partition}: {fs}, but {reads}"),
                format!("say fs = \"{wanted}\" there"),
            ));
        }
        if rules.first && boot.number != 1 {
            return Err(LayoutError::plan(
                format!(
                    "partition {partition} is number {}, but {reads}, the first",
                    boot.number
                ),
                "put it before all others",
            ));
        }
        Ok(())
    }

    /// What the board needs on the card beside partitions and filesystems, in sentences: what was
    /// changed for it, files of the boot partition, raw boot loaders.
    pub fn board_notes(&self) -> Vec<String> {
        let Some(board) = &self.board else {
            return Vec::new();
        };
        let rules = &board.rules;
        let mut notes = board.changes.clone();
        if let Some(boot) = self.boot().filter(|_| !rules.files.is_empty()) {
            let files = rules.files.join(", ");
            notes.push(format!("Partition {} must hold {files}", boot.wanted.name));
        }
        for area in &rules.raw {
            let how = area.dd("DEV").map_or(String::new(), |dd| format!(": {dd}"));
            notes.push(format!("{area}{how}"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::file::BUILTIN;
    use crate::medium::{Medium, Unit};
    use whichfs_units::{GIB, MIB};

    /// A ROM that reads FAT from an MBR, and one whose loader lies behind a GPT.
    const FAT: &str = r#"
reader = "the ROM"
tables = ["mbr"]
filesystem = "vfat"
first = true
mbr_type = "0c"
files = ["MLO"]
[sources]
"#;
    const RAW: &str = r#"
reader = "the ROM"
tables = ["gpt", "mbr"]
raw = [
    { what = "the loader", at = "33K", size = "2M", file = "flash.bin" },
    { what = "the environment", at = "4M", size = "4K" },
]
[sources]
"#;

    fn rules(text: &str) -> BootRules {
        let rules: BootRules = toml::from_str(text).unwrap();
        assert_eq!(rules.fault(), None);
        rules
    }

    fn shipped(name: &str) -> &'static str {
        BUILTIN.iter().find(|(known, _)| *known == name).unwrap().1
    }

    fn plan(rules: &BootRules, text: &str, table: Option<Kind>) -> Result<DiskPlan, LayoutError> {
        let layout = Layout::parse("l", text)
            .unwrap()
            .for_board("toy", rules, table)?;
        let medium = Medium::of_unit(2 * GIB, Unit::new(4 * MIB, "given").unwrap(), true);
        DiskPlan::new(&layout, &medium, Some("ext4"), 1)
    }

    #[test]
    fn a_layout_gives_way_to_the_rom_and_says_so() {
        let made = |text: &str| plan(&rules(FAT), text, None).unwrap();
        let plan = made(shipped("boot-root"));
        assert_eq!(plan.table, Kind::Mbr);
        let notes = plan.board_notes();
        assert!(
            notes[0].contains("of toy boots from MBR: so is the table"),
            "{notes:?}"
        );
        assert!(notes[1].contains("boot must hold MLO"), "{notes:?}");
        assert_eq!(
            plan.partitions[0].mbr_type(),
            "0c",
            "FAT16 has 0e elsewhere"
        );
        let said = made(&format!("table = \"gpt\"\n{}", shipped("boot-root")));
        let notes = said.board_notes();
        assert!(notes[0].contains("does not boot from a card with GPT: the table is MBR"));
    }

    #[test]
    fn what_contradicts_the_board_is_refused_with_the_remedy() {
        let fat = rules(FAT);
        let root =
            "[[partition]]\nname = \"root\"\nrole = \"root\"\nsize = \"1G\"\nmount = \"/\"\n";
        let boot =
            "[[partition]]\nname = \"boot\"\nrole = \"boot\"\nfs = \"ext4\"\nsize = \"64M\"\n";
        for (text, table, word, remedy) in [
            (
                shipped("ab").to_owned(),
                Some(Kind::Gpt),
                "does not boot",
                "--table mbr",
            ),
            (
                root.to_owned(),
                None,
                "none of role boot",
                "role = \"boot\"",
            ),
            (
                format!("{boot}{root}"),
                None,
                "boot: ext4, but",
                "fs = \"vfat\"",
            ),
            (
                format!("{root}{}", boot.replace("ext4", "vfat")),
                None,
                "is number 2",
                "before all others",
            ),
        ] {
            let error = plan(&fat, &text, table).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(remedy), "{error}");
        }
        // A card that the board does not boot from may be anything.
        let data = format!("kernel = \"elsewhere\"\n{root}");
        assert_eq!(plan(&fat, &data, None).unwrap().table, Kind::Gpt);
    }

    #[test]
    fn partitions_begin_behind_boot_loaders() {
        let raw = rules(RAW);
        let made = plan(&raw, shipped("boot-root"), None).unwrap();
        assert_eq!((made.table, made.partitions[0].start), (Kind::Gpt, 8 * MIB));
        let notes = made.board_notes().join("\n");
        assert!(
            notes.contains("of toy begins at 8 MiB. 4 KiB from 4 MiB on"),
            "{notes}"
        );
        assert!(
            notes.contains("dd if=flash.bin of=DEV bs=1K seek=33"),
            "{notes}"
        );
        let over = shipped("boot-root").replacen("size", "start = \"4M\"\nsize", 1);
        let error = plan(&raw, &over, None).unwrap_err().to_string();
        assert!(error.contains("place of the environment (toy)"), "{error}");
        assert!(error.contains("start = \"8192K\""), "{error}");
    }

    #[test]
    fn rules_that_no_board_can_have_are_found() {
        for (text, word) in [
            (FAT.replace("\"mbr\"", ""), "boot.tables is empty"),
            (
                FAT.replace("filesystem = \"vfat\"\n", ""),
                "need boot.filesystem",
            ),
            // The entries of a GPT lie up to 17 KiB.
            (RAW.replace("33K", "8K"), "boot.tables has gpt"),
            (RAW.replace("33K", "0"), "boot.tables has gpt"),
            (RAW.replace("33K", "33Q"), "such as \"33K\""),
            (
                RAW.replace("\"2M\"", "\"8M\""),
                "inside of what is before it",
            ),
        ] {
            let found = toml::from_str::<BootRules>(&text).unwrap().fault();
            assert!(found.as_ref().unwrap().contains(word), "{word}: {found:?}");
        }
    }
}
