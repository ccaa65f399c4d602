//! Scripts that are read and refused.
#![allow(clippy::unwrap_used)]
use super::*;

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
{"op":"rmdir","path":"d"}
"#;
    let content = r#""content":{"generated":{"level":0,"seed":1}}"#;
    let ops = parse_script(&script.replace('$', content));
    assert_eq!(ops.unwrap().len(), 14);
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
        ("{", "line 11: EOF"),
        (r#"{"op":"mkdri","path":"a"}"#, "unknown variant `mkdri`"),
        (r#"{"op":"mkdir","path":"a","size":1}"#, "unknown field"),
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
fn only_this_workload_takes_a_script() {
    let mut other = spec(parse_script(GOOD).ok());
    Script.check(&other).unwrap();
    other.name = "logger".into();
    let error = crate::find("logger").unwrap().check(&other).unwrap_err();
    assert!(error.to_string().contains("script"), "{error}");
}
