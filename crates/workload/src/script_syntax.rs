//! What is wrong with a line of a script that is no operation, in words, with the nearest line
//! that is one.

use serde_json::{Map, Value};
use whichfs_trial::Op;

/// A line of each operation, with all of its fields.
const EXAMPLES: [&str; 34] = [
    r#"{"op":"mkdir","path":"d","mode":493}"#,
    r#"{"op":"rmdir","path":"d"}"#,
    r#"{"op":"unlink","path":"d/a"}"#,
    concat!(
        r#"{"op":"create","path":"d/a","size":3000,"#,
        r#""content":{"generated":{"level":4,"seed":1}},"mode":420}"#
    ),
    concat!(
        r#"{"op":"save","path":"d/a","size":3000,"#,
        r#""content":{"generated":{"level":4,"seed":1}},"mode":420}"#
    ),
    r#"{"op":"symlink","path":"d/l","target":"a"}"#,
    r#"{"op":"hard_link","path":"d/b","existing":"d/a"}"#,
    concat!(
        r#"{"op":"overwrite","path":"d/a","offset":0,"len":512,"#,
        r#""content":{"generated":{"level":4,"seed":2}}}"#
    ),
    concat!(
        r#"{"op":"update","path":"d/a","offset":0,"len":512,"#,
        r#""content":{"generated":{"level":4,"seed":2}}}"#
    ),
    concat!(
        r#"{"op":"write_sync","path":"d/a","offset":0,"len":512,"#,
        r#""content":{"generated":{"level":4,"seed":2}}}"#
    ),
    concat!(
        r#"{"op":"append","path":"d/a","len":512,"#,
        r#""content":{"generated":{"level":4,"seed":2}},"sync":true}"#
    ),
    r#"{"op":"rename","from":"d/a","to":"d/b"}"#,
    r#"{"op":"sync_file","path":"d/a"}"#,
    r#"{"op":"sync_dir","path":"d"}"#,
    r#"{"op":"sync_fs"}"#,
    r#"{"op":"sync_close","path":"d/a"}"#,
    r#"{"op":"write_back","path":"d/a","wait":false}"#,
    concat!(
        r#"{"op":"write_at","path":"d/a","offset":0,"len":8192,"block":4096,"#,
        r#""content":{"generated":{"level":4,"seed":2}},"direct":true}"#
    ),
    concat!(
        r#"{"op":"rewrite","path":"d/a","offset":0,"len":8192,"block":4096,"#,
        r#""content":{"generated":{"level":4,"seed":2}}}"#
    ),
    r#"{"op":"clear","path":"d"}"#,
    r#"{"op":"read","path":"d/a"}"#,
    r#"{"op":"read_dir","path":"d"}"#,
    r#"{"op":"read_link","path":"d/l"}"#,
    r#"{"op":"read_at","path":"d/a","offset":0,"len":8192,"block":4096,"direct":true}"#,
    r#"{"op":"will_read","path":"d/a","offset":0,"len":8192}"#,
    r#"{"op":"stat","path":"d/a"}"#,
    r#"{"op":"stat_all","path":"d"}"#,
    r#"{"op":"read_tree","path":"d"}"#,
    r#"{"op":"remove_tree","path":"d"}"#,
    r#"{"op":"pause","nanoseconds":1000000}"#,
    r#"{"op":"wait_until","nanoseconds":1000000}"#,
    r#"{"op":"lap"}"#,
    r#"{"op":"mkdir","path":"d"}"#,
    r#"{"op":"create","path":"d/a","size":3000,"content":{"generated":{"level":4,"seed":1}}}"#,
];

/// Fields that may be left out.
const OPTIONAL: [&str; 2] = ["mode", "direct"];

/// What is wrong with a line, and a line that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What was expected, and what is there.
    pub reason: String,
    /// The nearest line that is an operation.
    pub example: &'static str,
}

/// The operation that `line` is.
pub(crate) fn operation(line: &str) -> Result<Op, Wrong> {
    let op = serde_json::from_str(line).map_err(|error| explain(line, &error))?;
    // The parser passes over what stands beside the name of one that has no fields.
    if let Op::Lap | Op::SyncFs = op
        && let Ok(Value::Object(fields)) = serde_json::from_str(line)
        && let Some(name) = fields.get("op").and_then(Value::as_str)
        && let Some((example, all)) = example_of(name)
        && let Some(reason) = wrong_field(&fields, &all, name)
    {
        return Err(Wrong { reason, example });
    }
    Ok(op)
}

