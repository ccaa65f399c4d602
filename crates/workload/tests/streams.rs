//! The operation streams of every workload, performed on a model of a filesystem that
//! knows only names, sizes and what exists.

use std::collections::BTreeMap;
use whichfs_trial::WorkloadSpec;
use whichfs_workload::{Content, EntryKind, Listing, Op, TreeEntry, Workload, find, seeded};

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Directory,
    File(u64),
    Symlink,
}

/// Names and sizes; every operation must be possible.
#[derive(Default)]
struct Model {
    nodes: BTreeMap<String, Node>,
}

impl Model {
    fn make(&mut self, path: &str, node: Node) -> Result<(), String> {
        if let Some((dir, _)) = path.rsplit_once('/') {
            self.expect(dir, |node| *node == Node::Directory)?;
        }
        match self.nodes.insert(path.to_owned(), node) {
            None => Ok(()),
            Some(old) => Err(format!("{path} exists: {old:?}")),
        }
    }

    fn expect(&self, path: &str, fits: impl Fn(&Node) -> bool) -> Result<(), String> {
        match self.nodes.get(path) {
            Some(node) if fits(node) => Ok(()),
            other => Err(format!("{path} is {other:?}")),
        }
    }

    fn apply(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Mkdir { path, .. } => self.make(path, Node::Directory),
            Op::Create { path, size, .. } | Op::Save { path, size, .. } => {
                self.make(path, Node::File(*size))
            }
            Op::Symlink { path, .. } => self.make(path, Node::Symlink),
            Op::HardLink { path, existing } => {
                let node = self.nodes.get(existing).cloned().ok_or("no such file")?;
                self.make(path, node)
            }
            Op::ReadDir { path } | Op::ReadTree { path } if path == "." => Ok(()),
            Op::ReadDir { path } | Op::ReadTree { path } => {
                self.expect(path, |node| *node == Node::Directory)
            }
            Op::RemoveTree { path } => {
                self.expect(path, |_| true)?;
                let inside = format!("{path}/");
                self.nodes
                    .retain(|name, _| name != path && !name.starts_with(&inside));
                Ok(())
            }
            Op::Read { path } => self.expect(path, |node| matches!(node, Node::File(_))),
            Op::ReadLink { path } => self.expect(path, |node| *node == Node::Symlink),
            Op::Overwrite {
                path, offset, len, ..
            }
            | Op::Update {
                path, offset, len, ..
            }
            | Op::Rewrite {
                path, offset, len, ..
            }
            | Op::ReadAt {
                path, offset, len, ..
            }
            | Op::WillRead { path, offset, len } => self.expect(
                path,
                |node| matches!(node, Node::File(size) if offset + len <= *size),
            ),
            Op::Append { path, len, .. } => {
                let dir = path.rsplit_once('/').unwrap().0;
                self.expect(dir, |node| *node == Node::Directory)?;
                let node = self.nodes.entry(path.clone()).or_insert(Node::File(0));
                match node {
                    Node::File(size) => *size += len,
                    other => return Err(format!("{path} is {other:?}")),
                }
                Ok(())
            }
            Op::Rename { from, to } => {
                let node = self
                    .nodes
                    .remove(from)
                    .ok_or(format!("{from} is missing"))?;
                if self
                    .nodes
                    .get(to)
                    .is_some_and(|old| matches!(old, Node::File(_)))
                {
                    self.nodes.remove(to);
                }
                self.make(to, node)
            }
            Op::Unlink { path } => {
                self.expect(path, |node| *node != Node::Directory)?;
                self.nodes.remove(path);
                Ok(())
            }
            Op::Rmdir { path } => {
                self.expect(path, |node| *node == Node::Directory)?;
                let inside = format!("{path}/");
                if let Some(child) = self.nodes.keys().find(|name| name.starts_with(&inside)) {
                    return Err(format!("{path} is not empty: {child}"));
                }
                self.nodes.remove(path);
                Ok(())
            }
            Op::SyncFs | Op::Lap | Op::Pause { .. } | Op::WaitUntil { .. } => Ok(()),
            Op::SyncFile { path } | Op::SyncClose { path } | Op::WriteBack { path, .. } => {
                self.expect(path, |node| matches!(node, Node::File(_)))
            }
            Op::SyncDir { path } | Op::StatAll { path } => {
                self.expect(path, |node| *node == Node::Directory)
            }
            Op::Stat { path } => self.expect(path, |_| true),
            Op::Clear { path } => {
                self.expect(path, |node| *node == Node::Directory)?;
                let inside = format!("{path}/");
                self.nodes.retain(|name, _| !name.starts_with(&inside));
                Ok(())
            }
            Op::WriteAt {
                path, offset, len, ..
            } => {
                if let Some((dir, _)) = path.rsplit_once('/') {
                    self.expect(dir, |node| *node == Node::Directory)?;
                }
                let node = self.nodes.entry(path.clone()).or_insert(Node::File(0));
                match node {
                    Node::File(size) => *size = (*size).max(offset + len),
                    other => return Err(format!("{path} is {other:?}")),
                }
                Ok(())
            }
            Op::WriteSync {
                path, offset, len, ..
            } => {
                self.expect(path, |node| matches!(node, Node::File(_)))?;
                if let Some(Node::File(size)) = self.nodes.get_mut(path) {
                    *size = (*size).max(offset + len);
                }
                Ok(())
            }
        }
    }

    fn bytes(&self) -> u64 {
        let size = |node: &Node| match node {
            Node::File(size) => *size,
            _ => 0,
        };
        self.nodes.values().map(size).sum()
    }
}

