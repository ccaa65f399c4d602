//! `setup/setup.sh` with a table of its own and stand-ins for apt and sudo: nothing is installed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use whichfs_tidy::tree;

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The tools that the script itself uses.
const TOOLS: [&str; 9] = [
    "sh", "dirname", "sed", "cut", "tr", "grep", "env", "head", "cat",
];
/// `apt-get install` makes the programs; what it was called with is noted. A package that the file
/// `refused` names fails.
const APT_GET: &str = "#!/bin/sh
echo \"$*\" >> \"$BENCH/calls\"
case \"$*\" in *install*) ;; *) exit 0 ;; esac
for word in \"$@\"; do
    case \"$word\" in pkg-*)
        if [ -e \"$BENCH/refused\" ] && grep -qx \"$word\" \"$BENCH/refused\"; then exit 100; fi ;;
    esac
done
for word in \"$@\"; do
    case \"$word\" in pkg-*)
        echo '#!/bin/sh' > \"$BENCH/bin/prog-${word#pkg-}\"
        $CHMOD 755 \"$BENCH/bin/prog-${word#pkg-}\" ;;
    esac
done
";
const APT_CACHE: &str = "#!/bin/sh\necho '  Candidate: 1.0'\n";
const TABLE: &str = "pkg-a\tbin:prog-a\tessential\tcompiles\teverything
pkg-b\tbin:prog-b\tcandidate\tmkfs of b\tbfs
pkg-c\tbin:prog-c\textra\tshows c\tan example
";

/// A copy of the script in a directory where only the stand-ins and the script's tools are found.
struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    fn new(uid: u32) -> Result<Self> {
        let bench = Self {
            dir: tempfile::tempdir()?,
        };
        for dir in ["setup", "bin"] {
            fs::create_dir(bench.path(dir))?;
        }
        fs::copy(
            tree::root().join("setup/setup.sh"),
            bench.path("setup/setup.sh"),
        )?;
        fs::write(bench.path("setup/packages.tsv"), TABLE)?;
        for tool in TOOLS {
            let place = find(tool).ok_or_else(|| format!("{tool} is needed by this test"))?;
            symlink(place, bench.path("bin").join(tool))?;
        }
        bench.program("apt-get", APT_GET)?;
        bench.program("apt-cache", APT_CACHE)?;
        bench.program("id", &format!("#!/bin/sh\necho {uid}\n"))?;
        Ok(bench)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, text: &str) -> Result {
        let path = self.path("bin").join(name);
        fs::write(&path, text)?;
        Ok(fs::set_permissions(
            path,
            fs::Permissions::from_mode(0o755),
        )?)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output> {
        let output = Command::new(self.path("bin/sh"))
            .arg(self.path("setup/setup.sh"))
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("BENCH", self.dir.path())
            .env(
                "CHMOD",
                find("chmod").ok_or("chmod is needed by this test")?,
            )
            .stdin(Stdio::null())
            .output()?;
        Ok(output)
    }

    /// What apt-get was called with.
    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }
}

