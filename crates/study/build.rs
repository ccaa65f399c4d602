//! Makes the shipped study files and published tables part of the crate.

fn main() {
    whichfs_embed::directory("studies", "toml", &["claims"]);
    whichfs_embed::directory("published", "csv", &[]);
}
