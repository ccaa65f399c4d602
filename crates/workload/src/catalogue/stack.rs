//! Workload `stack`: the cold start of a program whose files lie in a compressed image with a
//! writable layer over it, as on live systems and the Gentoo wiki's card: squashfs on the card, a
//! union of it with a directory that can be written, and two programs of Python, one after the
//! other, each after a new mount with empty caches: one loads some 400 modules, the other some 70.
//!
//! Everything is the real thing: Python with its library and pip, mksquashfs, the kernel's squashfs
//! or squashfuse, the kernel's overlayfs, unionfs-fuse and posixovl of this machine. What programs
//! and FUSE filesystems compute in user space is free in the lab, so their times are what they take
//! at least.

use crate::phase::{Phase, Programs};
use crate::program::{Program, shell};
use crate::workload::{
    MetricDef, Parameter, PhaseDef, Rule, Workload, WorkloadError, parameter, unknown_phase,
};
use whichfs_trial::WorkloadSpec;
use whichfs_units::MIB;

/// What this file adds to the list of workloads, and at which place.
pub(crate) const WORKLOADS: &[(u32, &dyn Workload)] = &[(200, &Stack)];

/// A live system: a compressed image below a writable layer.
pub struct Stack;

const INSTALL: &str = "stack_install";
const MOUNT: &str = "stack_mount";
const START: &str = "appstart";
const UNMOUNT: &str = "stack_unmount";
const AGAIN: &str = "stack_mount_again";
const SECOND: &str = "second_start";
const UNMOUNT_AGAIN: &str = "stack_unmount_again";

/// Compressors of mksquashfs by their number; 0 is no image.
const COMPRESSORS: [&str; 6] = ["none", "gzip", "lzo", "lz4", "xz", "zstd"];
/// Writable layers by their number.
const LAYERS: [&str; 6] = ["none", "overlayfs", "posixovl", "ext3", "ext4", "directory"];
/// Number of the layer that needs no union where there is no image.
const POSIXOVL: u64 = 2;

const PARAMETERS: [Parameter; 4] = [
    Parameter {
        name: "compressor",
        default: 5,
        unit: "number",
        meaning: "of the image: 0 no image, the files lie on the card; 1 gzip, 2 lzo, 3 lz4, 4 xz, \
                  5 zstd",
        min: 0,
        max: COMPRESSORS.len() as u64 - 1,
    },
    Parameter {
        name: "block_kib",
        default: 128,
        unit: "KiB",
        meaning: "block of the image, a power of two",
        min: 4,
        max: 1024,
    },
    Parameter {
        name: "layer",
        default: 0,
        unit: "number",
        meaning: "what can be written over it: 0 nothing; 1 the kernel's overlayfs with an ext4 \
                  file; unionfs-fuse with 2 posixovl, 3 an ext3 file, 4 an ext4 file, 5 a \
                  directory of the card; without an image only 0, and 2, which is posixovl alone",
        min: 0,
        max: LAYERS.len() as u64 - 1,
    },
    Parameter {
        name: "squashfuse",
        default: 0,
        unit: "0 or 1",
        meaning: "1: squashfuse reads the image instead of the kernel",
        min: 0,
        max: 1,
    },
];

const PHASES: [PhaseDef; 7] = [
    PhaseDef::warm(
        INSTALL,
        "write Python, its library and pip, or the image of them, and what the writable layer \
         needs, then sync (s)",
        true,
        &MetricDef::one(INSTALL, Rule::Seconds),
    )
    .then_space(),
    PhaseDef {
        cold: true,
        ..PhaseDef::warm(
            MOUNT,
            "mount image, layer and union, cold (s); the card's own mount is timed apart",
            true,
            &MetricDef::one(MOUNT, Rule::Seconds),
        )
    },
    PhaseDef::warm(
        START,
        "pip, Python's installer, prints its help, for which it loads some 400 modules from the \
         union; nothing of them was read before (s)",
        false,
        &MetricDef::one(START, Rule::Seconds),
    ),
    PhaseDef::warm(UNMOUNT, "unmount union, layer and image", true, &[]),
    PhaseDef {
        cold: true,
        ..PhaseDef::warm(AGAIN, "mount image, layer and union again, cold", true, &[])
    },
    PhaseDef::warm(
        SECOND,
        "a second program starts: Python's web server prints its help, for which it loads some 70 \
         modules; nothing of them was read before (s)",
        false,
        &MetricDef::one(SECOND, Rule::Seconds),
    ),
    PhaseDef::warm(UNMOUNT_AGAIN, "unmount union, layer and image", true, &[]),
];

