//! The executor in a temporary directory: what is there afterwards is exactly what the
//! operations say.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use whichfs_agent::{AgentError, Context, Manner, Time, list_tree, operate, perform};
use whichfs_trial::{Counts, Event, Job, LatencyHistogram, Step, WorkloadSpec};
use whichfs_workload::{Content, Listing, Op, find, generated_bytes};

fn spec(name: &str, parameters: &[(&str, u64)], unix: bool) -> WorkloadSpec {
    WorkloadSpec {
        name: name.into(),
        parameters: parameters
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect(),
        tree: None,
        unix,
        script: None,
        input: None,
    }
}

/// A tree that is written in milliseconds.
const TINY: [(&str, u64); 5] = [
    ("bytes", 2 << 20),
    ("files", 150),
    ("database_files", 2),
    ("database_bytes", 64 << 10),
    ("updates", 20),
];

fn ops(spec: &WorkloadSpec, phase: &str, tree: Option<&Listing>) -> Vec<Op> {
    let workload = find(&spec.name).unwrap();
    workload.operations(phase, spec, tree, 7).unwrap().collect()
}

fn run(
    ops: &[Op],
    dir: &Path,
    tree: Option<&Path>,
) -> Result<(Counts, LatencyHistogram), AgentError> {
    operate(
        ops.iter().cloned(),
        dir,
        tree,
        &Time::still(),
        Manner::default(),
        &mut |_, _, _| Ok(()),
    )
}

/// The bytes of `content` from `offset` on, made anew.
fn expected(content: &Content, offset: u64, len: u64, tree: Option<&Path>) -> Vec<u8> {
    match content {
        Content::Generated { level, seed } => {
            let mut out = Vec::new();
            while (out.len() as u64) < len {
                let done = out.len() as u64;
                out.extend_from_slice(generated_bytes(*level, *seed, done, len - done));
            }
            out
        }
        Content::File { path } => {
            let whole = fs::read(tree.unwrap().join(path)).unwrap();
            whole[offset as usize..(offset + len) as usize].to_vec()
        }
    }
}

/// What the files must hold after `ops`.
fn model(ops: &[Op], tree: Option<&Path>) -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for op in ops {
        match op {
            Op::Create {
                path,
                size,
                content,
                ..
            } => {
                files.insert(path.clone(), expected(content, 0, *size, tree));
            }
            Op::HardLink { path, existing } => {
                let same = files[existing].clone();
                files.insert(path.clone(), same);
            }
            Op::Overwrite {
                path,
                offset,
                len,
                content,
            }
            | Op::Update {
                path,
                offset,
                len,
                content,
            } => {
                let at = *offset as usize..(*offset + *len) as usize;
                let bytes = expected(content, *offset, *len, tree);
                files.get_mut(path).unwrap()[at].copy_from_slice(&bytes);
            }
            Op::WriteSync {
                path,
                offset,
                len,
                content,
            } => {
                let end = (*offset + *len) as usize;
                let file = files.get_mut(path).unwrap();
                file.resize(file.len().max(end), 0);
                file[*offset as usize..end].copy_from_slice(&expected(content, 0, *len, tree));
            }
            Op::Append {
                path, len, content, ..
            } => {
                let bytes = expected(content, 0, *len, tree);
                files.entry(path.clone()).or_default().extend(bytes);
            }
            Op::Rename { from, to } => {
                let moved = files.remove(from).unwrap();
                files.insert(to.clone(), moved);
            }
            Op::Unlink { path } => {
                files.remove(path);
            }
            Op::RemoveTree { path } => {
                let inside = format!("{path}/");
                files.retain(|name, _| name != path && !name.starts_with(&inside));
            }
            _ => {}
        }
    }
    files
}

/// Compares the files below `dir` with `files`, both ways.
fn verify(dir: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    for (path, bytes) in files {
        let found = fs::read(dir.join(path)).map_err(|error| format!("{path}: {error}"))?;
        if found != *bytes {
            return Err(format!("{path}: the content differs"));
        }
    }
    for entry in list_tree(dir).map_err(|error| error.to_string())?.entries {
        let meta = fs::symlink_metadata(dir.join(&entry.path)).unwrap();
        if meta.is_file() && !files.contains_key(&entry.path) {
            return Err(format!("{}: nobody made it", entry.path));
        }
    }
    Ok(())
}