/// Why `line` is no operation.
fn explain(line: &str, error: &serde_json::Error) -> Wrong {
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => return wrong(no_json(line, &error), said_op(line)),
    };
    let Value::Object(fields) = &value else {
        let reason = format!(
            "expected an object in braces, found {} ({})",
            kind(&value),
            short(&value)
        );
        return wrong(reason, None);
    };
    let name = match fields.get("op") {
        Some(Value::String(name)) => name,
        Some(other) => {
            let reason = format!(
                "\"op\" must be the name of an operation in quotes, not {}",
                short(other)
            );
            return wrong(reason, None);
        }
        None => {
            return wrong(
                "the field \"op\" is missing, which says what is done".to_owned(),
                nearest(fields.keys().map(String::as_str)),
            );
        }
    };
    let Some((example, all)) = example_of(name) else {
        let reason = format!("there is no operation {name:?}");
        return wrong(reason, similar(name));
    };
    // What the fields do not tell: a field that stands twice, for one.
    let reason = wrong_field(fields, &all, name).unwrap_or_else(|| {
        let twice = twice(line, &all);
        twice.unwrap_or_else(|| {
            format!(
                "the fields of {name:?} do not fit at column {}",
                error.column()
            )
        })
    });
    Wrong { reason, example }
}

fn wrong(reason: String, example: Option<&'static str>) -> Wrong {
    Wrong {
        reason,
        example: example.unwrap_or(EXAMPLES[0]),
    }
}

/// The first field that is missing, unknown or of another kind than that of the example.
fn wrong_field(
    fields: &Map<String, Value>,
    all: &Map<String, Value>,
    name: &str,
) -> Option<String> {
    for (field, value) in fields {
        let Some(right) = all.get(field) else {
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            let fields = known.join(", ");
            return Some(format!("{name:?} has no field {field:?}; it has {fields}"));
        };
        if let Some(reason) = wrong_value(field, value, right) {
            return Some(reason);
        }
    }
    let missing =
        |field: &&String| !fields.contains_key(*field) && !OPTIONAL.contains(&field.as_str());
    let field = all.keys().find(missing)?;
    Some(format!("{name:?} needs the field {field:?} as well"))
}

/// Why `value` cannot be that of `field`, which is like `right`.
fn wrong_value(field: &str, value: &Value, right: &Value) -> Option<String> {
    let most = match field {
        "level" => u64::from(u8::MAX),
        "mode" => u64::from(u32::MAX),
        _ => u64::MAX,
    };
    let expected = match right {
        // Both may be left out, and so be null.
        _ if field == "mode" && value.is_null() => return None,
        Value::Number(_) => match value.as_u64() {
            Some(number) if number <= most => return None,
            _ => format!("a whole number from 0 to {most}"),
        },
        Value::String(_) if value.is_string() => return None,
        Value::String(_) => "a text in quotes".to_owned(),
        Value::Bool(_) if value.is_boolean() => return None,
        Value::Bool(_) => "true or false".to_owned(),
        _ => return wrong_content(field, value, right),
    };
    Some(format!(
        "{field:?} must be {expected}, not {}",
        short(value)
    ))
}

/// The same of bytes that are to be written.
fn wrong_content(field: &str, value: &Value, right: &Value) -> Option<String> {
    let generated = |value: &Value| value.as_object()?.get("generated")?.as_object().cloned();
    let (Some(fields), Some(all)) = (generated(value), generated(right)) else {
        return match value
            .as_object()
            .is_some_and(|one| one.contains_key("file"))
        {
            true => None,
            false => Some(format!(
                "{field:?} must say how bytes are made ({right}), not {}",
                short(value)
            )),
        };
    };
    match value.as_object().map_or(0, Map::len) {
        1 => wrong_field(&fields, &all, "generated"),
        _ => Some(format!(
            "{field:?} must have \"generated\" and nothing beside it"
        )),
    }
}

/// The example of the operation `name`, and its fields.
fn example_of(name: &str) -> Option<(&'static str, Map<String, Value>)> {
    EXAMPLES.iter().find_map(|example| {
        let Value::Object(fields) = serde_json::from_str(example).ok()? else {
            return None;
        };
        (fields.get("op")?.as_str()? == name).then_some((*example, fields))
    })
}

