//! Images of read-only filesystems: built outside virtual time and cached.
//!
//! Trials of the lab have them built by the tools of the sealed userland, in a guest; trials on a
//! device by those of this machine.

use crate::digest::{hex, sha256};
use crate::error::{Error, ErrorKind, Outcome};
use crate::places;
use crate::prepare_error::PrepareError;
use crate::shell::quoted_os;
use crate::tools::Versions;
use crate::workload_run::WorkloadRun;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use whichfs_fs::{Candidate, ImageBuild, Recipe};
use whichfs_trial::WorkloadSpec;
use whichfs_workload::Workload;

/// The phase of a workload that writes its tree.
const TREE_PHASE: &str = "tree_write";

/// Who runs the tool that makes an image.
pub trait ImageBuilder {
    /// What decides the bytes that the tools of `recipe` write, beside tree and command.
    fn version(&self, recipe: &Recipe) -> String;

    /// Builds `image` of `tree`.
    ///
    /// # Errors
    /// What the tool said.
    fn build(&self, build: &ImageBuild, tree: &Path, image: &Path) -> Result<(), String>;
}

/// The tools of this machine.
pub struct HostTools;

/// Builds images, one at a time, telling somebody what takes so long.
pub struct Images<'a> {
    tell: &'a (dyn Fn(&str) + Sync),
    /// Build what is not there yet.
    builds: bool,
    one_at_a_time: Mutex<State>,
}

/// What is known while images are asked for.
#[derive(Default)]
struct State {
    /// Images that were looked at or built.
    sound: BTreeSet<PathBuf>,
}

impl<'a> Images<'a> {
    /// `tell` hears what is being built.
    pub fn new(tell: &'a (dyn Fn(&str) + Sync)) -> Images<'a> {
        Images {
            tell,
            builds: true,
            one_at_a_time: Mutex::default(),
        }
    }

    /// Only says where images are or would be.
    pub fn unbuilt() -> Images<'static> {
        Images {
            builds: false,
            ..Images::new(&|_| ())
        }
    }

    /// Whether `workload` has a tree to put into an image.
    pub fn can_hold(workload: &dyn Workload) -> bool {
        let mut phases = workload.phases().iter();
        phases.any(|phase| phase.name == TREE_PHASE)
    }

    /// The image of `candidate` with `work`'s tree of `seed`; `None` if it is not one that
    /// is built as an image.
    ///
    /// # Errors
    /// The candidate's tool cannot make it: the candidate is excluded. Anything else is no fault of
    /// the candidate.
    pub fn of(
        &self,
        candidate: &Candidate,
        recipe: &Recipe,
        work: &WorkloadRun,
        spec: &WorkloadSpec,
        seed: u64,
        builder: &dyn ImageBuilder,
    ) -> Result<Option<PathBuf>, PrepareError> {
        let image = self.built(candidate, recipe, work, spec, seed, builder);
        image.map_err(|failure| match failure.kind {
            // A tool that cannot make this image may make others, and other tools may.
            ErrorKind::Trial => PrepareError::Excluded {
                why: failure.message,
                source: None,
            },
            _ => PrepareError::Failed(failure),
        })
    }

    fn built(
        &self,
        candidate: &Candidate,
        recipe: &Recipe,
        work: &WorkloadRun,
        spec: &WorkloadSpec,
        seed: u64,
        builder: &dyn ImageBuilder,
    ) -> Outcome<Option<PathBuf>> {
        let Some(build) = &recipe.image else {
            return Ok(None);
        };
        let mut state = self.one_at_a_time.lock();
        let sound = &mut state.sound;
        let tree_key = tree_key(work, spec, seed);
        let tools = builder.version(recipe);
        let key = sha256(format!("{tree_key}\n{:?}\n{tools}", build.argv).as_bytes());
        let image = places::cache_directory("images")?.join(format!("{}.img", &key[..32]));
        if self.builds && !sound.contains(&image) && !is_sound(&image, &file_digest) {
            (self.tell)(&format!(
                "building the image of {} (kept for next time)",
                candidate.name
            ));
            let tree = match &work.tree {
                Some(tree) => tree.clone(),
                None => self.tree(&tree_key, work.workload, spec, seed)?,
            };
            let check = || work.check_tree();
            build_image(candidate.name, build, &tree, &image, builder, &check)?;
        }
        sound.insert(image.clone());
        Ok(Some(image))
    }

