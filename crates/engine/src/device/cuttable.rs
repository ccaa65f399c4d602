//! A filesystem on a real device whose power will be cut.

use super::DeviceExecutor;
use crate::error::{Error, Outcome};
use crate::partition;
use crate::prepare_error::PrepareError;
use std::collections::BTreeMap;
use whichfs_format::{Span, only_partition};
use whichfs_fs::Recipe;
use whichfs_study::Tuning;

/// A filesystem on the only partition of a device.
pub struct Cuttable {
    /// Its commands, by the placeholder of the device.
    pub recipe: Recipe,
    /// Versions of its tools.
    pub tools: BTreeMap<String, String>,
    /// First byte and size of the partition.
    pub span: Span,
    /// Path of the partition.
    pub device: String,
    /// Where it is mounted.
    pub mount_point: String,
}

impl DeviceExecutor {
    /// `candidate` on a partition of about `bytes` of this device, or all of a smaller one.
    ///
    /// # Errors
    /// The machine's kernel or tools lack it, or the device is too small for it.
    pub fn cuttable(
        &self,
        candidate: &whichfs_fs::Candidate,
        bytes: u64,
        seed: u64,
    ) -> Outcome<Cuttable> {
        let whole = self.whole()?;
        let bytes = bytes.next_multiple_of(self.medium.unit.bytes);
        let span = Span {
            start: whole.start,
            bytes: bytes.min(whole.bytes),
        };
        let (name, geometry) = (candidate.name, self.medium.geometry(span.bytes));
        let recipe = partition::recipe_on(candidate, geometry, &Tuning::ThisCard, seed, false)?;
        let recipe =
            recipe.map_err(|why| Error::input(format!("{name}: {why}; try a larger partition")))?;
        self.require(candidate, &recipe).map_err(|why| match why {
            PrepareError::Failed(failure) => failure,
            PrepareError::Excluded { why, .. } => Error::environment(format!("{name}: {why}")),
        })?;
        let own = self.mount_point.display().to_string();
        Ok(Cuttable {
            tools: self.around.versions(&recipe.tools)?,
            recipe,
            span,
            device: only_partition(&self.device.name),
            mount_point: self.around.mount_point(&own),
        })
    }
}
