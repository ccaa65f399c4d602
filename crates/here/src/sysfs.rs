//! What sysfs tells of a block device.

use std::path::{Path, PathBuf};

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