#[test]
fn a_tree_is_written_read_and_deleted_as_the_operations_say() {
    let atomic = [("bytes", 1 << 20), ("files", 20), ("rounds", 60)];
    for (name, parameters) in [
        ("rootfs", &TINY[..]),
        ("logger", &[("records", 2_000)]),
        ("atomic", &atomic),
        ("manyfiles", &[("bytes", 100_000), ("file_bytes", 4_096)]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec(name, parameters, true);
        let mut all = Vec::new();
        for phase in find(name).unwrap().phases() {
            let ops = ops(&spec, phase.name, None);
            let (counts, _) = run(&ops, dir.path(), None).unwrap();
            assert_eq!(counts.operations, ops.len() as u64);
            all.extend(ops);
            // Hard links share what is overwritten, which the model does not know.
            let mut files = model(&all, None);
            let single = |path: &String| fs::metadata(dir.path().join(path)).unwrap().nlink() == 1;
            let shared: Vec<String> = files.keys().filter(|path| !single(path)).cloned().collect();
            for path in shared {
                let found = fs::read(dir.path().join(&path)).unwrap();
                files.insert(path, found);
            }
            verify(dir.path(), &files).unwrap();
        }
    }
}

#[test]
fn planted_faults_in_the_tree_are_found() {
    let spec = spec("rootfs", &TINY, false);
    let ops = ops(&spec, "tree_write", None);
    let files = model(&ops, None);
    let path = files.iter().find(|file| !file.1.is_empty()).unwrap().0;
    let check = |spoil: &dyn Fn(&Path)| {
        let dir = tempfile::tempdir().unwrap();
        run(&ops, dir.path(), None).unwrap();
        verify(dir.path(), &files).unwrap();
        spoil(dir.path());
        assert!(verify(dir.path(), &files).is_err());
    };
    check(&|dir| fs::remove_file(dir.join(path)).unwrap());
    check(&|dir| fs::write(dir.join("stray"), "x").unwrap());
    check(&|dir| {
        let mut bytes = fs::read(dir.join(path)).unwrap();
        bytes[0] ^= 1;
        fs::write(dir.join(path), bytes).unwrap();
    });
}

#[test]
fn reading_counts_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec("rootfs", &TINY, false);
    let (written, _) = run(&ops(&spec, "tree_write", None), dir.path(), None).unwrap();
    let (read, _) = run(&ops(&spec, "tree_read", None), dir.path(), None).unwrap();
    let database = 2 * (64 << 10);
    assert_eq!(written.bytes, (2 << 20) - database);
    assert_eq!(written.files, 150);
    assert_eq!((read.bytes, read.files), (written.bytes, written.files));
}

/// What tar reads once and what rm counts, a file of more calls than one batch has among them.
#[test]
fn a_tree_is_read_and_removed_whatever_is_in_it() {
    use std::os::unix::ffi::OsStrExt;
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join("tree").join(name);
    fs::create_dir_all(at("deep/deeper")).unwrap();
    fs::create_dir(at("none")).unwrap();
    fs::write(at("deep/deeper/large"), vec![b'x'; 5_000_001]).unwrap();
    fs::write(at("small"), "x").unwrap();
    fs::write(at("empty"), "").unwrap();
    let odd = dir.path().join("tree");
    let odd = odd.join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::write(odd, "odd").unwrap();
    fs::hard_link(at("small"), at("deep/same")).unwrap();
    std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
    let run = |op: Op| run(&[op], dir.path(), None).map(|(counts, _)| counts);
    let path = || "tree".to_owned();
    for path in [path(), ".".to_owned()] {
        let read = run(Op::ReadTree { path }).unwrap();
        assert_eq!((read.files, read.bytes), (4, 5_000_005));
    }
    let one = "tree/small".to_owned();
    assert_eq!(run(Op::RemoveTree { path: one }).unwrap().files, 1);
    // Files and links that are left, not directories.
    assert_eq!(run(Op::RemoveTree { path: path() }).unwrap().files, 5);
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    for op in [
        Op::RemoveTree { path: path() },
        Op::ReadTree { path: path() },
    ] {
        let error = run(op).unwrap_err().to_string();
        assert!(error.contains("/tree: No such file"), "{error}");
    }
}

