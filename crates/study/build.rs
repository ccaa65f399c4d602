//! Makes the shipped data files part of the crate.

fn main() {
    whichfs_embed::directory("needs", "toml", &[]);
    whichfs_embed::directory("studies", "toml", &["claims"]);
}
