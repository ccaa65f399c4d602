//! What sysfs tells of a block device.

use std::path::{Path, PathBuf};

/// The serial number of a USB device whose directory is `dir`.
fn serial(dir: &Path) -> Option<String> {
    let text = std::fs::read_to_string(dir.join("serial")).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| format!("serial {text}"))
}

/// A block device in sysfs.
#[derive(Clone, Debug)]
pub struct Block {
    dir: PathBuf,
    /// Kernel's name, `sda` or `mmcblk0`.
    pub name: String,
    /// `major:minor`.
    pub number: String,
}

impl Block {
    /// The device `number` (`major:minor`), if sysfs knows it.
    pub fn of(sys: &Path, number: &str) -> Option<Block> {
        let dir = std::fs::canonicalize(sys.join("dev/block").join(number)).ok()?;
        Block::at(dir)
    }

    /// The disk that the kernel calls `name`.
    pub fn named(sys: &Path, name: &str) -> Option<Block> {
        Block::at(std::fs::canonicalize(sys.join("block").join(name)).ok()?)
    }

    /// Its path in `/dev`. The kernel writes `!` for a slash.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name.replace('!', "/"))
    }

    /// What tells this disk from others of its kind, as far as the system knows: the card's
    /// register, or the serial number of the device or of what it is plugged into, else the
    /// file that a loop device shows; then its size. Cards of one size in one reader are not
    /// told apart.
    pub fn identity(&self) -> String {
        let own = [
            "device/cid",
            "device/serial",
            "serial",
            "device/wwid",
            "wwid",
        ];
        let own = own.iter().find_map(|name| {
            let value = self.attribute(name).filter(|value| !value.is_empty())?;
            Some(format!("{name} {value}"))
        });
        let above = || self.dir.ancestors().skip(1).find_map(serial);
        let file = || self.attribute("loop/backing_file");
        let known = own.or_else(above).or_else(file);
        let sectors = self.attribute("size").unwrap_or_default();
        format!(
            "{}, {sectors} sectors",
            known.unwrap_or_else(|| self.name.clone())
        )
    }

    fn at(dir: PathBuf) -> Option<Block> {
        let name = dir.file_name()?.to_str()?.to_owned();
        let number = std::fs::read_to_string(dir.join("dev")).ok()?;
        Some(Block {
            dir,
            name,
            number: number.trim().to_owned(),
        })
    }

    /// The disk that this is a partition of.
    pub fn disk(&self) -> Option<Block> {
        if !self.dir.join("partition").exists() {
            return None;
        }
        Block::at(self.dir.parent()?.to_path_buf())
    }

    /// Its partitions.
    pub fn partitions(&self) -> Vec<Block> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let mut found: Vec<Block> = entries
            .map(|entry| entry.path())
            .filter(|path| path.join("partition").exists())
            .filter_map(Block::at)
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// Names of the devices made of it.
    pub fn holders(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.join("holders"));
        let entries = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// An attribute, without the blanks around it.
    pub fn attribute(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.dir.join(name)).ok()?;
        Some(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::machine;
    use std::fs;

    #[test]
    fn a_disk_is_identified_by_its_register_else_by_what_it_is_plugged_into() {
        let (_root, roots) = machine();
        let disk = Block::named(&roots.sys, "sdz").unwrap();
        fs::write(disk.dir.join("size"), "1024\n").unwrap();
        assert_eq!(disk.identity(), "sdz, 1024 sectors");
        fs::write(roots.sys.join("devices/serial"), "READER\n").unwrap();
        assert_eq!(disk.identity(), "serial READER, 1024 sectors");
        fs::create_dir(disk.dir.join("device")).unwrap();
        fs::write(disk.dir.join("device/cid"), "0353\n").unwrap();
        assert_eq!(disk.identity(), "device/cid 0353, 1024 sectors");
        assert_eq!(disk.path(), "/dev/sdz");
    }
}
