//! `kernel/build` from end to end, with a kernel source of a few lines that builds in a second.
//!
//! Only the compilation is a stand-in: unpacking, patching, checking the configuration, the
//! cache, the lock and the end after a signal are the script's own.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use whichfs_tidy::tree;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// `allnoconfig` gives nothing, `olddefconfig` drops the option LOST, `linux` is a program that
/// `strip` accepts; it takes long while a file `slow` lies in the cache. Each start leaves a line.
const MAKEFILE: &str = "\
allnoconfig:
\t: > .config
olddefconfig:
\tsed -i '/LOST/d; /=n$$/d' .config
linux:
\t@test \"$(KBUILD_BUILD_HOST)\" = lab && test ! -e gpu.c && test -e patched
\t@echo '  CC      a.o'
\t@if [ ! -e ../../slow ]; then echo run >> ../../runs; fi
\t@if [ -e ../../slow ]; then echo $$$$ > ../../pid; echo run >> ../../runs; sleep 60; fi
\t@cp /bin/true linux
";
const MERGE: &str = "#!/bin/sh\ncat \"$3\" >> \"$2\"\n";
const PATCH: &str = "--- /dev/null\n+++ b/patched\n@@ -0,0 +1 @@\n+patched\n";

/// A copy of the script with a small kernel, its own cache and its own configuration.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(config: &str) -> Result<Self> {
        let bench = Self {
            dir: tempfile::tempdir()?,
        };
        let source = bench.path("linux-9.9");
        write(&source.join("Makefile"), MAKEFILE)?;
        write(&source.join("scripts/kconfig/merge_config.sh"), MERGE)?;
        write(&source.join("include/config/kernel.release"), "9.9.1\n")?;
        write(&source.join("drivers/gpu/gpu.c"), "#error not wanted\n")?;
        executable(&source.join("scripts/kconfig/merge_config.sh"))?;
        let tar = Command::new("tar")
            .arg("-C")
            .arg(bench.dir.path())
            .args(["-cJf"])
            .arg(bench.path("source.tar.xz"))
            .arg("linux-9.9")
            .status()?;
        assert!(tar.success());
        for file in ["build", "excluded", "objects.tsv"] {
            let target = bench.path("kernel").join(file);
            write(
                &target,
                &fs::read_to_string(tree::root().join("kernel").join(file))?,
            )?;
        }
        executable(&bench.path("kernel/build"))?;
        write(&bench.path("kernel/lab.config"), config)?;
        write(&bench.path("kernel/patches/0001-one.patch"), PATCH)?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.path("kernel/build"));
        command
            .args(["--version", "9.9"])
            .args(arguments)
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("WHICHFS_KERNEL_SOURCE", self.path("source.tar.xz"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        Ok(self.command(arguments).output()?)
    }

    /// How often the kernel was compiled.
    fn compilations(&self) -> usize {
        let runs = self.path("cache/whichfs/kernel/runs");
        fs::read_to_string(runs).map_or(0, |text| text.lines().count())
    }

    /// Names in the cache that start like this.
    fn cached(&self, prefix: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.path("cache/whichfs/kernel"))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.starts_with(prefix) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

fn write(path: &Path, text: &str) -> Result {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    Ok(fs::write(path, text)?)
}

fn executable(path: &Path) -> Result {
    Ok(fs::set_permissions(
        path,
        fs::Permissions::from_mode(0o755),
    )?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_kernel_is_built_once_and_found_again() -> Result {
    let bench = Bench::new("CONFIG_A=y\nCONFIG_B=n\n")?;
    let planned = text(&bench.run(&["--print-path"])?.stdout);
    let first = bench.run(&[])?;
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(text(&first.stdout), planned);
    let kernel = PathBuf::from(planned.trim());
    assert!(kernel.is_file());
    assert_eq!(
        fs::canonicalize(bench.path("cache/whichfs/kernel/linux-9.9"))?,
        kernel
    );
    let info = fs::read_to_string(kernel.with_file_name("build-info.txt"))?;
    assert!(
        info.contains("release 9.9.1") && info.contains("patch 0001-one.patch"),
        "{info}"
    );
    assert!(
        bench.cached("build-")?.is_empty(),
        "the source tree is left behind"
    );

    let second = bench.run(&[])?;
    assert!(text(&second.stderr).contains("built already"));
    assert_eq!(bench.compilations(), 1);
    assert!(bench.run(&["--force"])?.status.success());
    assert_eq!(bench.compilations(), 2);
    Ok(())
}

#[test]
fn the_key_follows_configuration_and_patches() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    let key = |bench: &Bench| -> Result<String> { Ok(text(&bench.run(&["--print-key"])?.stdout)) };
    let before = key(&bench)?;
    assert_eq!(before.trim().len(), 16);
    assert_eq!(key(&bench)?, before);
    write(&bench.path("kernel/lab.config"), "CONFIG_A=y\nCONFIG_B=y\n")?;
    let other_config = key(&bench)?;
    write(&bench.path("kernel/patches/0002-two.patch"), PATCH)?;
    let other_patches = key(&bench)?;
    assert!(before != other_config && other_config != other_patches);
    Ok(())
}

#[test]
fn a_name_behind_the_version_takes_the_options_of_that_name() -> Result {
    let bench = Bench::new("CONFIG_A=y\nCONFIG_B=n\n")?;
    write(&bench.path("kernel/options/more-b.config"), "CONFIG_B=y\n")?;
    // The last --version counts.
    let named = bench.run(&["--version", "9.9-more-b"])?;
    assert!(named.status.success(), "{}", text(&named.stderr));
    let kernel = text(&named.stdout);
    let config = fs::read_to_string(Path::new(kernel.trim()).with_file_name("config"))?;
    assert!(
        config.contains("CONFIG_B=y") && config.contains("CONFIG_A=y"),
        "{config}"
    );
    assert_eq!(bench.cached("linux-9.9-more-b")?.len(), 1);
    assert_ne!(text(&bench.run(&["--print-path"])?.stdout), kernel);
    let unknown = bench.run(&["--version", "9.9-less-b"])?;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        text(&unknown.stderr).contains("more-b.config"),
        "{}",
        text(&unknown.stderr)
    );
    Ok(())
}

#[test]
fn an_option_without_effect_is_named() -> Result {
    for line in ["CONFIG_LOST=y", "CONFIG_KEPT=n"] {
        // The second: the fragment's own later line wins over it, so it has no effect.
        let bench = Bench::new(&format!("{line}\nCONFIG_A=y\nCONFIG_KEPT=y\n"))?;
        let output = bench.run(&["--configure-only"])?;
        assert_eq!(output.status.code(), Some(4));
        assert!(
            text(&output.stderr).contains(line),
            "{}",
            text(&output.stderr)
        );
        assert!(bench.cached("configure-")?.is_empty());
    }
    Ok(())
}

#[test]
fn a_patch_that_does_not_apply_is_named() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    let bad = "--- a/absent.c\n+++ b/absent.c\n@@ -1 +1 @@\n-a\n+b\n";
    write(&bench.path("kernel/patches/0002-bad.patch"), bad)?;
    let output = bench.run(&[])?;
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("0002-bad.patch does not apply"));
    assert!(bench.cached("build-")?.is_empty());
    Ok(())
}