/// The example of the operation whose name is most like `name`; none if none is.
fn similar(name: &str) -> Option<&'static str> {
    let op = |example: &'static str| {
        let (_, rest) = example.split_once(r#""op":""#)?;
        Some(rest.split_once('"')?.0)
    };
    let names: Vec<&str> = EXAMPLES.iter().filter_map(|example| op(example)).collect();
    let found = *whichfs_units::nearest(name, &names).first()?;
    example_of(found).map(|(example, _)| example)
}

/// The example that has most of `fields`, and few others.
fn nearest<'a>(fields: impl Iterator<Item = &'a str> + Clone) -> Option<&'static str> {
    let fit = |example: &&'static str| {
        let all: Map<String, Value> = serde_json::from_str(example).unwrap_or_default();
        let shared = fields
            .clone()
            .filter(|field| all.contains_key(*field))
            .count();
        (shared, std::cmp::Reverse(all.len()))
    };
    EXAMPLES.iter().max_by_key(|example| fit(example)).copied()
}

/// The example of the operation that a line names which is no JSON.
fn said_op(line: &str) -> Option<&'static str> {
    let (_, rest) = line.split_once("op")?;
    let name = rest.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let name = &name[..end.unwrap_or(name.len())];
    example_of(name)
        .map(|(example, _)| example)
        .or_else(|| similar(name))
}

/// Where a line stops to be JSON, and what is there.
fn no_json(line: &str, error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "the line ends too early: a brace or a quotation mark is not closed".to_owned();
    }
    let column = error.column();
    // Columns count bytes.
    let before = line.get(..column.saturating_sub(1)).unwrap_or_default();
    let found = line
        .get(before.len()..)
        .and_then(|rest| rest.chars().next());
    match found {
        Some(found) => format!(
            "at column {column} stands {found:?}, where JSON has something else: names and texts \
             stand in double quotes, a colon between name and value, commas between fields, and \
             nothing behind the last brace"
        ),
        None => format!("at column {column} it is no JSON"),
    }
}

/// A field that the line has twice.
fn twice(line: &str, all: &Map<String, Value>) -> Option<String> {
    let count = |field: &str| line.matches(&format!("{field:?}")).count();
    let field = all.keys().find(|field| count(field) > 1)?;
    Some(format!("the field {field:?} stands there more than once"))
}