    /// The generated tree as a directory of the host.
    fn tree(
        &self,
        key: &str,
        workload: &dyn Workload,
        spec: &WorkloadSpec,
        seed: u64,
    ) -> Outcome<PathBuf> {
        let tree = places::cache_directory("trees")?.join(&key[..32]);
        let digest = |tree: &Path| crate::tree::digest(tree, workload);
        if tree.exists() {
            if is_sound(&tree, &digest) {
                return Ok(tree);
            }
            let _ = std::fs::remove_dir_all(&tree);
        }
        (self.tell)("writing the tree for images (kept for next time)");
        remove_abandoned(&tree);
        let part = tree.with_extension(format!("{}.part", std::process::id()));
        let _ = std::fs::remove_dir_all(&part);
        places::make(&part)?;
        let written = workload
            .operations(TREE_PHASE, spec, None, seed)
            .map_err(Error::input)
            .and_then(|ops| {
                let time = whichfs_agent::Time::still();
                whichfs_agent::operate(
                    ops,
                    &part,
                    None,
                    &time,
                    whichfs_agent::Manner::default(),
                    &mut |_, _, _| Ok(()),
                )
                .map_err(Error::environment)
            })
            .and_then(|_| seal(&tree, &digest(&part)?))
            .and_then(|()| put_in_place(&part, &tree));
        if written.is_err() {
            let _ = std::fs::remove_dir_all(&part);
        }
        written.map(|()| tree)
    }
}

