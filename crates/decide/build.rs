//! Makes the shipped needs part of the crate.

fn main() {
    whichfs_embed::directory("needs", "toml", &[]);
}