#[test]
fn a_missing_source_or_tool_is_named_with_its_package() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    let output = bench
        .command(&[])
        .env_remove("WHICHFS_KERNEL_SOURCE")
        .output()?;
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("linux-source-9.9"));

    // All tools but bison, by links in a directory of their own.
    let tools = bench.path("tools");
    fs::create_dir(&tools)?;
    for tool in [
        "bash", "dirname", "nproc", "gcc", "g++", "ld", "make", "flex", "bc", "perl", "xz",
        "patch", "tar", "flock", "strip", "env",
    ] {
        let places = ["/usr/bin", "/bin", "/usr/local/bin"];
        let found = places
            .iter()
            .map(|place| Path::new(place).join(tool))
            .find(|at| at.exists());
        symlink(
            found.ok_or_else(|| format!("{tool} is needed by this test"))?,
            tools.join(tool),
        )?;
    }
    let output = bench.command(&[]).env("PATH", &tools).output()?;
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stderr).contains("missing: bison"),
        "{}",
        text(&output.stderr)
    );
    Ok(())
}

#[test]
fn a_cache_that_cannot_hold_a_build_is_refused_with_the_remedy() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    let mut blank = bench.command(&[]);
    blank.env("XDG_CACHE_HOME", bench.path("a cache"));
    let mut none = bench.command(&[]);
    none.env_remove("XDG_CACHE_HOME").env_remove("HOME");
    for mut command in [blank, none] {
        let output = command.output()?;
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("remedy: set"), "{said}");
    }
    assert!(!bench.path("a cache").exists());
    Ok(())
}

#[test]
fn bad_usage_is_refused() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    for arguments in [
        &["--jobs", "0"][..],
        &["--jobs"],
        &["--version", "six"],
        &["--what"],
    ] {
        let output = bench.run(arguments)?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains("remedy"), "{arguments:?}");
    }
    Ok(())
}

/// Waits, without an own bound of time, until the compilation of a running build has begun.
fn wait_for_compilation(bench: &Bench, build: &mut std::process::Child) -> Result {
    while bench.compilations() == 0 {
        assert!(
            build.try_wait()?.is_none(),
            "the build ended before it compiled"
        );
        // Not a guess of how long it takes, only a pause between two looks.
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
}

#[test]
fn an_interrupted_build_goes_on_and_a_second_one_waits() -> Result {
    let bench = Bench::new("CONFIG_A=y\n")?;
    write(&bench.path("cache/whichfs/kernel/slow"), "")?;
    let mut build = bench
        .command(&[])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    wait_for_compilation(&bench, &mut build)?;
    let kill = Command::new("kill")
        .args(["-TERM", &build.id().to_string()])
        .status()?;
    assert!(kill.success());
    assert_eq!(build.wait()?.code(), Some(143));
    assert_eq!(
        bench.cached("build-")?.len(),
        1,
        "the configured tree is kept"
    );
    let compiler = fs::read_to_string(bench.path("cache/whichfs/kernel/pid"))?;
    let alive = Path::new("/proc").join(compiler.trim()).exists();
    assert!(!alive, "the compiler goes on");

    fs::remove_file(bench.path("cache/whichfs/kernel/slow"))?;
    let mut first = bench
        .command(&[])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let second = bench.run(&[])?;
    assert!(first.wait()?.success() && second.status.success());
    // The interrupted compilation and one more: of two builds at once, one used the other's kernel.
    assert_eq!(bench.compilations(), 2);
    assert!(bench.cached("build-")?.is_empty());
    Ok(())
}
