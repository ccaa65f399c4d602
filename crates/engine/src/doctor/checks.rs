//! The checks beyond packages: kernel, agent, sealed userland, directories, memory, store, and a
//! guest.

use super::{CheckNeed as Need, MachineCheck as Check};
use crate::board::{self, Board};
use crate::cache_files;
use crate::cards::{self, CardState, in_state};
use crate::error::{Error as Failure, Outcome};
use crate::parts::{Manifest, PartOrigin, REINSTALL, Sought, Surroundings};
use crate::places;
use rustix::fs::statvfs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use whichfs_card::Contents;
use whichfs_lab::{
    Agent, BlockGeometry, CpuPrices, Disk, GuestLimits, GuestSpec, Kernel, Root, Userland,
    available_cores, memory_directory, run,
};
use whichfs_store::Store;
use whichfs_trial::Job;
use whichfs_units::{Bytes, MIB, Nanos};

/// Free space that the cache should have: kernel/build asks for 1.5 GiB; images and trees of
/// the read-only candidates and card contents that spill take less.
const CACHE_FREE: u64 = 1536 * MIB;
/// Memory of the guest that shows that guests run.
const GUEST_MIB: u64 = 64;
/// Wall time after which that guest is given up; it usually takes less than a second.
const GUEST_LIMIT: Duration = Duration::from_secs(60);
/// Name of the check that boots a guest.
pub(super) const GUEST: &str = "guest";
/// Wait for another process's lock on the store.
const STORE_WAIT: Duration = Duration::from_millis(500);
const MAKE_BUILD: &str = "make build, or set WHICHFS_AGENT to a static whichfs-agent";
const MAKE_USERLAND: &str = "make userland, or userland/build";
const MAKE_KERNEL: &str = "make kernel, or whichfs lab kernel --build";
/// What is lost without kernel, agent or memory.
const NO_TRIALS: &str = "no trial can run";

/// All of them.
pub(super) fn all(cancelled: &AtomicBool) -> Outcome<Vec<Check>> {
    let mut checks = match places::require_lab() {
        Ok(()) => of_the_lab(cancelled)?,
        Err(why) => vec![no_lab(&why)],
    };
    checks.extend(installed_files()?);
    checks.push(directory("cache", places::cache()));
    checks.push(free_space());
    checks.push(cache_size());
    checks.push(directory("data", places::store()));
    checks.push(store());
    Ok(checks)
}

/// That this program has no lab, which is no fault.
fn no_lab(why: &Failure) -> Check {
    let lost = "choose, study run and crash run without a device";
    let remedy = "run them on a PC with x86-64";
    Check::missing("lab", Need::Extra, why.message.clone(), lost, remedy)
}

/// Those of what runs guests.
fn of_the_lab(cancelled: &AtomicBool) -> Outcome<Vec<Check>> {
    let kernel = kernel();
    let agent = places::agent();
    let userland = places::userland();
    let memory = memory(Board::open(board::DEFAULT)?.file.memory.mib);
    let mut checks = vec![memory, kernel_check(&kernel), agent_check(&agent)];
    checks.push(userland_check(&userland));
    if let (Ok(kernel), Ok(agent), Ok(userland), true) = (&kernel, &agent, &userland, checks[0].ok)
    {
        checks.push(guest_check(kernel, agent, userland, cancelled)?);
    }
    checks.push(cores());
    checks.push(confinement());
    Ok(checks)
}

/// The lab kernel, if it is one that this machine runs.
fn kernel() -> Outcome<Kernel> {
    let kernel = places::kernel()?;
    let path = kernel.path.display();
    let head = std::fs::read(&kernel.path).map_err(Failure::environment)?;
    if !is_x86_64(&head) {
        return Err(Failure::environment(format!("{path} is no x86-64 program")));
    }
    let output = Command::new(&kernel.path)
        .arg("--version")
        .output()
        .map_err(|e| Failure::environment(format!("{path} cannot be run: {e}")))?;
    if !output.status.success() {
        let why = format!("{path} --version ended with {}", output.status);
        return Err(Failure::environment(why));
    }
    Ok(kernel)
}

/// Whether this is the beginning of an ELF program for x86-64.
fn is_x86_64(head: &[u8]) -> bool {
    const CLASS_64_LITTLE_ENDIAN: [u8; 2] = [2, 1];
    const EM_X86_64: [u8; 2] = [62, 0];
    head.starts_with(b"\x7fELF")
        && head.get(4..6) == Some(&CLASS_64_LITTLE_ENDIAN)
        && head.get(18..20) == Some(&EM_X86_64)
}

