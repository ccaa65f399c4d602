//! What a virtual machine of a test is made of: Debian's kernel, and an initramfs of this machine's
//! programs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Emulator that runs the virtual machine.
pub const QEMU: &str = "qemu-system-x86_64";

/// A kernel image and the directory of its modules.
pub struct TestKernel {
    /// Path of the file below `/boot`.
    pub image: PathBuf,
    modules: PathBuf,
}

impl TestKernel {
    /// The newest one in `/boot`, of 6.5 or newer, that has the module `driver` in `directory`.
    pub fn with((directory, driver): (&str, &str)) -> Option<TestKernel> {
        let entries = fs::read_dir("/boot").into_iter().flatten().flatten();
        let kernels = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let release = name.strip_prefix("vmlinuz-")?;
            let mut numbers = release.split(['.', '-', '+']);
            let mut number = || numbers.next()?.parse::<u32>().ok();
            let version = (number()?, number()?, number().unwrap_or(0));
            let kernel = TestKernel {
                image: entry.path(),
                modules: Path::new("/lib/modules").join(release),
            };
            kernel.module(directory, driver)?;
            (version >= (6, 5, 0)).then_some((version, kernel))
        });
        let newest = kernels.max_by_key(|(version, _)| *version);
        newest.map(|(_, kernel)| kernel)
    }

    /// A module, unpacked; `None` where it is built in.
    pub fn module(&self, directory: &str, name: &str) -> Option<Vec<u8>> {
        let plain = self.modules.join(directory).join(format!("{name}.ko"));
        if let Ok(module) = fs::read(&plain) {
            return Some(module);
        }
        let packed = plain.with_extension("ko.xz");
        let output = Command::new("xz").arg("-dc").arg(packed).output().ok()?;
        output.status.success().then_some(output.stdout)
    }
}

/// The path of an installed program.
pub fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"];
    let mut paths = places.iter().map(|place| Path::new(place).join(name));
    paths.find(|path| path.is_file())
}

/// The libraries that `program` is linked with, its loader too.
pub fn libraries(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split_whitespace().filter(|word| word.starts_with('/'));
    words.map(PathBuf::from).collect()
}

/// A cpio archive of the kind that the kernel reads (`newc`).
#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    directories: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    entries: u32,
}

impl Archive {
    /// The installed program `name`, in /bin, with the libraries that it is linked with.
    pub fn program(&mut self, name: &str) {
        let path = program(name).unwrap_or_else(|| panic!("{name} is not installed"));
        self.file(&Path::new("/bin").join(name), &fs::read(&path).unwrap());
        self.libraries_of(&path);
    }

    /// The libraries that `path` is linked with, where this machine has them.
    pub fn libraries_of(&mut self, path: &Path) {
        for library in libraries(path) {
            if self.files.insert(library.clone()) {
                self.file(&library, &fs::read(&library).unwrap());
            }
        }
    }

    /// A file that may be run.
    pub fn file(&mut self, path: &Path, content: &[u8]) {
        if let Some(above) = path.parent() {
            self.directory(above);
        }
        self.entry(path, 0o100_755, content);
    }

    /// A directory, with those above it.
    pub fn directory(&mut self, path: &Path) {
        let mut missing: Vec<&Path> = path.ancestors().collect();
        missing.retain(|one| one.parent().is_some() && !self.directories.contains(*one));
        for one in missing.into_iter().rev() {
            self.directories.insert(one.to_owned());
            self.entry(one, 0o040_755, &[]);
        }
    }

    fn entry(&mut self, path: &Path, mode: u32, content: &[u8]) {
        self.entries += 1;
        let name = path.to_str().unwrap().trim_start_matches('/');
        let (inode, size, length) = (self.entries, content.len(), name.len() + 1);
        // magic, inode, mode, user, group, links, time, size, device, special device, name, sum
        let head = format!(
            "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{1:08x}{0:08x}{size:08x}{0:08x}{0:08x}\
             {0:08x}{0:08x}{length:08x}{0:08x}",
            0, 1
        );
        self.bytes.extend(head.as_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        let padded = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(padded, 0);
    }

    /// The whole archive, with its trailer.
    pub fn end(mut self) -> Vec<u8> {
        self.entry(Path::new("TRAILER!!!"), 0, &[]);
        self.bytes
    }
}