/// What kind of JSON `value` is.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// `value` as it stands there, or its beginning.
fn short(value: &Value) -> String {
    const SHOWN: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_examples_are_of_all_operations() {
        for example in EXAMPLES {
            operation(example).unwrap();
        }
        // The parser lists those that it knows.
        let unknown = serde_json::from_str::<Op>(r#"{"op":"no such"}"#).unwrap_err();
        let said = unknown.to_string();
        let (_, known) = said.split_once("expected one of ").unwrap();
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        assert!(known.len() > 25, "{said}");
        for name in known {
            assert!(example_of(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_examples_have_all_fields() {
        // Each field that an operation has is one that the example has: another is refused.
        for example in EXAMPLES {
            let op: Op = serde_json::from_str(example).unwrap();
            let Value::Object(written) = serde_json::to_value(&op).unwrap() else {
                unreachable!();
            };
            let name = written["op"].as_str().unwrap().to_owned();
            let (_, all) = example_of(&name).unwrap();
            for field in written.keys() {
                assert!(all.contains_key(field), "{name}: {field}");
            }
        }
    }

    /// The reason for which `line` is refused, and whether the example is of `op`.
    fn refused(line: &str, op: &str) -> String {
        let wrong = operation(line).unwrap_err();
        let expected = format!(r#"{{"op":"{op}""#);
        assert!(wrong.example.starts_with(&expected), "{line}: {wrong:?}");
        for word in [
            "expected one of",
            "invalid type",
            "missing field",
            "unknown",
            "EOF",
        ] {
            assert!(!wrong.reason.contains(word), "{line}: {wrong:?}");
        }
        wrong.reason
    }

    #[test]
    fn what_is_no_json_is_told_with_the_place() {
        let bare = refused("{op: mkdir}", "mkdir");
        assert!(bare.contains("column 2 stands 'o'"), "{bare}");
        assert!(bare.contains("double quotes"), "{bare}");
        let comma = refused(r#"{"op":"unlink" "path":"a"}"#, "unlink");
        assert!(comma.contains("column 16 stands '\"'"), "{comma}");
        let open = refused(r#"{"op":"sync_dir","path":"a"#, "sync_dir");
        assert!(open.contains("not closed"), "{open}");
        let behind = refused(r#"{"op":"lap"} {"op":"lap"}"#, "lap");
        assert!(behind.contains("nothing behind the last brace"), "{behind}");
        let umlaut = refused(r#"{"op":"stat","path":"ä",}"#, "stat");
        assert!(umlaut.contains("'}'"), "{umlaut}");
        refused("mkdir d", "mkdir");
        refused("ä", "mkdir");
    }

    #[test]
    fn what_is_no_object_with_an_operation_is_told() {
        assert!(refused("[1,2]", "mkdir").contains("found a list ([1,2])"));
        assert!(refused("7", "mkdir").contains("found a number (7)"));
        assert!(refused(r#"{"op":7}"#, "mkdir").contains("not 7"));
        let none = refused(r#"{"from":"a","to":"b"}"#, "rename");
        assert!(none.contains("\"op\" is missing"), "{none}");
        let empty = operation("{}").unwrap_err();
        assert!(empty.reason.contains("\"op\" is missing"), "{empty:?}");
    }

    #[test]
    fn a_misspelt_operation_shows_the_nearest() {
        assert!(
            refused(r#"{"op":"mkdri","path":"d"}"#, "mkdir").contains("no operation \"mkdri\"")
        );
        refused(r#"{"op":"fsync_file","path":"d"}"#, "sync_file");
        refused(r#"{"op":"Rename","from":"a","to":"b"}"#, "rename");
        refused(r#"{"op":"qqq"}"#, "mkdir");
    }

    #[test]
    fn fields_that_are_wrong_are_told_by_name() {
        let unknown = refused(r#"{"op":"unlink","pfad":"d"}"#, "unlink");
        assert_eq!(unknown, r#""unlink" has no field "pfad"; it has op, path"#);
        let missing = refused(r#"{"op":"rename","from":"d"}"#, "rename");
        assert_eq!(missing, r#""rename" needs the field "to" as well"#);
        let text = refused(r#"{"op":"mkdir","path":3}"#, "mkdir");
        assert_eq!(text, r#""path" must be a text in quotes, not 3"#);
        let number = refused(
            r#"{"op":"create","path":"a","size":"9","content":{"generated":{"level":4,"seed":1}}}"#,
            "create",
        );
        assert!(number.contains("\"size\" must be a whole number from 0 to 18446744073709551615"));
        assert!(number.ends_with(", not \"9\""), "{number}");
        let negative = refused(r#"{"op":"pause","nanoseconds":-1}"#, "pause");
        assert!(negative.ends_with(", not -1"), "{negative}");
        let level = refused(
            r#"{"op":"create","path":"a","size":9,"content":{"generated":{"level":400,"seed":1}}}"#,
            "create",
        );
        assert!(
            level.contains("\"level\" must be a whole number from 0 to 255"),
            "{level}"
        );
        let seed = refused(
            r#"{"op":"create","path":"a","size":9,"content":{"generated":{"level":4}}}"#,
            "create",
        );
        assert_eq!(seed, r#""generated" needs the field "seed" as well"#);
        let content = refused(
            r#"{"op":"create","path":"a","size":9,"content":"abc"}"#,
            "create",
        );
        assert!(content.contains("how bytes are made"), "{content}");
        let sync = refused(
            concat!(
                r#"{"op":"append","path":"a","len":9,"sync":1,"#,
                r#""content":{"generated":{"level":4,"seed":1}}}"#
            ),
            "append",
        );
        assert_eq!(sync, r#""sync" must be true or false, not 1"#);
        let twice = refused(r#"{"op":"stat","path":"a","path":"b"}"#, "stat");
        assert_eq!(twice, r#"the field "path" stands there more than once"#);
        let long = refused(
            &format!(r#"{{"op":"lap","x":"{}"}}"#, "ü".repeat(99)),
            "lap",
        );
        assert!(long.contains("no field \"x\""), "{long}");
        operation(r#"{"op":"mkdir","path":"d","mode":null}"#).unwrap();
    }

    #[test]
    fn any_line_is_an_operation_or_refused_with_an_example() {
        // Cut and changed lines: never a panic, and always a line that is right.
        for example in EXAMPLES {
            for end in 0..example.len() {
                if let Err(wrong) = operation(&example[..end]) {
                    operation(wrong.example).unwrap();
                    assert!(!wrong.reason.is_empty());
                }
            }
            for at in 0..example.len() {
                for other in ["7", "\"", "{", ",", "ü"] {
                    let line = format!("{}{other}{}", &example[..at], &example[at + 1..]);
                    if let Err(wrong) = operation(&line) {
                        operation(wrong.example).unwrap();
                    }
                }
            }
        }
    }
}