/// Where the digest of the cached `file` is kept.
fn sealed(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Whether the cached `file` is there and is what was kept: a damaged one decides results under the
/// name of the sound one.
fn is_sound(file: &Path, digest: &dyn Fn(&Path) -> Outcome<String>) -> bool {
    let Ok(kept) = std::fs::read_to_string(sealed(file)) else {
        return false;
    };
    let sound = digest(file).is_ok_and(|found| found == kept);
    if !sound && file.exists() {
        log::warn!("{} is damaged: it is made anew", file.display());
    }
    sound
}

/// Keeps the `digest` of `file`, before that has its name: nobody finds it without.
fn seal(file: &Path, digest: &str) -> Outcome {
    places::write_whole(&sealed(file), digest.as_bytes())
}

/// SHA-256 of the file at `path`.
fn file_digest(path: &Path) -> Outcome<String> {
    let mut hash = Sha256::new();
    crate::tree::content(path, &mut hash)?;
    Ok(hex(&hash.finalize()))
}

/// Age at which what a dead process left unfinished is removed: longer than any build, because
/// a process of another container looks dead from here.
const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// Removes what killed runs left unfinished beside `whole`.
fn remove_abandoned(whole: &Path) {
    let Some(Ok(entries)) = whole.parent().map(Path::read_dir) else {
        return;
    };
    for entry in entries.flatten() {
        let age = entry.metadata().ok().and_then(|meta| meta.modified().ok());
        let age = age.and_then(|modified| modified.elapsed().ok());
        let alive = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
        let (name, path) = (entry.file_name(), entry.path());
        if is_abandoned(&name.to_string_lossy(), age.unwrap_or_default(), &alive) {
            let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
        }
    }
}

/// Whether `name` is of a part that nobody finishes any more.
fn is_abandoned(name: &str, age: Duration, alive: &dyn Fn(u32) -> bool) -> bool {
    let owner = name
        .strip_suffix(".part")
        .and_then(|rest| rest.rsplit('.').next())
        .and_then(|pid| pid.parse().ok());
    owner.is_some_and(|pid| age >= ABANDONED_AFTER && !alive(pid))
}

/// Gives the finished `part` its name, unless another run was first with the same.
fn put_in_place(part: &Path, whole: &Path) -> Outcome {
    match std::fs::rename(part, whole) {
        Ok(()) => Ok(()),
        Err(_) if whole.exists() => {
            let _ = std::fs::remove_dir_all(part);
            Ok(())
        }
        Err(e) => Err(Error::environment(format!(
            "cannot rename {} to {}: {e}; free room there or set XDG_CACHE_HOME elsewhere",
            part.display(),
            whole.display()
        ))),
    }
}

fn tree_key(work: &WorkloadRun, spec: &WorkloadSpec, seed: u64) -> String {
    if work.tree.is_some() {
        return work.tree_sha256.clone();
    }
    // The generator is part of this program: its version decides the tree too.
    let version = crate::version::version();
    sha256(format!("{version} {} {:?} {seed}", spec.name, spec.parameters).as_bytes())
}

/// Builds `image` of `tree`; it is there only if it was built whole and `check` agrees.
fn build_image(
    name: &str,
    build: &ImageBuild,
    tree: &Path,
    image: &Path,
    builder: &dyn ImageBuilder,
    check: &dyn Fn() -> Outcome,
) -> Outcome {
    remove_abandoned(image);
    let part = image.with_extension(format!("{}.part", std::process::id()));
    let _ = std::fs::remove_file(&part);
    let failed = |why: String| {
        let _ = std::fs::remove_file(&part);
        let argv = argv(build, tree, &part);
        let words: Vec<String> = argv.iter().map(|word| quoted_os(word)).collect();
        let command = words.join(" ");
        let text = format!("the image of {name} could not be built by `{command}`: {why}");
        Error::new(ErrorKind::Trial, text)
    };
    builder.build(build, tree, &part).map_err(|why| {
        let full = why.contains("No space left on device");
        let failure = failed(why);
        match full {
            true => Error::environment(format!(
                "{failure}; make room there, or set XDG_CACHE_HOME elsewhere"
            )),
            false => failure,
        }
    })?;
    let kept = check()
        .and_then(|()| file_digest(&part))
        .and_then(|digest| seal(image, &digest));
    kept.inspect_err(|_| drop(std::fs::remove_file(&part)))?;
    std::fs::rename(&part, image).map_err(|e| failed(e.to_string()))
}

/// The command of `build`; as paths, which need not be text.
fn argv<'a>(build: &'a ImageBuild, tree: &'a Path, image: &'a Path) -> Vec<&'a OsStr> {
    let word = |word: &'a String| match word.as_str() {
        ImageBuild::TREE => tree.as_os_str(),
        ImageBuild::IMAGE => image.as_os_str(),
        word => OsStr::new(word),
    };
    build.argv.iter().map(word).collect()
}

impl ImageBuilder for HostTools {
    fn version(&self, recipe: &Recipe) -> String {
        format!("{:?}", Versions::default().of(&recipe.tools))
    }

    fn build(&self, build: &ImageBuild, tree: &Path, image: &Path) -> Result<(), String> {
        let argv = argv(build, tree, image);
        let (program, arguments) = argv.split_first().ok_or("no command")?;
        let output = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(whichfs_workload::environment(&build.env))
            .output()
            .map_err(|e| e.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        Err(format!("{}: {}", output.status, last.join(" / ")))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_second_of_two_runs_takes_the_tree_of_the_first() {
        let home = tempfile::tempdir().unwrap();
        let [part, whole] = ["1.part", "tree"].map(|name| home.path().join(name));
        for directory in [&part, &whole] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("file"), "x").unwrap();
        }
        put_in_place(&part, &whole).unwrap();
        assert!(whole.exists() && !part.exists());
        let failure = put_in_place(&part, &home.path().join("none/tree")).unwrap_err();
        assert!(failure.message.contains("none/tree"), "{failure}");
    }

