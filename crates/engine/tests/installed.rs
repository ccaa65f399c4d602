//! What `packaging/install` puts in place is what the program looks for.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;
use whichfs_engine::parts::{KERNEL_SERIES, Manifest, PartOrigin, Sought, Surroundings};

/// What the program does when it is installed: writes its manual.
const PROGRAM: &str =
    "#!/bin/sh\ncase $2 in pages) mkdir -p \"$4\"; echo page >\"$4/x.1\";; esac\n";

/// Parts of every kind, none of them real.
struct Built(TempDir);

impl Built {
    fn new() -> Built {
        let built = Built(tempfile::tempdir().unwrap());
        let files = [
            ("release/whichfs", PROGRAM),
            ("release/whichfs.static", PROGRAM),
            ("release/whichfs-agent.static", "agent"),
            ("release/whichfs-agent-x86_64", "agent of a board"),
            ("kernel/linux", "kernel"),
            ("kernel/config", ""),
            ("kernel/build-info.txt", "key 1\nbuilt today\nbuild_s 7\n"),
            ("modules/linux", "kernel with modules"),
            ("modules/config", ""),
            ("modules/build-info.txt", "key 2\n"),
            ("modules/modules/index", "ext4\t-\text4\t00\n"),
            ("userland/image", "image"),
            ("userland/sha256", "digest\n"),
            ("userland/packages", ""),
            ("userland/programs", ""),
        ];
        for (name, text) in files {
            let path = built.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        }
        built
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn install(&self, options: &[&str]) -> Output {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/install");
        let mut command = Command::new(script);
        command.args(options).arg(self.path("release"));
        command.arg(self.path("root")).arg("/usr");
        for (variable, part) in [
            ("WHICHFS_KERNEL", "kernel/linux"),
            ("WHICHFS_KERNEL_MODULES", "modules/linux"),
            ("WHICHFS_USERLAND", "userland/image"),
        ] {
            command.env(variable, self.path(part));
        }
        command.output().unwrap()
    }

    /// Where the installed program would find `sought`; there is no cache.
    fn origin(&self, sought: &Sought) -> Option<PartOrigin> {
        let program = self.path("root/usr/lib/whichfs");
        let around = Surroundings {
            manifest: Manifest::read(&program).unwrap(),
            program,
            cache: Err(whichfs_engine::Error::environment("no cache")),
        };
        let part = around.find(sought, None).ok()?;
        part.path.exists().then_some(part.origin)
    }
}

/// All that a whole package has.
fn all() -> [Sought; 4] {
    let with_modules = Sought::kernel_of(KERNEL_SERIES, true);
    [
        Sought::kernel(),
        with_modules,
        Sought::agent(),
        Sought::userland(),
    ]
}

#[test]
fn a_package_has_every_part_where_the_program_looks_for_it() {
    let built = Built::new();
    let installed = built.install(&["--complete"]);
    assert!(installed.status.success(), "{installed:?}");
    for sought in all() {
        assert_eq!(
            built.origin(&sought),
            Some(PartOrigin::Installed),
            "{sought:?}"
        );
    }
    let lib = built.path("root/usr/lib/whichfs");
    let manifest = Manifest::read(&lib).unwrap().unwrap();
    for (path, sha256) in manifest.files() {
        let bytes = std::fs::read(lib.join(path)).unwrap();
        assert_eq!(whichfs_engine::digest::sha256(&bytes), sha256, "{path}");
    }
    let listed = manifest.files().map(|file| file.0);
    assert!(listed.clone().any(|path| path == "userland/programs"));
    assert!(
        listed
            .clone()
            .any(|path| path == "kernel/6.12-modules/modules/index")
    );
    let info = std::fs::read_to_string(lib.join("kernel/6.12/build-info.txt")).unwrap();
    assert_eq!(
        info, "key 1\n",
        "the time of a build is no part of the package"
    );
    let program = std::fs::read_link(built.path("root/usr/bin/whichfs")).unwrap();
    assert_eq!(program, Path::new("../lib/whichfs/whichfs"));
    for file in [
        "OFFER",
        "kernel/COPYING",
        "kernel/lab.config",
        "kernel/patches",
    ] {
        let path = built.path("root/usr/share/doc/whichfs").join(file);
        assert!(path.exists(), "{file}");
    }
}

#[test]
fn a_package_without_a_part_is_not_made_and_an_installation_tells_it() {
    for (lost, sought) in [
        ("kernel/linux", Sought::kernel()),
        ("modules/linux", Sought::kernel_of(KERNEL_SERIES, true)),
        ("userland/image", Sought::userland()),
    ] {
        let built = Built::new();
        // Parts of an earlier installation are not taken for those of this one.
        assert!(built.install(&["--complete"]).status.success());
        std::fs::remove_file(built.path(lost)).unwrap();
        let refused = built.install(&["--complete"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{said}");
        assert!(
            said.contains("is not built") && said.contains("remedy:"),
            "{said}"
        );
        let installed = built.install(&[]);
        let said = String::from_utf8_lossy(&installed.stderr);
        assert!(
            installed.status.success() && said.contains("without the"),
            "{said}"
        );
        assert_eq!(built.origin(&sought), None, "{lost}");
        assert_eq!(built.origin(&Sought::agent()), Some(PartOrigin::Installed));
    }
}