fn kernel_check(kernel: &Outcome<Kernel>) -> Check {
    let name = "lab kernel";
    match kernel {
        Ok(kernel) => {
            let found = format!(
                "{}, {}, {}, sha256 {}",
                kernel.release,
                origin(&Sought::kernel()),
                kernel.path.display(),
                &kernel.sha256[..16]
            );
            Check::ok(name, Need::Essential, found)
        }
        Err(why) => missing(name, why, NO_TRIALS, remedy(&Sought::kernel(), MAKE_KERNEL)),
    }
}

fn agent_check(agent: &Outcome<Agent>) -> Check {
    let name = "agent";
    match agent {
        Ok(agent) => {
            let (origin, path) = (origin(&Sought::agent()), agent.path.display());
            let found = format!("{origin}, {path}, sha256 {}", &agent.sha256[..16]);
            Check::ok(name, Need::Essential, found)
        }
        Err(why) => missing(name, why, NO_TRIALS, remedy(&Sought::agent(), MAKE_BUILD)),
    }
}

/// The sealed userland with its packages.
fn userland_check(userland: &Outcome<Userland>) -> Check {
    let name = "sealed userland";
    match userland {
        Ok(userland) => {
            let packages = userland.packages.iter();
            let packages = packages.map(|(package, version)| format!("{package} {version}"));
            let found = format!(
                "{}, {}, sha256 {}: {}",
                origin(&Sought::userland()),
                userland.path.display(),
                &userland.sha256[..16],
                packages.collect::<Vec<_>>().join(", ")
            );
            Check::ok(name, Need::Essential, found)
        }
        Err(why) => {
            let remedy = remedy(&Sought::userland(), MAKE_USERLAND);
            missing(name, why, NO_TRIALS, remedy)
        }
    }
}

/// By which rule the file is the one that is used.
fn origin(sought: &Sought) -> String {
    places::part(sought).map_or_else(|why| why.message, |part| part.origin.to_string())
}

