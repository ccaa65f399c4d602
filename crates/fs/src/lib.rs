//! The filesystem catalogue: one file per filesystem.