/// Bytes that Python takes on the card at most: 44 MiB of files of Python 3.11 and pip 23.
const PYTHON_BYTES: u64 = 64 * MIB;
/// Bytes of the file with the writable layer.
const LAYER_BYTES: u64 = 16 * MIB;
/// Bytes that mounting and unmounting that layer writes: its journal's.
const MOUNTING_BYTES: u64 = MIB;

/// What all scripts begin with: their arguments, where things are, which program is missing.
const BEGIN: &str = r#"
set -e
compressor=$1 block=$2 layer=$3 fuse=$4
card=$PWD base=/tmp/whichfs-stack
need() { command -v "$1" > /dev/null || {
    echo "$1 is not on this machine: apt-get install $2" >&2; exit 1; }; }
# Whether a FUSE program of ours still runs: $left is its name then.
runs() {
    for process in /proc/[0-9]*; do
        { read -r left < $process/comm; } 2> /dev/null || continue
        case $left in
        mount.posixovl | unionfs-fuse | unionfs | squashfuse)
            { tr '\0' ' ' < $process/cmdline; } 2> /dev/null | grep -q $base && return 0 ;;
        esac
    done
    return 1
}
# A FUSE program ends, and lets go of the directories that it holds open, a little after its own
# unmount.
wait_for_fuse() {
    tries=0
    while runs; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "$left still runs 5 s after its unmount" >&2; exit 1; }
        sleep 0.05
    done
}
"#;

/// Copies this machine's Python, and what holds it.
const INSTALL_SCRIPT: &str = r#"
mkdir -p $base/tree $base/all
need python3 python3
python3 -c 'import pip' || { echo "python3 has no pip: apt-get install python3-pip" >&2; exit 1; }
# Where the program is, its library, and pip.
set -- $(python3 -c 'import os, pip, sys
print(os.path.realpath(sys.executable), *(os.path.dirname(of.__file__) for of in (os, pip)))')
# Modules are compiled as an installer does it. What was compiled counts whatever the time of its
# source, which mksquashfs changes.
make() {
    mkdir -p "$4/bin" "$4/lib"
    cp -L "$1" "$4/bin/python3"
    cp -rL "$2" "$4/lib/"
    library=$4/lib/${2##*/}
    rm -rf "$library"/*-packages "$library/test"
    cp -rL "$3" "$library/pip"
    "$4/bin/python3" -m compileall -q --invalidation-mode unchecked-hash "$library"
}
case $compressor/$layer in
none/none) make "$@" "$card" ;;
none/*)
    need mount.posixovl fuse-posixovl
    mkdir "$card/rw"
    mount.posixovl -S "$card/rw" $base/all
    make "$@" $base/all
    umount $base/all
    wait_for_fuse ;;
*)
    need mksquashfs squashfs-tools
    make "$@" $base/tree
    # It keeps memory that it would give back after each block, which takes most of its time here.
    MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=1073741824 \
        mksquashfs $base/tree "$card/system.sqsh" -noappend -no-progress -quiet -processors 1 \
        -comp $compressor -b ${block}K -all-root -mkfs-time 1704067200 -all-time 1704067200 \
        > /dev/null
    rm -r $base/tree ;;
esac
case $compressor/$layer in
none/*) ;;
*/overlayfs | */ext?)
    type=ext4
    [ $layer = ext3 ] && type=ext3
    truncate -s 16M "$card/rw.img"
    E2FSPROGS_FAKE_TIME=1704067200 mke2fs -q -F -t $type -b 4096 \
        -U 6b0d5a1e-8c6f-4f0e-9d55-5d1c1f6a7b11 \
        -E hash_seed=6b0d5a1e-8c6f-4f0e-9d55-5d1c1f6a7b12,lazy_itable_init=0,lazy_journal_init=0 \
        "$card/rw.img" ;;
*/posixovl | */directory) mkdir "$card/rw" ;;
esac
sync -f .
"#;

const MOUNT_SCRIPT: &str = r#"
mkdir -p $base/image $base/layer $base/all
case $compressor/$fuse in
none/*) ;;
*/1) need squashfuse squashfuse; squashfuse "$card/system.sqsh" $base/image ;;
*) mount -t squashfs -o loop,ro "$card/system.sqsh" $base/image ;;
esac
case $layer in
overlayfs | ext4) mount -t ext4 -o loop,noatime "$card/rw.img" $base/layer ;;
ext3) mount -t ext3 -o loop,noatime "$card/rw.img" $base/layer ;;
posixovl)
    need mount.posixovl fuse-posixovl
    where=$base/layer
    [ $compressor = none ] && where=$base/all
    mount.posixovl -S "$card/rw" $where ;;
