//! The engine of whichfs: runs trials of filesystems on modelled and real cards, cuts the power in
//! them, and keeps what they found.
//!
//! The command line is one caller of this library; other programs can be others. The engine prints
//! nothing and reads no arguments: progress goes to an [`observer::Observer`], remarks go to the
//! `log` crate, the permission to overwrite a device comes from a [`consent::Consent`], and a
//! request to stop is a flag that the caller sets.

pub mod apply;
pub mod board;
pub mod builder_files;
pub mod cache_files;
pub mod campaign;
pub mod cards;
pub mod choose;
pub mod choose_on_device;
pub mod clock;
pub mod cluster;
pub mod consent;
pub mod crash;
pub mod device;
pub mod digest;
pub mod doctor;
mod error;
pub mod executor;
pub mod external_journal;
pub mod guest_places;
pub mod helper;
mod image_guest;
pub mod images;
mod inference;
pub mod input;
pub mod json_lines;
pub mod kernel_build;
pub mod kernel_config;
pub mod lab_executor;
pub mod lab_image;
pub mod lab_program;
pub mod labgrid;
pub mod life;
pub mod logs;
pub mod medium;
pub mod memory;
pub mod mock;
pub mod modules;
pub mod narrowing;
pub mod observer;
pub mod partition;
pub mod parts;
pub mod places;
pub mod planned_run;
mod portable_files;
mod possible_cards;
mod prepare_error;
pub mod probe_state;
pub mod program;
pub mod question;
pub mod record_import;
pub mod report_folder;
pub mod runs;
pub mod shared;
pub mod shell;
pub mod signatures;
pub mod stores;
pub mod studies;
pub mod study_cost;
pub mod study_run;
mod sustained;
pub mod tools;
pub mod tree;
pub mod trial_cache;
pub mod trial_lookup;
mod trial_recipe;
pub mod tuning_study;
pub mod undo_log_file;
pub mod version;
pub mod visible;
pub mod workload_run;

pub use error::{Error, ErrorKind, Outcome};
pub use whichfs_decide::catalogue as facts;
