//! The filesystem catalogue: one file per filesystem.
//!
//! A [`Candidate`] knows its limits with their sources ([`Facts`]) and turns the geometry of a
//! card into exact commands ([`Recipe`]). [`care`] says what one does with it over its life,
//! [`elsewhere`] why others are no candidates, [`kernels`] how large its module is. Pure: nothing
//! is run and nothing is read here.
//! Adding a filesystem is one file in `src/catalogue`.

pub mod apply;
mod arguments;
mod care;
mod catalogue;
mod elsewhere;
mod ext;
mod fat_layout;
mod left_out;
mod model;
mod modules;
mod names;

pub use care::{Can, Care, Matter, Reservation, care, licences, never_reclaims, reservations};
pub use catalogue::{UnknownCandidate, candidates, find, find_of_trial};
pub use elsewhere::{Elsewhere, elsewhere, find_elsewhere};
pub use model::{
    Candidate, CrashClass, Facts, Geometry, Helper, ImageBuild, Purpose, Recipe, Unfit,
};
pub use modules::{FilesystemModule, KernelModules, kernels};
pub use names::Names;
