//! Makes the shipped knowledge files part of the crate.

fn main() {
    whichfs_embed::directory("knowledge", "toml", &[]);
}
