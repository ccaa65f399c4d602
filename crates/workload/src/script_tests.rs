//! Scripts that are read and refused.
#![allow(clippy::unwrap_used)]
use super::*;
use std::collections::BTreeMap;

const GOOD: &str = r#"
# A configuration file is replaced.
{"op":"mkdir","path":"etc","mode":493}
{"op":"create","path":"etc/a","size":10,"content":{"generated":{"level":0,"seed":1}}}
{"op":"create","path":"etc/b","size":20,"content":{"generated":{"level":0,"seed":2}}}
{"op":"sync_file","path":"etc/b"}
{"op":"rename","from":"etc/b","to":"etc/a"}
{"op":"rename","from":"etc","to":"conf"}
{"op":"write_sync","path":"conf/a","offset":5,"len":7,"content":{"generated":{"level":1,"seed":3}}}
{"op":"sync_dir","path":"."}
"#;

fn spec(script: Option<Vec<Op>>) -> WorkloadSpec {
    WorkloadSpec {
        name: "script".into(),
        parameters: BTreeMap::new(),
        tree: None,
        unix: false,
        script,
        input: None,
    }
}

/// The refusal of `line`, in which `$N` is content of level N and `$file` that of a file.
fn refused(line: &str) -> String {
    let line = line.replace("$file", r#""content":{"file":{"path":"/etc/passwd"}}"#);
    let line = [0, 1, 99].iter().fold(line, |line, level| {
        let content = format!(r#""content":{{"generated":{{"level":{level},"seed":1}}}}"#);
        line.replace(&format!("${level}}}"), &format!("{content}}}"))
    });
    parse_script(&format!("{GOOD}{line}\n"))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_script_is_its_lines() {
    let ops = parse_script(GOOD).unwrap();
    assert_eq!(ops.len(), 8);
    assert_eq!(parse_script(&script_text(&ops)).unwrap(), ops);
    assert_eq!(script_lines(GOOD).unwrap()[1].number, 4);
    let spec = spec(Some(ops));
    let done: Vec<Op> = Script
        .operations("script", &spec, None, 1)
        .unwrap()
        .collect();
    assert!(matches!(&done[0], Op::Mkdir { mode: None, .. }));
    assert_eq!(done[7], Op::SyncDir { path: ".".into() });
}

#[test]
fn operations_in_blocks_and_about_time_are_possible() {
    let script = r#"
{"op":"mkdir","path":"d"}
{"op":"write_at","path":"d/a","offset":0,"len":9,"block":4,$}
{"op":"rewrite","path":"d/a","offset":0,"len":9,"block":4,$}
{"op":"will_read","path":"d/a","offset":0,"len":9}
{"op":"read_at","path":"d/a","offset":0,"len":9,"block":4}
{"op":"sync_close","path":"d/a"}
{"op":"save","path":"d/b","size":5,$}
{"op":"stat","path":"d/b"}
{"op":"stat_all","path":"d"}
{"op":"lap"}
{"op":"pause","nanoseconds":1000}
{"op":"wait_until","nanoseconds":5000}
{"op":"clear","path":"d"}
{"op":"create","path":"d/c","size":5,$}
{"op":"read_tree","path":"."}
{"op":"remove_tree","path":"d"}
{"op":"mkdir","path":"d"}
{"op":"rmdir","path":"d"}
"#;
    let content = r#""content":{"generated":{"level":0,"seed":1}}"#;
    let ops = parse_script(&script.replace('$', content));
    assert_eq!(ops.unwrap().len(), 18);
}

#[test]
fn what_became_impossible_is_left_out() {
    let mut ops = parse_script(GOOD).unwrap();
    assert_eq!(possible_script(ops.clone()), ops);
    // Without the directory nothing in it can be.
    ops.remove(0);
    let rest = possible_script(ops.clone());
    assert!(rest.len() < ops.len() && check_script(&rest).is_ok());
}

#[test]
fn paths_that_leave_the_directory_are_refused() {
    for path in ["/etc", "../x", "conf/../../x", ".", "", "conf//x", "conf/"] {
        let error = refused(&format!(r#"{{"op":"mkdir","path":"{path}"}}"#));
        assert!(error.starts_with("line 11: "), "{path}: {error}");
        assert!(error.contains("no path below"), "{path}: {error}");
    }
    // Through a link out of it, or one that was moved away.
    let link = r#"{"op":"symlink","path":"out","target":"/"}"#;
    let error = refused(&format!("{link}\n{{\"op\":\"mkdir\",\"path\":\"out/x\"}}"));
    assert!(error.contains("out is a symbolic link"), "{error}");
    let error = refused(r#"{"op":"mkdir","path":"etc/x"}"#);
    assert!(error.contains("etc does not exist then"), "{error}");
}

#[test]
fn errors_name_the_line_and_the_remedy() {
    let cases = [
        ("{", "line 11: the line ends too early"),
        (
            r#"{"op":"mkdri","path":"a"}"#,
            r#"no operation "mkdri"; right would be {"op":"mkdir""#,
        ),
        (
            r#"{"op":"mkdir","path":"a","size":1}"#,
            r#""mkdir" has no field "size"; it has mode, op, path; right would be {"op":"mkdir""#,
        ),
        (r#"{"op":"unlink","path":"conf"}"#, "use rmdir"),
        (r#"{"op":"rmdir","path":"conf"}"#, "delete conf/a before"),
        (r#"{"op":"rename","from":"x","to":"y"}"#, "x does not exist"),
        (
            r#"{"op":"rename","from":"conf","to":"conf/b"}"#,
            "into itself",
        ),
        (
            r#"{"op":"create","path":"c","size":1,$99}"#,
            "there is no level 99",
        ),
        (
            r#"{"op":"append","path":"c","len":1,$file,"sync":true}"#,
            "cannot be judged",
        ),
        (
            r#"{"op":"overwrite","path":"conf/a","offset":99999999999,"len":1,$0}"#,
            "smaller offset",
        ),
        (
            r#"{"op":"write_at","path":"c","offset":0,"len":9,"block":0,$0}"#,
            "block 0 is not",
        ),
        (
            r#"{"op":"write_at","path":"c","offset":0,"len":9,"block":512,"direct":true,$0}"#,
            "multiples of 512",
        ),
        (
            r#"{"op":"read_at","path":"c","offset":0,"len":9,"block":9}"#,
            "c does not exist",
        ),
        (r#"{"op":"clear","path":"conf/a"}"#, "must be a directory"),
        (
            r#"{"op":"read_tree","path":"conf/a"}"#,
            "must be a directory",
        ),
        (
            r#"{"op":"remove_tree","path":"conf/x"}"#,
            "does not exist then",
        ),
        (r#"{"op":"remove_tree","path":"."}"#, "no path below"),
        (
            r#"{"op":"create","path":"c","size":1,"mode":99999999,$0}"#,
            "up to 4095",
        ),
        (r#"{"op":"mkdir","path":"d","mode":4096}"#, "octal 755"),
        (
            r#"{"op":"overwrite","path":"conf/a","offset":13,"len":8,$0}"#,
            "conf/a has 20 bytes then",
        ),
        (
            r#"{"op":"rewrite","path":"conf/a","offset":20,"len":1,"block":4,$0}"#,
            "or append, write_at or write_sync",
        ),
        (
            r#"{"op":"append","path":"conf/a","len":1073741805,"sync":true,$0}"#,
            "at 20 ends beyond",
        ),
        (r#"{"op":"symlink","path":"l","target":""}"#, "of 0 bytes"),
        (r#"{"op":"pause","nanoseconds":3600000000001}"#, "too long"),
    ];
    for (line, expected) in cases {
        let error = refused(line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert_eq!(parse_script("# none\n"), Err(ScriptError::Empty));
    assert!(Script.check(&spec(None)).is_err());
}

#[test]
fn a_path_and_a_target_have_the_lengths_that_linux_takes() {
    let deep = |names: usize| vec!["d".repeat(99); names].join("/");
    let error = refused(&format!(r#"{{"op":"mkdir","path":"{}"}}"#, deep(41)));
    assert!(error.contains("4099 bytes: take at most 4000"), "{error}");
    let link = |bytes| {
        let target = "t".repeat(bytes);
        format!(r#"{{"op":"symlink","path":"l","target":"{target}"}}"#)
    };
    assert!(parse_script(&link(4095)).is_ok());
    assert!(refused(&link(4096)).contains("take 1 to 4095"));
}

#[test]
fn names_of_one_file_have_one_size() {
    let script = r#"
{"op":"create","path":"a","size":5,$}
{"op":"hard_link","path":"b","existing":"a"}
{"op":"append","path":"a","len":5,$,"sync":true}
{"op":"overwrite","path":"b","offset":5,"len":5,$}
{"op":"rename","from":"a","to":"b"}
{"op":"unlink","path":"a"}
{"op":"unlink","path":"b"}
"#;
    let content = r#""content":{"generated":{"level":0,"seed":1}}"#;
    let ops = parse_script(&script.replace('$', content));
    assert_eq!(
        ops.unwrap().len(),
        7,
        "rename of two names of one file does nothing"
    );
}

/// What the shrinking of a failing run relies on.
#[test]
fn the_operations_of_every_workload_are_possible_as_a_script() {
    for workload in crate::seeded() {
        let spec = WorkloadSpec {
            name: workload.name().into(),
            unix: true,
            ..spec(None)
        };
        let tree = workload.generated_tree(&spec, 1).unwrap();
        let mut ops = Vec::new();
        for phase in workload.phases() {
            let of_phase = workload.operations(phase.name, &spec, tree.as_ref(), 1);
            ops.extend(of_phase.unwrap());
        }
        if let Err(error) = check_script(&ops) {
            panic!("{}: {error}", workload.name());
        }
    }
}

#[test]
fn only_this_workload_takes_a_script() {
    let mut other = spec(parse_script(GOOD).ok());
    Script.check(&other).unwrap();
    other.name = "logger".into();
    let error = crate::find("logger").unwrap().check(&other).unwrap_err();
    assert!(error.to_string().contains("script"), "{error}");
}
