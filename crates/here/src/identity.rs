//! What tells a device from another of the same size and name.

use crate::guard::{Kind, Roots, Target};
use crate::sysfs::Block;

impl Target {
    /// The card's register (CID), its serial number or world-wide name; where it has none, only
    /// the name of the device; the path of a file.
    pub fn identity(&self, roots: &Roots) -> String {
        let Kind::Disk { name, number } = &self.kind else {
            let path = std::fs::canonicalize(&self.path);
            let path = path.unwrap_or_else(|_| self.path.clone());
            return format!("file {}", path.display());
        };
        let block = Block::of(&roots.sys, number);
        let told = |attribute: &str| {
            let value = block.as_ref()?.attribute(attribute)?;
            let value = value.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        let places = [
            "device/cid",
            "device/serial",
            "device/wwid",
            "serial",
            "wwid",
        ];
        match places.into_iter().find_map(told) {
            Some(number) => format!("device {number}"),
            None => format!("device {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs;

    #[test]
    fn two_cards_in_one_slot_are_told_apart_by_their_register() {
        let place = std::env::temp_dir().join(format!("whichfs-identity-{}", std::process::id()));
        let disk = place.join("sys/dev/block/179:0");
        fs::create_dir_all(disk.join("device")).unwrap();
        fs::write(disk.join("dev"), "179:0\n").unwrap();
        let roots = Roots {
            proc: place.join("proc"),
            sys: place.join("sys"),
        };
        let target = Target {
            path: "/dev/mmcblk0".into(),
            kind: Kind::Disk {
                name: "mmcblk0".into(),
                number: "179:0".into(),
            },
        };
        let mut seen = vec![target.identity(&roots)];
        for register in [
            "1b534d30303030301056bb77b400e4b1\n",
            "02544d53413034471056bb77b400e4b1\n",
        ] {
            fs::write(disk.join("device/cid"), register).unwrap();
            seen.push(target.identity(&roots));
        }
        fs::remove_dir_all(&place).unwrap();
        assert_eq!(seen[0], "device mmcblk0");
        assert!(
            seen[1].contains("1b534d") && seen[2].contains("02544d"),
            "{seen:?}"
        );
    }
}
