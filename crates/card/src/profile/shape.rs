//! Whether the figures of a profile fit together.

use super::Profile;
use crate::figures::{FamilyFigures, Figure, LogBlockFigures, OPEN_BLOCKS, PageMapFigures};
use crate::limits::{AUS_MAX, GROUPS_MAX, UNITS_MAX, units};
use whichfs_units::SECTOR;

/// Blocks that closing an AU takes beside its logs.
const MERGING: u64 = 2;

/// The figure at fault and what is wrong with it.
type Misfit = (&'static str, String);

impl Profile {
    /// Checks what no range of a single figure can tell.
    pub(crate) fn check_shape(&self) -> Result<(), Misfit> {
        self.check_geometry()?;
        match &self.own {
            FamilyFigures::PageMap(own) => {
                multiple(&own.unit_bytes, SECTOR, "the sector")?;
                let unit = own.unit_bytes.value;
                multiple(&self.geometry.au_bytes, unit, own.unit_bytes.path)?;
                self.check_units(own)?;
            }
            FamilyFigures::LogBlock(own) => {
                // A chaotic AU that begins anew takes one more.
                self.spare(self.blocks_taken(own) + 1)?;
            }
            FamilyFigures::UpdateBlock(own) => {
                let group = &own.group_bytes;
                multiple(&self.geometry.au_bytes, group.value, group.path)?;
                let groups = self.au_bytes() / group.value;
                if groups > GROUPS_MAX {
                    let found = format!("{groups} groups in an AU, more than {GROUPS_MAX}");
                    return Err((group.path, found));
                }
                self.spare(self.open_aus_linear() + MERGING)?;
            }
        }
        self.check_wear()
    }

    fn check_geometry(&self) -> Result<(), Misfit> {
        let page = self.page_bytes();
        multiple(&self.geometry.capacity_bytes, SECTOR, "the sector")?;
        multiple(&self.geometry.real_bytes, SECTOR, "the sector")?;
        multiple(&self.geometry.page_bytes, SECTOR, "the sector")?;
        multiple(&self.geometry.write_unit_bytes, page, "geometry.page_bytes")?;
        multiple(&self.geometry.au_bytes, page, "geometry.page_bytes")?;
        multiple(&self.write.program_bytes, SECTOR, "the sector")?;
        multiple(&self.reader.max_bytes, SECTOR, "the sector")?;
        if self.geometry.real_bytes.value > self.capacity_bytes() {
            let path = self.geometry.real_bytes.path;
            return Err((path, "more than geometry.capacity_bytes".into()));
        }
        let aus = self.flash_bytes().div_ceil(self.au_bytes()) + self.geometry.spare_aus.value;
        if aus > AUS_MAX {
            let found = format!("{aus} AUs with the spare ones, more than {AUS_MAX}");
            return Err((self.geometry.au_bytes.path, found));
        }
        if self.flash_bytes() < self.fat_range().end + self.au_bytes() {
            let path = self.geometry.capacity_bytes.path;
            return Err((path, "less than one AU beyond the FAT region".into()));
        }
        Ok(())
    }

    /// Whether a page map fits into memory and its background work can come to an end.
    fn check_units(&self, own: &PageMapFigures) -> Result<(), Misfit> {
        let spare = self.geometry.spare_aus.value;
        let blocks = self.flash_bytes().div_ceil(self.au_bytes()) + spare;
        let units = units(blocks, self.au_bytes(), own.unit_bytes.value);
        if units > UNITS_MAX {
            let found = format!("{units} units with the spare blocks, more than {UNITS_MAX}");
            return Err((own.unit_bytes.path, found));
        }
        let background = own.background_aus.value;
        if background + OPEN_BLOCKS > spare {
            let found = format!(
                "{background}, more than geometry.spare_aus ({spare}) leaves beside {OPEN_BLOCKS} \
                 open blocks"
            );
            return Err((own.background_aus.path, found));
        }
        Ok(())
    }

    fn check_wear(&self) -> Result<(), Misfit> {
        let (low, high) = (
            self.wear.pe_cycles_low.value,
            self.wear.pe_cycles_high.value,
        );
        if (low == 0) == (high == 0) && low <= high {
            return Ok(());
        }
        let found = format!("{low} beside {high}: state both, the lower first, or none");
        Err((self.wear.pe_cycles_low.path, found))
    }

    /// Blocks that log blocks take when all AUs that can be are open, those at random with all
    /// their logs, and one is merged.
    pub(crate) fn blocks_taken(&self, own: &LogBlockFigures) -> u64 {
        let linear = self.open_aus_linear();
        let more = own.log_percent.value.div_ceil(100) - 1;
        linear + more * self.open_aus_random().min(linear) + MERGING
    }

    /// Whether the spare AUs are the `needed` ones.
    fn spare(&self, needed: u64) -> Result<(), Misfit> {
        if self.geometry.spare_aus.value >= needed {
            return Ok(());
        }
        let found = format!("fewer than the {needed} that open AUs and merging take");
        Err((self.geometry.spare_aus.path, found))
    }
}

fn multiple(figure: &Figure, of: u64, what: &str) -> Result<(), Misfit> {
    let value = figure.value;
    if value.is_multiple_of(of) {
        return Ok(());
    }
    let found = format!("{value}, which is no multiple of {what} ({of})");
    Err((figure.path, found))
}