/// fts sorts a directory by inode number only beyond so many entries: both sides of the limit are
/// removed whole.
#[test]
fn a_huge_directory_is_removed_whole() {
    let dir = tempfile::tempdir().unwrap();
    for count in [10_000, 10_001] {
        let path = dir.path().join("d");
        fs::create_dir(&path).unwrap();
        for at in 0..count {
            fs::File::create(path.join(format!("f{at}"))).unwrap();
        }
        let remove = Op::RemoveTree { path: "d".into() };
        let (counts, _) = run(&[remove], dir.path(), None).unwrap();
        assert_eq!(counts.files, count);
        assert!(!path.exists());
    }
}

#[test]
fn modes_are_exact_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let content = Content::Generated { level: 0, seed: 0 };
    let modes = [0o600, 0o644, 0o666, 0o755, 0o777, 0o4755];
    let ops: Vec<Op> = modes
        .iter()
        .flat_map(|&mode| {
            let create = Op::Create {
                path: format!("f{mode:o}"),
                size: 1,
                content: content.clone(),
                mode: Some(mode),
                pieces: None,
            };
            let mkdir = Op::Mkdir {
                path: format!("d{mode:o}"),
                mode: Some(mode & 0o777),
            };
            [create, mkdir]
        })
        .collect();
    run(&ops, dir.path(), None).unwrap();
    let mode_of = |name: String| {
        fs::metadata(dir.path().join(name))
            .unwrap()
            .permissions()
            .mode()
    };
    for mode in modes {
        assert_eq!(
            mode_of(format!("f{mode:o}")) & 0o7777,
            mode,
            "file {mode:o}"
        );
        assert_eq!(
            mode_of(format!("d{mode:o}")) & 0o777,
            mode & 0o777,
            "directory {mode:o}"
        );
    }
}

#[test]
fn only_timed_operations_read_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let spec = spec("rootfs", &TINY, true);
    let reads = Cell::new(0_u64);
    let clock = || {
        reads.set(reads.get() + 1);
        reads.get() * 1_000
    };
    let timed = |phase: &str| {
        let ops = ops(&spec, phase, None);
        let mut nobody = |_: &str, _: &str, _| Ok(());
        operate(
            ops.into_iter(),
            dir.path(),
            None,
            &Time {
                now: &clock,
                sleep: &|_| (),
            },
            Manner::default(),
            &mut nobody,
        )
        .unwrap()
        .1
    };
    assert_eq!(timed("tree_write").count(), 0);
    assert_eq!(timed("database_write").count(), 0);
    assert_eq!(reads.get(), 0);
    let latency = timed("random_update");
    assert_eq!((latency.count(), reads.get()), (20, 40));
    assert!((1_000..1_032).contains(&latency.quantile_ns(1, 1).unwrap()));
}

#[test]
fn failures_name_operation_path_and_reason() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |op: Op, dir: &Path| run(&[op], dir, None).unwrap_err().to_string();
    let text = fails(
        Op::Read {
            path: "no/file".into(),
        },
        dir.path(),
    );
    assert!(
        text.starts_with("open ") && text.contains("no/file: "),
        "{text}"
    );
    let text = fails(Op::SyncFs, Path::new("/no/directory"));
    assert!(text.contains("/no/directory"), "{text}");
    let full = Op::Overwrite {
        path: "full".into(),
        offset: 0,
        len: 1,
        content: Content::Generated { level: 0, seed: 0 },
    };
    let text = fails(full, Path::new("/dev"));
    assert!(
        text.contains("write /dev/full: ENOSPC: the filesystem is full"),
        "{text}"
    );
}

