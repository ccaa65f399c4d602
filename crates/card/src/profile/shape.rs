//! Whether the figures of a profile fit together.

use super::{Family, Profile};
use crate::figures::OPEN_BLOCKS;
use crate::ftl::GROUPS_MAX;
use crate::limits::{AUS_MAX, UNITS_MAX, units};
use whichfs_units::SECTOR;

/// Blocks that closing an AU takes beside its logs.
const MERGING: u64 = 2;

/// The figure at fault and what is wrong with it.
type Misfit = (&'static str, String);

impl Profile {
    /// Checks what no range of a single figure can tell.
    pub(crate) fn check_shape(&self) -> Result<(), Misfit> {
        self.check_geometry()?;
        match self.family {
            Family::PageMap => {
                let unit = "page_map.unit_bytes";
                self.multiple(unit, SECTOR, "the sector")?;
                self.multiple("geometry.au_bytes", self.figure(unit), unit)?;
                self.check_units()?;
            }
            Family::LogBlock => {
                // A chaotic AU that begins anew takes one more.
                self.spare(self.blocks_taken() + 1)?;
            }
            Family::UpdateBlock => {
                let group = self.figure("update_block.group_bytes");
                self.multiple("geometry.au_bytes", group, "update_block.group_bytes")?;
                let groups = self.au_bytes() / group;
                if groups > GROUPS_MAX {
                    let found = format!("{groups} groups in an AU, more than {GROUPS_MAX}");
                    return Err(("update_block.group_bytes", found));
                }
                self.spare(self.open_aus_linear() + MERGING)?;
            }
        }
        self.check_wear()
    }

    fn check_geometry(&self) -> Result<(), Misfit> {
        let page = self.page_bytes();
        self.multiple("geometry.capacity_bytes", SECTOR, "the sector")?;
        self.multiple("geometry.real_bytes", SECTOR, "the sector")?;
        self.multiple("geometry.page_bytes", SECTOR, "the sector")?;
        self.multiple("geometry.write_unit_bytes", page, "geometry.page_bytes")?;
        self.multiple("geometry.au_bytes", page, "geometry.page_bytes")?;
        self.multiple("write.program_bytes", SECTOR, "the sector")?;
        self.multiple("reader.max_bytes", SECTOR, "the sector")?;
        if self.figure("geometry.real_bytes") > self.capacity_bytes() {
            let path = "geometry.real_bytes";
            return Err((path, "more than geometry.capacity_bytes".into()));
        }
        let aus = self.flash_bytes().div_ceil(self.au_bytes()) + self.figure("geometry.spare_aus");
        if aus > AUS_MAX {
            let found = format!("{aus} AUs with the spare ones, more than {AUS_MAX}");
            return Err(("geometry.au_bytes", found));
        }
        if self.flash_bytes() < self.fat_range().end + self.au_bytes() {
            let path = "geometry.capacity_bytes";
            return Err((path, "less than one AU beyond the FAT region".into()));
        }
        Ok(())
    }

    /// Whether a page map fits into memory and its background work can come to an end.
    fn check_units(&self) -> Result<(), Misfit> {
        let spare = self.figure("geometry.spare_aus");
        let blocks = self.flash_bytes().div_ceil(self.au_bytes()) + spare;
        let units = units(blocks, self.au_bytes(), self.figure("page_map.unit_bytes"));
        if units > UNITS_MAX {
            let found = format!("{units} units with the spare blocks, more than {UNITS_MAX}");
            return Err(("page_map.unit_bytes", found));
        }
        let background = self.figure("page_map.background_aus");
        if background + OPEN_BLOCKS > spare {
            let found = format!(
                "{background}, more than geometry.spare_aus ({spare}) leaves beside {OPEN_BLOCKS} \
                 open blocks"
            );
            return Err(("page_map.background_aus", found));
        }
        Ok(())
    }

    fn check_wear(&self) -> Result<(), Misfit> {
        let [low, high] =
            ["wear.pe_cycles_low", "wear.pe_cycles_high"].map(|path| self.figure(path));
        if (low == 0) == (high == 0) && low <= high {
            return Ok(());
        }
        let found = format!("{low} beside {high}: state both, the lower first, or none");
        Err(("wear.pe_cycles_low", found))
    }

    /// Blocks that log blocks take when all AUs that can be are open, those at random with all
    /// their logs, and one is merged.
    pub(crate) fn blocks_taken(&self) -> u64 {
        let linear = self.open_aus_linear();
        let more = self.figure("log_block.log_percent").div_ceil(100) - 1;
        linear + more * self.open_aus_random().min(linear) + MERGING
    }

    /// Whether the spare AUs are the `needed` ones.
    fn spare(&self, needed: u64) -> Result<(), Misfit> {
        if self.figure("geometry.spare_aus") >= needed {
            return Ok(());
        }
        let found = format!("fewer than the {needed} that open AUs and merging take");
        Err(("geometry.spare_aus", found))
    }

    fn multiple(&self, path: &'static str, of: u64, what: &str) -> Result<(), Misfit> {
        let value = self.figure(path);
        if value.is_multiple_of(of) {
            return Ok(());
        }
        let found = format!("{value}, which is no multiple of {what} ({of})");
        Err((path, found))
    }
}