fn find(tool: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin"]
        .iter()
        .map(|place| Path::new(place).join(tool))
        .find(|at| at.exists())
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_is_missing_is_named_then_installed_then_left_alone() -> Result {
    let bench = Bench::new(0)?;
    bench.program("prog-b", "#!/bin/sh\n")?;
    let first = bench.run(&[])?;
    let text = messages(&first);
    assert!(first.status.success(), "{text}");
    let named = text
        .find("pkg-a (essential): compiles")
        .ok_or("pkg-a is not named")?;
    assert!(named < text.find("installing").ok_or("nothing is installed")?);
    assert!(bench.calls().contains("pkg-a pkg-c") && !bench.calls().contains("pkg-b"));

    let calls = bench.calls();
    let second = bench.run(&[])?;
    assert!(second.status.success() && messages(&second).contains("nothing to install"));
    assert_eq!(bench.calls(), calls, "apt was called again");
    Ok(())
}

#[test]
fn without_root_and_sudo_the_command_for_an_administrator_is_given() -> Result {
    let bench = Bench::new(1000)?;
    let output = bench.run(&[])?;
    assert_eq!(output.status.code(), Some(3));
    let text = messages(&output);
    assert!(
        text.contains("install --no-install-recommends pkg-a pkg-b pkg-c"),
        "{text}"
    );
    assert!(bench.calls().is_empty());

    bench.program("prog-a", "#!/bin/sh\n")?;
    let output = bench.run(&[])?;
    assert!(output.status.success(), "a candidate is no reason to stop");
    assert!(messages(&output).contains("Not made there: bfs"));
    Ok(())
}

#[test]
fn sudo_is_used_where_it_asks_nothing() -> Result {
    let bench = Bench::new(1000)?;
    bench.program(
        "sudo",
        "#!/bin/sh\necho sudo >> \"$BENCH/calls\"\nshift\nexec \"$@\"\n",
    )?;
    bench.program("true", "#!/bin/sh\n")?;
    let output = bench.run(&[])?;
    assert!(output.status.success(), "{}", messages(&output));
    assert!(bench.calls().starts_with("sudo"));
    Ok(())
}

#[test]
fn a_package_that_cannot_be_had_costs_its_capability_alone() -> Result {
    let bench = Bench::new(0)?;
    fs::write(bench.path("refused"), "pkg-b\n")?;
    let output = bench.run(&[])?;
    let text = messages(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("pkg-b could not be installed"));
    assert!(text.contains("Not made there: bfs"));
    assert!(bench.path("bin/prog-a").exists() && bench.path("bin/prog-c").exists());

    let bench = Bench::new(0)?;
    fs::write(bench.path("refused"), "pkg-a\n")?;
    let output = bench.run(&[])?;
    assert_eq!(output.status.code(), Some(3), "an essential is missing");
    assert!(messages(&output).contains("MISSING pkg-a"));
    Ok(())
}

#[test]
fn check_and_dry_run_install_nothing() -> Result {
    let bench = Bench::new(0)?;
    assert_eq!(bench.run(&["--check"])?.status.code(), Some(3));
    let output = bench.run(&["--dry-run"])?;
    assert!(output.status.success() && messages(&output).contains("would run:"));
    assert!(bench.calls().is_empty());
    assert_eq!(bench.run(&["--what"])?.status.code(), Some(2));
    Ok(())
}

#[test]
fn an_unknown_check_in_the_table_is_refused() -> Result {
    let bench = Bench::new(0)?;
    fs::write(
        bench.path("setup/packages.tsv"),
        "pkg-a\tprog-a\tessential\tx\ty\n",
    )?;
    let output = bench.run(&[])?;
    assert!(
        messages(&output).contains("unknown check"),
        "{}",
        messages(&output)
    );
    assert_eq!(output.status.code(), Some(2));
    Ok(())
}

#[test]
fn cargo_is_found_where_home_is_not_set() -> Result {
    let bench = Bench::new(1000)?;
    let root = tree::root();
    fs::copy(root.join("setup/cargo"), bench.path("setup/cargo"))?;
    fs::write(bench.path("Cargo.toml"), "rust-version = \"1.89\"\n")?;
    for tool in ["cargo", "rustc"] {
        bench.program(tool, &format!("#!/bin/sh\necho {tool} 1.90.0 \\(x\\)\n"))?;
    }
    let output = Command::new(bench.path("bin/sh"))
        .arg(bench.path("setup/cargo"))
        .arg("--locate")
        .env_clear()
        .env("PATH", bench.path("bin"))
        .output()?;
    let found = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", messages(&output));
    assert_eq!(Path::new(found.trim()), bench.path("bin/cargo"));
    Ok(())
}

/// `make -n` in a directory, and with a target directory, whose names have blanks.
#[test]
fn paths_with_blanks_are_one_path_to_make() -> Result {
    let dir = tempfile::tempdir()?;
    let here = dir.path().join("a tree");
    fs::create_dir(&here)?;
    fs::copy(tree::root().join("Makefile"), here.join("Makefile"))?;
    for (target, expected) in [(None, "a tree/target"), (Some("b c"), "a tree/b c")] {
        let mut command = Command::new("make");
        command.args(["-n", "build"]).current_dir(&here);
        for inherited in ["CARGO_TARGET_DIR", "MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            command.env_remove(inherited);
        }
        command.envs(target.map(|target| ("CARGO_TARGET_DIR", target)));
        let said = String::from_utf8(command.output()?.stdout)?;
        let root = fs::canonicalize(dir.path())?;
        let expected = format!("--target-dir '{}/{expected}/static'", root.display());
        assert!(said.contains(&expected), "no {expected} in {said}");
    }
    Ok(())
}
