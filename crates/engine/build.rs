//! Makes the shipped data files part of the crate.

fn main() {
    whichfs_embed::directory("boards", "toml", &[]);
}
