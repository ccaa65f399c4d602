//! Directories of this machine that a guest sees, and what they are called there.

use std::path::Path;
use whichfs_lab::SharedDirectory;

/// Name of the user's tree in the guest.
pub const TREE: &str = "tree";
/// Name of the directory of images in the guest.
const IMAGES: &str = "images";
/// Name of the directory of modules in the guest.
pub const MODULES: &str = "modules";

/// The directories that a job needs: the user's tree, the one of the image, that of modules.
pub fn directories(
    tree: Option<&Path>,
    image: Option<&Path>,
    modules: Option<&Path>,
) -> Vec<SharedDirectory> {
    let share = |name, path: Option<&Path>| {
        path.map(|path| SharedDirectory {
            name,
            path: path.to_path_buf(),
        })
    };
    let images = image.and_then(Path::parent);
    share(TREE, tree)
        .into_iter()
        .chain(share(IMAGES, images))
        .chain(share(MODULES, modules))
        .collect()
}

/// Where the guest finds an image: its name is a key of fixed length.
pub fn image_in_guest(image: &Path) -> String {
    let name = image.file_name().unwrap_or_default();
    format!("/{IMAGES}/{}", name.to_string_lossy())
}