#[test]
fn a_tree_of_the_user_is_copied_by_a_job() {
    let source = tempfile::tempdir().unwrap();
    let target = tempfile::tempdir().unwrap();
    let at = |name: &str| source.path().join(name);
    fs::create_dir(at("sub")).unwrap();
    fs::write(at("sub/large"), vec![b'x'; 300_000]).unwrap();
    fs::write(at("empty"), "").unwrap();
    fs::write(at("script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(at("script"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("sub/large", at("link")).unwrap();
    let mut workload = spec("rootfs", &TINY, true);
    workload.tree = Some(source.path().display().to_string());
    let operate = |phase: &str| Step::Operate {
        phase: phase.to_owned(),
        workload: workload.clone(),
        dir: target.path().display().to_string(),
    };
    let job = Job {
        seed: 7,
        queues: Vec::new(),
        steps: vec![
            operate("tree_write"),
            operate("tree_read"),
            operate("rewrite"),
        ],
        promises: false,
        returns: false,
        ignores_sync: false,
        counts_work: false,
        acknowledged: false,
    };
    let mut events: Vec<Event> = Vec::new();
    perform(&job, &Context::board(None), &mut events).unwrap();
    let copied = |name: &str| fs::read(target.path().join(name)).unwrap();
    assert_eq!(copied("sub/large"), vec![b'x'; 300_000]);
    assert_eq!(copied("empty"), b"");
    let mode = fs::metadata(target.path().join("script"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o750);
    let link = fs::read_link(target.path().join("link")).unwrap();
    assert_eq!(link, Path::new("sub/large"));
    let bytes: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            Event::PhaseEnd { counts, .. } => Some(counts.bytes),
            _ => None,
        })
        .collect();
    assert_eq!(bytes[..2], [300_010, 300_010], "the tree and nothing else");
}

/// One file through every way of writing: each has the flags that it asked for, also after the
/// name went to another file.
#[test]
fn an_open_file_is_the_one_that_has_the_name_now() {
    let script = r#"
        {"op":"mkdir","path":"d"}
        {"op":"append","path":"d/a","len":100,$1,"sync":true}
        {"op":"update","path":"d/a","offset":10,"len":20,$2}
        {"op":"write_sync","path":"d/a","offset":90,"len":20,$3}
        {"op":"create","path":"d/b","size":30,$4}
        {"op":"sync_file","path":"d/b"}
        {"op":"rename","from":"d/b","to":"d/a"}
        {"op":"sync_dir","path":"d"}
        {"op":"update","path":"d/a","offset":0,"len":10,$5}
        {"op":"rename","from":"d","to":"e"}
        {"op":"sync_dir","path":"."}
        {"op":"mkdir","path":"d"}
        {"op":"create","path":"d/a","size":5,$6}
        {"op":"append","path":"d/a","len":7,$7,"sync":false}
    "#;
    // `$N` is content of seed N.
    let script = (1..=7).fold(script.to_owned(), |script, seed| {
        let content = format!(r#""content":{{"generated":{{"level":0,"seed":{seed}}}}}"#);
        script.replace(&format!("${seed}"), &content)
    });
    let script = whichfs_workload::parse_script(&script).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Vec::new();
    let mut promised = |call: &str, path: &str, done| {
        heard.push(format!("{call} {path} {done}"));
        Ok(())
    };
    operate(
        script.iter().cloned(),
        dir.path(),
        None,
        &Time::still(),
        Manner {
            returns: true,
            ..Manner::default()
        },
        &mut promised,
    )
    .unwrap();
    let generated = |seed, len| expected(&Content::Generated { level: 0, seed }, 0, len, None);
    let mut moved = generated(4, 30);
    moved[..10].copy_from_slice(&generated(5, 10));
    assert_eq!(fs::read(dir.path().join("e/a")).unwrap(), moved);
    let new = [generated(6, 5), generated(7, 7)].concat();
    assert_eq!(fs::read(dir.path().join("d/a")).unwrap(), new);
    let calls: Vec<&str> = heard
        .iter()
        .map(String::as_str)
        .filter(|call| !call.starts_with("returned"))
        .collect();
    let expected = [
        "fdatasync d/a 2",
        "fsync d/a 3",
        "O_SYNC d/a 4",
        "fsync d/b 6",
        "fsync d 8",
        "fsync d/a 9",
        "fsync . 11",
    ];
    assert_eq!(calls, expected);
    let returned = heard.iter().filter(|call| call.starts_with("returned  "));
    assert_eq!(returned.count(), 11, "{heard:?}");
}

#[test]
fn a_job_survives_json() {
    let job = Job {
        seed: u64::MAX,
        queues: Vec::new(),
        steps: vec![
            Step::Operate {
                phase: "tree_write".into(),
                workload: spec("rootfs", &TINY, false),
                dir: "/mnt/test".into(),
            },
            Step::DropCaches,
        ],
        promises: false,
        returns: false,
        ignores_sync: false,
        counts_work: false,
        acknowledged: false,
    };
    let json = serde_json::to_string(&job).unwrap();
    assert_eq!(serde_json::from_str::<Job>(&json).unwrap(), job);
}
