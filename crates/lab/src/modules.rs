//! The modules of a lab kernel that was built with such (`kernel/build --modules`).

use crate::error::LabError;
use crate::kernel::Kernel;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Directory of the modules beside the kernel image, and the list in it.
const DIRECTORY: &str = "modules";
const INDEX: &str = "index";
/// What stands in the list for nothing.
const NONE: &str = "-";

/// A loadable module of the kernel, with what it needs and offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelModule {
    /// Name of the module, without `.ko`.
    pub name: String,
    /// SHA-256 of its file, in hex.
    pub sha256: String,
    /// Names of the modules that it needs.
    needs: Vec<String>,
    /// Names under which filesystems that it has are mounted.
    filesystems: Vec<String>,
}

impl KernelModule {
    /// Its file in the directory of modules.
    pub fn file(&self) -> String {
        format!("{}.ko", self.name)
    }
}

/// All modules of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modules {
    /// Where their files are.
    pub directory: PathBuf,
    known: BTreeMap<String, KernelModule>,
}

impl Modules {
    /// The modules beside the image of `kernel`.
    ///
    /// # Errors
    /// If it has none, or their list is broken.
    pub fn of(kernel: &Kernel) -> Result<Modules, LabError> {
        let directory = kernel.path.with_file_name(DIRECTORY);
        let index = directory.join(INDEX);
        let text = std::fs::read_to_string(&index)
            .map_err(LabError::io(format!("read {}", index.display())))?;
        let known = parse(&text).map_err(|why| broken(&index, &why))?;
        Ok(Modules { directory, known })
    }

    /// What must be loaded, in this order, so that `filesystem` (`ext4`) can be mounted; nothing
    /// if no module is for it.
    ///
    /// # Errors
    /// If one needs a module that is not there, or itself.
    pub fn mounting(&self, filesystem: &str) -> Result<Vec<&KernelModule>, LabError> {
        let is_for =
            |module: &&KernelModule| module.filesystems.iter().any(|name| name == filesystem);
        // A driver that stands in for another has more names than its own.
        let own = self.known.get(filesystem).filter(is_for);
        let mut found = Vec::new();
        if let Some(module) = own.or_else(|| self.known.values().find(is_for)) {
            self.add(module, &mut Vec::new(), &mut found)
                .map_err(|why| broken(&self.directory.join(INDEX), &why))?;
        }
        Ok(found)
    }

    /// Adds `module` to `found` behind what it needs; `above` need it.
    fn add<'a>(
        &'a self,
        module: &'a KernelModule,
        above: &mut Vec<&'a str>,
        found: &mut Vec<&'a KernelModule>,
    ) -> Result<(), String> {
        if found.contains(&module) {
            return Ok(());
        }
        if above.contains(&module.name.as_str()) {
            return Err(format!("{} needs itself", module.name));
        }
        above.push(&module.name);
        for needed in &module.needs {
            let known = self.known.get(needed);
            let known = known.ok_or_else(|| format!("{} needs {needed}", module.name))?;
            self.add(known, above, found)?;
        }
        above.pop();
        found.push(module);
        Ok(())
    }
}

fn broken(index: &Path, why: &str) -> LabError {
    let what = format!(
        "{} is broken; build the kernel anew (`kernel/build --modules --force`)",
        index.display()
    );
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, why.to_owned());
    LabError::io(what)(source)
}

/// The modules of the list `text`: name, what it needs, filesystems and digest of each.
fn parse(text: &str) -> Result<BTreeMap<String, KernelModule>, String> {
    let list = |field: &str| match field {
        NONE => Vec::new(),
        names => names.split(',').map(str::to_owned).collect(),
    };
    let mut known = BTreeMap::new();
    for (at, line) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, needs, filesystems, sha256] = fields[..] else {
            return Err(format!("line {at} has {} fields, not 4", fields.len()));
        };
        if name.is_empty() || name.contains('/') || sha256.len() != 64 {
            return Err(format!("line {at} is of no module: '{line}'"));
        }
        let module = KernelModule {
            name: name.to_owned(),
            sha256: sha256.to_owned(),
            needs: list(needs),
            filesystems: list(filesystems),
        };
        known.insert(name.to_owned(), module);
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(lines: &[&str]) -> Result<Modules, String> {
        let digest = "0".repeat(64);
        let line = |line: &&str| format!("{}\t{digest}\n", line.replace(' ', "\t"));
        let text: String = lines.iter().map(line).collect();
        Ok(Modules {
            directory: "/k/modules".into(),
            known: parse(&text)?,
        })
    }

    fn order(modules: &Modules, filesystem: &str) -> Result<String, String> {
        let found = modules.mounting(filesystem).map_err(|e| e.to_string())?;
        let names: Vec<&str> = found.iter().map(|module| module.name.as_str()).collect();
        Ok(names.join(" "))
    }

    #[test]
    fn what_a_module_needs_comes_before_it_and_once() {
        let all = modules(&[
            "ext4 jbd2,mbcache,crc16 ext2,ext3,ext4",
            "ext2 mbcache ext2",
            "mbcache - -",
            "crc16 - -",
            "jbd2 crc16 -",
        ])
        .expect("well-formed");
        assert_eq!(
            order(&all, "ext4").as_deref(),
            Ok("crc16 jbd2 mbcache ext4")
        );
        assert_eq!(
            order(&all, "ext3").as_deref(),
            Ok("crc16 jbd2 mbcache ext4")
        );
        assert_eq!(
            order(&all, "ext2").as_deref(),
            Ok("mbcache ext2"),
            "its own"
        );
        assert_eq!(order(&all, "tmpfs").as_deref(), Ok(""));
    }

    #[test]
    fn a_broken_list_is_told_with_a_remedy() {
        let circle = modules(&["a b a", "b a -"]).expect("well-formed");
        let told = order(&circle, "a").expect_err("it never ends");
        assert!(
            told.contains("needs itself") && told.contains("--force"),
            "{told}"
        );
        let missing = modules(&["a b a"]).expect("well-formed");
        let told = order(&missing, "a").expect_err("b is not there");
        assert!(told.contains("a needs b"), "{told}");
        assert!(parse("ext4 jbd2\n").is_err());
        assert!(parse("../x\t-\t-\tdigest\n").is_err());
    }

    #[test]
    fn a_kernel_without_modules_says_where_they_should_be() {
        let kernel = Kernel {
            path: "/nonexistent/linux".into(),
            sha256: String::new(),
            release: String::new(),
            mounts_userland: false,
            arguments: Vec::new(),
        };
        let told = Modules::of(&kernel).expect_err("none").to_string();
        assert!(told.contains("/nonexistent/modules/index"), "{told}");
    }
}
