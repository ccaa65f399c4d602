//! Makes the shipped study files part of the crate.

fn main() {
    whichfs_embed::directory("studies", "toml", &["claims"]);
}