directory) mount --bind "$card/rw" $base/layer ;;
esac
case $compressor/$layer in
none/* | */none) ;;
*/overlayfs)
    mkdir -p $base/layer/upper $base/layer/work
    mount -t overlay overlay $base/all \
        -o lowerdir=$base/image,upperdir=$base/layer/upper,workdir=$base/layer/work ;;
*)
    need unionfs-fuse unionfs-fuse
    unionfs-fuse -o cow $base/layer=RW:$base/image=RO $base/all ;;
esac
"#;

/// Prints the help of a program of Python: of which module.
const START_SCRIPT: &str = r#"
case $compressor/$layer in
none/none) where=$card ;;
*/none) where=$base/image ;;
*) where=$base/all ;;
esac
exec "$where/bin/python3" -m $5 --help > /dev/null
"#;

/// A FUSE program ends, and lets go of what is below it, a little after its own unmount.
const UNMOUNT_SCRIPT: &str = r#"
for dir in all layer image; do
    grep -q " $base/$dir " /proc/self/mounts || continue
    tries=0
    until umount $base/$dir 2> $base/said; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { cat $base/said >&2; exit 1; }
        sleep 0.05
    done
done
wait_for_fuse
"#;

impl Workload for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }

    fn title(&self) -> &'static str {
        "cold start of a program from squashfs under a writable layer"
    }

    fn parameters(&self) -> &'static [Parameter] {
        &PARAMETERS
    }

    fn phases(&self) -> &'static [PhaseDef] {
        &PHASES
    }

    fn phase(&self, _phase: &PhaseDef) -> Phase<'_> {
        Phase::Program(self)
    }

    fn caveat(&self) -> Option<&'static str> {
        Some(
            "what FUSE filesystems (unionfs-fuse, posixovl, squashfuse) compute is free in the \
             lab: with them it takes at least so long",
        )
    }

    fn contradiction(&self, spec: &WorkloadSpec) -> Option<String> {
        let value = |name| parameter(self, spec, name);
        if !value("block_kib").is_power_of_two() {
            return Some("block_kib is no power of two".to_owned());
        }
        let bare = value("compressor") == 0;
        if bare && ![0, POSIXOVL].contains(&value("layer")) {
            return Some(
                "without an image (compressor 0) there is nothing to unite: layer 0 or 2".into(),
            );
        }
        (bare && value("squashfuse") == 1)
            .then(|| "without an image (compressor 0) squashfuse has nothing to read".to_owned())
    }
}