/// How to get what is missing; `built` is for those who build it.
fn remedy(sought: &Sought, built: &'static str) -> &'static str {
    match places::part(sought).map(|part| part.origin) {
        Ok(PartOrigin::Installed) => REINSTALL,
        _ => built,
    }
}

/// Whether all files that were installed with this program are as they were then; nothing for a
/// program that was not installed.
fn installed_files() -> Outcome<Option<Check>> {
    let around = Surroundings::of_this_program(places::cache())?;
    let manifest = around.manifest.as_ref();
    Ok(manifest.map(|manifest| compare_files(&around.program, manifest)))
}

fn compare_files(directory: &Path, manifest: &Manifest) -> Check {
    let name = "installed files";
    let is_other = |(path, sha256): &(&str, &str)| {
        let found = std::fs::read(directory.join(path));
        !found.is_ok_and(|found| crate::digest::sha256(&found) == *sha256)
    };
    let others: Vec<&str> = manifest
        .files()
        .filter(is_other)
        .map(|file| file.0)
        .collect();
    let shown = directory.display();
    if others.is_empty() {
        let found = format!(
            "{} in {shown}, as they were packed",
            manifest.files().count()
        );
        return Check::ok(name, Need::Essential, found);
    }
    let found = format!("missing or damaged in {shown}: {}", others.join(", "));
    Check::missing(
        name,
        Need::Essential,
        found,
        "figures cannot be relied upon",
        REINSTALL,
    )
}

fn missing(name: &str, why: &Failure, lost: &str, remedy: &str) -> Check {
    Check::missing(name, Need::Essential, why.message.clone(), lost, remedy)
}

fn memory(mib: u64) -> Check {
    let name = "guest memory";
    match memory_directory(mib) {
        Ok(directory) => {
            let found = format!(
                "{} holds {mib} MiB and may be executed",
                directory.display()
            );
            Check::ok(name, Need::Essential, found)
        }
        Err(why) => {
            let remedy = "set TMPDIR to a directory with room that is not mounted noexec";
            Check::missing(name, Need::Essential, why.to_string(), NO_TRIALS, remedy)
        }
    }
}

/// Boots a guest with nothing to do: the only proof that guests run here.
fn guest_check(
    kernel: &Kernel,
    agent: &Agent,
    userland: &Userland,
    cancelled: &AtomicBool,
) -> Outcome<Check> {
    let name = GUEST;
    let job = Job {
        seed: 1,
        queues: Vec::new(),
        steps: Vec::new(),
        promises: false,
        returns: false,
        ignores_sync: false,
        counts_work: false,
        acknowledged: false,
    };
    let memory = memory_directory(GUEST_MIB).map_err(Failure::environment)?;
    let spec = GuestSpec {
        kernel,
        agent,
        memory_mib: GUEST_MIB,
        memory: &memory,
        cpu: CpuPrices::default(),
        queue_depth: None,
        job: &job,
        root: Root::Sealed(userland),
        images: &[],
        shared: &[],
        core: available_cores().last().copied(),
        limits: GuestLimits {
            wall: GUEST_LIMIT,
            ..GuestLimits::default()
        },
    };
    let life = run(&spec, vec![disk()?], cancelled, &mut |_| {});
    Ok(match life.and_then(|life| life.result) {
        Ok(()) => Check::ok(name, Need::Essential, "boots, does its job, powers off"),
        Err(why) => {
            let remedy =
                "whichfs lab exec --fs ext4 -- true shows more; report it with that output";
            Check::missing(name, Need::Essential, why.to_string(), NO_TRIALS, remedy)
        }
    })
}

/// The default card, never written.
fn disk() -> Outcome<Disk> {
    let profile = cards::open(cards::DEFAULT)?.profile;
    let geometry = BlockGeometry {
        bytes: cards::geometry(&profile).partition_bytes,
        segments_max: 128,
        write_cache: profile.has_cache(),
        discard_bytes: None,
    };
    let card = in_state(&profile, CardState::Fresh, 1);
    let contents = Contents::new(profile.capacity_bytes());
    let offset = cards::partition_offset(&profile);
    Ok(Disk::new(card, contents, offset, geometry, Nanos(0)))
}

/// Whether files can be made at `path`, or below the nearest directory above it that exists.
fn directory(name: &str, path: Outcome<PathBuf>) -> Check {
    let name = format!("{name} directory");
    let lost = "nothing can be kept between runs";
    let path = match path {
        Ok(path) => path,
        Err(why) => return missing(&name, &why, lost, "set HOME"),
    };
    let existing = existing(&path);
    match try_to_write(existing) {
        Ok(()) => Check::ok(name, Need::Essential, path.display().to_string()),
        Err(why) => {
            let found = format!("{} cannot be written: {why}", existing.display());
            let remedy = "chown it to you, or set XDG_CACHE_HOME and XDG_DATA_HOME elsewhere";
            Check::missing(name, Need::Essential, found, lost, remedy)
        }
    }
}

/// Makes a file in `directory` and removes it: access rights alone do not tell of read-only
/// mounts, and to root they tell nothing.
fn try_to_write(directory: &Path) -> std::io::Result<()> {
    let probe = directory.join(format!(".whichfs-doctor-{}", std::process::id()));
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(&probe)
}

/// The nearest directory at or above `path` that exists.
fn existing(path: &Path) -> &Path {
    path.ancestors()
        .find(|path| path.is_dir())
        .unwrap_or(Path::new("/"))
}

fn free_space() -> Check {
    let name = "free space";
    let found = places::cache().and_then(|cache| {
        let room = statvfs(existing(&cache)).map_err(Failure::environment)?;
        Ok(room.f_bavail * room.f_frsize)
    });
    match found {
        Ok(free) => enough(free),
        Err(why) => missing(
            name,
            &why,
            "it is not known whether there is room",
            "set HOME",
        ),
    }
}

fn enough(free: u64) -> Check {
    let name = "free space";
    let found = format!("{} for the cache", Bytes(free));
    if free >= CACHE_FREE {
        return Check::ok(name, Need::Extra, found);
    }
    let lost = format!(
        "kernel builds and images may fail below {}",
        Bytes(CACHE_FREE)
    );
    let remedy = "free some, or set XDG_CACHE_HOME to a place that has it";
    Check::missing(name, Need::Extra, found, lost, remedy)
}

fn cache_size() -> Check {
    let name = "cache size";
    match places::cache().and_then(|cache| cache_files::entries(&cache)) {
        Ok(entries) => small_enough(entries.iter().map(|entry| entry.bytes).sum()),
        Err(why) => missing(name, &why, "its size is not known", "make it readable"),
    }
}

fn small_enough(bytes: u64) -> Check {
    let (name, found) = ("cache size", Bytes(bytes).to_string());
    if bytes <= cache_files::LIMIT_BYTES {
        return Check::ok(name, Need::Extra, found);
    }
    let lost = format!("{} of room", Bytes(bytes - cache_files::LIMIT_BYTES));
    Check::missing(name, Need::Extra, found, lost, "whichfs cache gc")
}

/// Opens the store if there is one: doctor makes nothing.
fn store() -> Check {
    let name = "store";
    let path = match places::store() {
        Ok(path) => path,
        Err(why) => return missing(name, &why, "no results are kept", "set HOME"),
    };
    if !path.exists() {
        return Check::ok(
            name,
            Need::Essential,
            format!("none yet; {}", path.display()),
        );
    }
    match Store::open_with_timeout(&path, STORE_WAIT) {
        Ok(_) => Check::ok(name, Need::Essential, path.display().to_string()),
        Err(why) => {
            let remedy = "as said there, or name another store";
            let lost = "choose cannot start";
            Check::missing(name, Need::Essential, why.to_string(), lost, remedy)
        }
    }
}

fn cores() -> Check {
    let found = format!("{}: one trial runs on each", available_cores().len());
    Check::ok("usable cores", Need::Extra, found)
}

/// Which layers keep guests and programs away from the rest of this machine.
fn confinement() -> Check {
    let name = "confinement";
    let (active, missing) = whichfs_lab::confinement();
    let found = active.join(", ");
    if missing.is_empty() {
        return Check::ok(name, Need::Extra, found);
    }
    let lost = format!(
        "guests lack {}: docs/security.md says what is left",
        missing.join(", ")
    );
    let remedy = "boot a kernel with CONFIG_SECURITY_LANDLOCK and lsm=landlock";
    Check::missing(name, Need::Extra, found, lost, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_machine_is_told() {
        let mut head = *b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0";
        assert!(is_x86_64(&head));
        head[18] = 0xb7;
        assert!(!is_x86_64(&head), "aarch64");
        assert!(!is_x86_64(b"#!/bin/sh"));
        assert!(!is_x86_64(b"\x7fELF"));
    }

    #[test]
    fn too_little_space_is_no_essential_but_told() {
        assert!(enough(CACHE_FREE).ok);
        let check = enough(CACHE_FREE - 1);
        assert!(!check.ok && check.need == Need::Extra && check.remedy.is_some());
    }

    #[test]
    fn a_large_cache_is_told_with_the_command_that_shrinks_it() {
        assert!(small_enough(cache_files::LIMIT_BYTES).ok);
        let check = small_enough(cache_files::LIMIT_BYTES + 1);
        assert!(!check.ok && check.need == Need::Extra);
        assert_eq!(check.remedy.as_deref(), Some("whichfs cache gc"));
    }

    #[test]
    fn a_directory_that_does_not_exist_yet_is_judged_by_the_one_above() {
        assert!(directory("x", Ok("/tmp/whichfs-not-there/deeper".into())).ok);
        assert!(!directory("x", Ok("/proc/self/fdinfo/deeper".into())).ok);
        let nowhere = Failure::environment("neither HOME");
        assert!(!directory("x", Err(nowhere)).ok);
    }

    #[test]
    fn an_installed_file_that_is_missing_or_another_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("a"), "a").expect("written");
        let check = |files: &[(&str, &[u8])]| {
            let line = |(path, bytes): &(&str, &[u8])| {
                format!("{}  {path}\n", crate::digest::sha256(bytes))
            };
            let text: String = files.iter().map(line).collect();
            compare_files(
                directory.path(),
                &Manifest::parse(&text).expect("a manifest"),
            )
        };
        assert!(check(&[("a", b"a")]).ok);
        let found = check(&[("a", b"b"), ("c", b"c")]);
        assert!(!found.ok && found.found.ends_with(": a, c"), "{found:?}");
    }

    #[test]
    fn memory_that_no_directory_holds_is_told_with_the_remedy() {
        let check = memory(1 << 40);
        assert!(!check.ok && check.remedy.is_some_and(|remedy| remedy.contains("TMPDIR")));
    }
}