fn spec(name: &str, unix: bool) -> WorkloadSpec {
    WorkloadSpec {
        name: name.into(),
        parameters: BTreeMap::new(),
        tree: None,
        unix,
        script: None,
        input: None,
    }
}

/// All operations of all phases.
fn stream(workload: &dyn Workload, spec: &WorkloadSpec, seed: u64) -> Vec<Op> {
    let phase = |name| workload.operations(name, spec, None, seed).unwrap();
    workload
        .phases()
        .iter()
        .flat_map(|def| phase(def.name))
        .collect()
}

/// FNV-1a over the debug text: stable as long as the operations are.
fn digest(ops: &[Op]) -> u64 {
    ops.iter()
        .flat_map(|op| format!("{op:?}").into_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
}

#[test]
fn every_operation_is_possible_in_its_turn() {
    for workload in seeded() {
        for (seed, unix) in [(1, true), (2, false)] {
            let mut model = Model::default();
            for op in stream(workload, &spec(workload.name(), unix), seed) {
                let result = model.apply(&op);
                assert_eq!(result, Ok(()), "{} {op:?}", workload.name());
            }
        }
    }
}

#[test]
fn the_model_refuses_impossible_operations() {
    let mut model = Model::default();
    let path = || "d/f".to_owned();
    assert!(model.apply(&Op::Unlink { path: path() }).is_err());
    let mkdir = Op::Mkdir {
        path: "d".into(),
        mode: None,
    };
    model.apply(&mkdir).unwrap();
    assert!(model.apply(&mkdir).is_err());
    let create = Op::Create {
        path: path(),
        size: 9,
        content: Content::Generated { level: 0, seed: 0 },
        mode: None,
        pieces: None,
    };
    model.apply(&create).unwrap();
    assert!(model.apply(&Op::Rmdir { path: "d".into() }).is_err());
    let beyond = Op::Overwrite {
        path: path(),
        offset: 9,
        len: 1,
        content: Content::Generated { level: 0, seed: 0 },
    };
    assert!(model.apply(&beyond).is_err());
}

#[test]
fn the_same_seed_gives_the_same_operations_for_ever() {
    // Golden values: a change here changes every stored result of the workload.
    let digests = |seed| -> Vec<u64> {
        let of = |workload: &dyn Workload| stream(workload, &spec(workload.name(), true), seed);
        seeded().map(|workload| digest(&of(workload))).collect()
    };
    assert_eq!(digests(7), GOLDEN, "now {:#x?}", digests(7));
    for (one, other) in digests(7).into_iter().zip(digests(8)) {
        assert_ne!(one, other);
    }
}

/// Digests of the workloads with seed 7, in the order of [`seeded`].
const GOLDEN: [u64; 17] = [
    0x3b41_4258_e65e_14bd,
    0x16cb_b598_1b92_8158,
    0xb387_db23_5cb4_ff4b,
    0xbc66_8d00_2124_9270,
    0x994b_0994_6acf_2fcc,
    0x4659_a30c_fc37_d355,
    0x2208_89e1_b83c_7517,
    0xf4fa_8024_d25c_361b,
    0x95f2_baea_831f_e22f,
    0x3e79_1037_1744_f110,
    0x4cfb_0feb_801b_baa4,
    0x6d30_c17a_9fe4_9372,
    0x5150_2a2d_18e3_750b,
    0x65b0_6fd1_877d_f2c7,
    0x60ea_b6db_df7c_639e,
    0x9797_21a4_6829_5d75,
    0xea3b_2fc2_ac05_30b9,
];

#[test]
fn the_default_sizes_are_what_the_parameters_say() {
    let after = |name: &str, phases: &[&str]| {
        let workload = find(name).unwrap();
        let mut model = Model::default();
        for phase in phases {
            for op in workload
                .operations(phase, &spec(name, true), None, 3)
                .unwrap()
            {
                model.apply(&op).unwrap();
            }
        }
        model
    };
    let tree = after("rootfs", &["tree_write", "database_write"]);
    // Hard links of the model count their file once more.
    assert!(
        (192 << 20..194 << 20).contains(&tree.bytes()),
        "{}",
        tree.bytes()
    );
    let media = after("exchange", &["video_write", "photo_write"]);
    assert!(
        (170 << 20..200 << 20).contains(&media.bytes()),
        "{}",
        media.bytes()
    );
    let replaced = after("atomic", &["prepare", "atomic_update"]);
    assert!(
        (14 << 20..18 << 20).contains(&replaced.bytes()),
        "{}",
        replaced.bytes()
    );
    assert_eq!(replaced.nodes.len(), 2 + 256 + 1);
    assert_eq!(after("onefile", &["onefile_write"]).bytes(), 30 << 20);
    let many = after("manyfiles", &["manyfiles_write"]);
    assert_eq!((many.bytes(), many.nodes.len()), (30 << 20, 1 + 30));
    assert_eq!(after("video", &["video_record"]).bytes(), 30 * (3 << 20));
    let camera = after("camera", &["camera_bursts"]);
    assert_eq!(camera.nodes.len(), 1 + 50);
    assert_eq!(after("tarball", &["tarball_write"]).bytes(), 64 << 20);
    assert!(after("tree", &["tree_write"]).bytes() >= 64 << 20);
    let removed = after("tree", &["tree_write", "tree_remove"]);
    assert_eq!(removed.nodes.len(), 0);
    let installed = after("packages", &["packages_prepare", "packages_install"]);
    assert!(installed.bytes() >= 32 << 20);
    let beside = |name: &String| name.ends_with("-new");
    assert!(
        !installed.nodes.keys().any(beside),
        "everything has its name"
    );
    let aged = after("aged", &["new_write", "fill", "age"]).bytes();
    assert!((126 << 20..=128 << 20).contains(&aged), "{aged}");
    let logs = after("logger", &["log_append"]);
    assert!(logs.bytes() <= 3 * 5 * 64 * 1024, "{}", logs.bytes());
    assert!(logs.nodes.len() <= 1 + 3 * 5);
}

/// The whole list would have 10 GB; its first operations are there at once.
#[test]
fn a_logger_of_any_length_is_made_as_it_goes() {
    let logger = find("logger").unwrap();
    let mut spec = spec("logger", true);
    spec.parameters.insert("records".into(), 100_000_000);
    let long = logger.operations("log_append", &spec, None, 3).unwrap();
    spec.parameters.insert("records".into(), 1_000);
    let short = logger.operations("log_append", &spec, None, 3).unwrap();
    let [long, short]: [Vec<Op>; 2] = [long.take(500).collect(), short.take(500).collect()];
    assert_eq!(long, short);
}

#[test]
fn delete_and_rewrite_take_their_share() {
    let rootfs = find("rootfs").unwrap();
    let ops = |phase: &str| -> Vec<Op> {
        rootfs
            .operations(phase, &spec("rootfs", false), None, 5)
            .unwrap()
            .collect()
    };
    let mut model = Model::default();
    for op in ops("tree_write") {
        model.apply(&op).unwrap();
    }
    let files = |model: &Model| {
        let is_file = |node: &&Node| matches!(node, Node::File(_));
        model.nodes.values().filter(is_file).count()
    };
    assert_eq!(files(&model), 6_000);
    for op in ops("delete") {
        model.apply(&op).unwrap();
    }
    assert_eq!(files(&model), 3_000);
    let removed = ops("delete")
        .iter()
        .filter(|op| matches!(op, Op::RemoveTree { .. }))
        .count();
    assert!(removed > 100, "whole directories go: {removed}");
    let rewritten = ops("rewrite")
        .iter()
        .filter(|op| matches!(op, Op::Overwrite { .. }))
        .count();
    assert_eq!(rewritten, 1_200);
    assert_eq!(ops("random_update").len(), 200);
}

#[test]
fn a_boot_reads_its_share_in_an_order_of_its_own() {
    let rootfs = find("rootfs").unwrap();
    let paths = |phase: &str| -> Vec<String> {
        let ops = rootfs.operations(phase, &spec("rootfs", true), None, 5);
        let path = |op| match op {
            Op::Create { path, .. } | Op::Read { path } => Some(path),
            _ => None,
        };
        ops.unwrap().filter_map(path).collect()
    };
    let (made, read) = (paths("tree_write"), paths("boot_read"));
    assert_eq!((made.len(), read.len()), (6_000, 600));
    assert!(!read.is_sorted());
    assert!(read.iter().all(|path| made.contains(path)));
}

#[test]
fn filesystems_without_unix_get_no_links_and_no_permissions() {
    for workload in seeded() {
        for op in stream(workload, &spec(workload.name(), false), 1) {
            let unix = match &op {
                Op::Symlink { .. } | Op::HardLink { .. } | Op::ReadLink { .. } => true,
                Op::Mkdir { mode, .. } | Op::Create { mode, .. } | Op::Save { mode, .. } => {
                    mode.is_some()
                }
                _ => false,
            };
            assert!(!unix, "{op:?}");
        }
    }
}

#[test]
fn a_tree_of_the_user_is_used_as_it_is() {
    let file = |path: &str, size| TreeEntry {
        path: path.into(),
        mode: 0o600,
        kind: EntryKind::File {
            size,
            content: Content::File { path: path.into() },
        },
    };
    let listing = Listing {
        entries: vec![file("a", 10), file("b", 0), file("c", 30)],
    };
    let mut spec = spec("rootfs", true);
    spec.tree = Some("/srv/tree".into());
    let rootfs = find("rootfs").unwrap();
    assert!(
        rootfs.operations("delete", &spec, None, 1).is_err(),
        "no listing"
    );
    let mut model = Model::default();
    for phase in rootfs.phases() {
        for op in rootfs
            .operations(phase.name, &spec, Some(&listing), 1)
            .unwrap()
        {
            assert_eq!(model.apply(&op), Ok(()), "{op:?}");
        }
    }
    let left = ["a", "b", "c"]
        .iter()
        .filter(|name| model.nodes.contains_key(**name))
        .count();
    assert_eq!(left, 1, "two of three are deleted");
}

/// An image is made of `tree_write`'s operations alone, whoever's tree it is.
#[test]
fn what_a_read_only_filesystem_does_is_possible_on_the_tree_alone() {
    for workload in seeded() {
        let spec = spec(workload.name(), true);
        let of = |phase: &str| workload.operations(phase, &spec, None, 3).unwrap();
        let Some(first) = workload.phases().first().filter(|_| workload.takes_tree()) else {
            continue;
        };
        let mut model = Model::default();
        for op in of(first.name) {
            assert_eq!(model.apply(&op), Ok(()), "{op:?}");
        }
        for phase in workload.phases().iter().filter(|phase| !phase.writes) {
            for op in of(phase.name) {
                assert_eq!(model.apply(&op), Ok(()), "{op:?}");
            }
        }
        let database = model.nodes.keys().find(|path| path.contains("whichfs"));
        assert_eq!(database, None, "only the tree itself is imaged");
    }
}

#[test]
fn a_tree_with_the_databases_name_is_refused() {
    let rootfs = find("rootfs").unwrap();
    let named = |path: &str| Listing {
        entries: vec![TreeEntry {
            path: path.into(),
            mode: 0o755,
            kind: EntryKind::Directory,
        }],
    };
    rootfs.check_tree(&named("whichfs")).unwrap();
    let refused = rootfs.check_tree(&named("whichfs-database")).unwrap_err();
    assert!(refused.to_string().contains("rename it"), "{refused}");
    let mut spec = spec("rootfs", true);
    spec.tree = Some("/srv/tree".into());
    let tree = named("whichfs-database");
    assert!(
        rootfs
            .operations("tree_write", &spec, Some(&tree), 1)
            .is_err()
    );
}

#[test]
fn contradictions_are_refused() {
    let refused = |name: &str, phase: &str, parameters: &[(&str, u64)]| {
        let mut spec = spec(name, true);
        for &(parameter, value) in parameters {
            spec.parameters.insert(parameter.into(), value);
        }
        let workload = find(name).unwrap();
        let found = workload.check(&spec).unwrap_err().to_string();
        let result = workload.operations(phase, &spec, None, 1);
        assert_eq!(
            result.err().map(|error| error.to_string()),
            Some(found.clone())
        );
        found
    };
    for bytes in [1 << 20, 8 << 20] {
        let text = refused("rootfs", "tree_write", &[("bytes", bytes)]);
        assert!(text.contains("does not hold"), "{text}");
    }
    let text = refused("logger", "log_append", &[("record_min", 500)]);
    assert!(text.contains("record_min = 500 is above"), "{text}");
    let text = refused("exchange", "photo_write", &[("photo_max", 5)]);
    assert!(text.contains("above photo_max = 5"), "{text}");
}