impl Programs for Stack {
    fn program(
        &self,
        phase: &str,
        spec: &WorkloadSpec,
        _seed: u64,
    ) -> Result<Program, WorkloadError> {
        let value = |name| parameter(self, spec, name);
        let named = |all: &[&str], name| all[value(name) as usize].to_owned();
        let mut arguments = vec![
            named(&COMPRESSORS, "compressor"),
            value("block_kib").to_string(),
            named(&LAYERS, "layer"),
            value("squashfuse").to_string(),
        ];
        let script = match phase {
            INSTALL => INSTALL_SCRIPT,
            MOUNT | AGAIN => MOUNT_SCRIPT,
            START => {
                arguments.push("pip".to_owned());
                START_SCRIPT
            }
            SECOND => {
                arguments.push("http.server".to_owned());
                START_SCRIPT
            }
            UNMOUNT | UNMOUNT_AGAIN => UNMOUNT_SCRIPT,
            other => return Err(unknown_phase(self, other)),
        };
        let program = shell(&format!("{BEGIN}{script}"), arguments.into_iter(), false);
        let env = [
            // Sets of Python are in random order otherwise.
            ("PYTHONHASHSEED", "0"),
            // Nothing but what is on the card is read, and nothing is written there.
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONNOUSERSITE", "1"),
            ("PIP_CONFIG_FILE", "/dev/null"),
        ];
        Ok(Program {
            env: env
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            files: tools(phase).iter().map(|tool| (*tool).to_owned()).collect(),
            ..program
        })
    }

    fn writes(&self, phase: &str, _spec: &WorkloadSpec) -> Option<u64> {
        Some(match phase {
            INSTALL => PYTHON_BYTES + LAYER_BYTES,
            _ => MOUNTING_BYTES,
        })
    }
}

/// The programs of this machine that decide what a phase does.
fn tools(phase: &str) -> &'static [&'static str] {
    match phase {
        INSTALL => &["python3", "mksquashfs", "mke2fs", "mount.posixovl"],
        MOUNT | AGAIN => &["mount", "squashfuse", "unionfs-fuse", "mount.posixovl"],
        START | SECOND => &["python3"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spec(given: &[(&str, u64)]) -> WorkloadSpec {
        WorkloadSpec {
            name: "stack".into(),
            parameters: given
                .iter()
                .map(|&(name, value)| (name.to_owned(), value))
                .collect(),
            tree: None,
            unix: true,
            script: None,
            input: None,
        }
    }

    #[test]
    fn numbers_are_words_in_the_scripts() {
        let given = spec(&[("compressor", 4), ("layer", 3), ("block_kib", 16)]);
        let program = Stack.program(MOUNT, &given, 1).unwrap();
        assert_eq!(program.argv[4..], ["xz", "16", "ext3", "0"]);
        let start = Stack.program(START, &given, 1).unwrap();
        assert_eq!(start.argv[8..], ["pip"]);
        let second = Stack.program(SECOND, &given, 1).unwrap();
        assert_eq!(second.argv[8..], ["http.server"]);
    }

    #[test]
    fn what_cannot_be_stacked_is_refused() {
        for (given, said) in [
            (vec![("block_kib", 100)], "power of two"),
            (vec![("compressor", 0), ("layer", 1)], "nothing to unite"),
            (
                vec![("compressor", 0), ("squashfuse", 1)],
                "nothing to read",
            ),
        ] {
            let error = Stack.check(&spec(&given)).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        Stack
            .check(&spec(&[("compressor", 0), ("layer", POSIXOVL)]))
            .unwrap();
    }

    #[test]
    fn scripts_are_what_a_shell_can_read() {
        for phase in PHASES {
            let program = Stack.program(phase.name, &spec(&[]), 1).unwrap();
            let checked = std::process::Command::new("/bin/sh")
                .args(["-n", "-c", &program.argv[2]])
                .output()
                .unwrap();
            assert!(checked.status.success(), "{}: {checked:?}", phase.name);
        }
    }
}
