//! Whether the figures of a profile fit together.

use super::Profile;
use crate::figures::Misfit;
use crate::limits::AUS_MAX;
use whichfs_units::SECTOR;

impl Profile {
    /// Checks what no range of a single figure can tell.
    pub(crate) fn check_shape(&self) -> Result<(), Misfit> {
        self.check_geometry()?;
        self.own.check(self)?;
        self.check_wear()
    }

    fn check_geometry(&self) -> Result<(), Misfit> {
        let page = self.page_bytes();
        self.geometry
            .capacity_bytes
            .check_multiple(SECTOR, "the sector")?;
        self.geometry
            .real_bytes
            .check_multiple(SECTOR, "the sector")?;
        self.geometry
            .page_bytes
            .check_multiple(SECTOR, "the sector")?;
        self.geometry
            .write_unit_bytes
            .check_multiple(page, "geometry.page_bytes")?;
        self.geometry
            .au_bytes
            .check_multiple(page, "geometry.page_bytes")?;
        self.write
            .program_bytes
            .check_multiple(SECTOR, "the sector")?;
        self.reader.max_bytes.check_multiple(SECTOR, "the sector")?;
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
}