    #[test]
    fn only_old_parts_of_the_dead_are_abandoned() {
        let dead = |_| false;
        assert!(is_abandoned("abc.17.part", ABANDONED_AFTER, &dead));
        assert!(!is_abandoned("abc.17.part", ABANDONED_AFTER, &|pid| pid == 17));
        assert!(!is_abandoned("abc.17.part", Duration::ZERO, &dead));
        for name in ["abc", "abc.img", "abc.part", "abc.x.part"] {
            assert!(!is_abandoned(name, ABANDONED_AFTER, &dead), "{name}");
        }
    }

    #[test]
    fn attack_a_damaged_or_unsealed_image_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("x.img");
        std::fs::write(&image, "sound").unwrap();
        assert!(!is_sound(&image, &file_digest), "nobody knows what it was");
        seal(&image, &file_digest(&image).unwrap()).unwrap();
        assert!(is_sound(&image, &file_digest));
        std::fs::write(&image, "soumd").unwrap();
        assert!(!is_sound(&image, &file_digest), "planted fault: one byte");
        std::fs::remove_file(&image).unwrap();
        assert!(!is_sound(&image, &file_digest));
    }

    #[test]
    fn a_tool_that_fails_is_a_failure_of_its_candidate_but_a_full_disk_is_not() {
        let home = tempfile::tempdir().unwrap();
        let image = home.path().join("x.img");
        let kind = |script: &str| {
            let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
            let env = BTreeMap::new();
            let build = ImageBuild { argv, env };
            let failed = build_image("erofs", &build, home.path(), &image, &HostTools, &|| Ok(()));
            failed.unwrap_err().kind
        };
        assert_eq!(kind("echo name too long >&2; exit 1"), ErrorKind::Trial);
        let full = "echo write: No space left on device >&2; exit 1";
        assert_eq!(kind(full), ErrorKind::Environment);
    }

    #[test]
    fn a_tree_whose_name_is_no_text_is_found() {
        use std::os::unix::ffi::OsStrExt;
        let home = tempfile::tempdir().unwrap();
        let tree = home.path().join(OsStr::from_bytes(b"tr\xffee"));
        std::fs::create_dir(&tree).unwrap();
        let image = home.path().join("x.img");
        let argv = ["sh", "-c", "test -d \"$0\" && touch \"$1\""];
        let argv = argv
            .into_iter()
            .chain([ImageBuild::TREE, ImageBuild::IMAGE]);
        let build = ImageBuild {
            argv: argv.map(str::to_owned).collect(),
            env: BTreeMap::new(),
        };
        build_image("x", &build, &tree, &image, &HostTools, &|| Ok(())).unwrap();
        assert!(image.exists());
    }

    #[test]
    fn an_image_of_a_tree_that_changed_meanwhile_is_not_kept() {
        let home = tempfile::tempdir().unwrap();
        let [tree, image] = ["tree", "x.img"].map(|name| home.path().join(name));
        std::fs::create_dir(&tree).unwrap();
        let workload = whichfs_workload::find("rootfs").unwrap();
        let before = crate::tree::digest(&tree, workload).unwrap();
        let check = || crate::tree::check_unchanged(&tree, workload, &before);
        let build = |script: &str| ImageBuild {
            argv: ["sh", "-c", script, ImageBuild::TREE, ImageBuild::IMAGE]
                .map(str::to_owned)
                .to_vec(),
            env: BTreeMap::new(),
        };
        let early = build("touch \"$1\"");
        build_image("x", &early, &tree, &image, &HostTools, &check).unwrap();
        assert!(image.exists());
        assert!(is_sound(&image, &file_digest));
        for file in [&image, &sealed(&image)] {
            std::fs::remove_file(file).unwrap();
        }
        let late = build("touch \"$1\" \"$0/late\"");
        let failure = build_image("x", &late, &tree, &image, &HostTools, &check).unwrap_err();
        assert_eq!(failure.kind, ErrorKind::Input, "{failure}");
        let left: Vec<_> = home.path().read_dir().unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "the tree alone: {left:?}");
    }
}
