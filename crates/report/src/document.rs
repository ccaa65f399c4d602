//! JSON documents: each says its name and the number of its schema, which is generated from its
//! type.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What a command prints with `--json`, or a line of it where that is a list.
pub trait Document: Serialize + JsonSchema {
    /// Its name: the words of the command.
    const NAME: &'static str;
    /// Number of its schema. It counts up when a field goes or changes its meaning, not when one
    /// is added.
    const SCHEMA: u32 = 1;
}

/// A document with its name and the number of its schema.
#[derive(Serialize)]
struct Named<'a, D> {
    document: &'static str,
    schema: u32,
    #[serde(flatten)]
    body: &'a D,
}

impl<'a, D: Document> Named<'a, D> {
    fn new(body: &'a D) -> Named<'a, D> {
        Named {
            document: D::NAME,
            schema: D::SCHEMA,
            body,
        }
    }
}

/// `document` as JSON.
///
/// # Errors
/// A map in it has keys that are no text.
pub fn document_json<D: Document>(document: &D) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Named::new(document))
}

/// `document` as JSON in one line.
///
/// # Errors
/// As [`document_json`].
pub fn line_json<D: Document>(document: &D) -> serde_json::Result<String> {
    serde_json::to_string(&Named::new(document))
}

/// `documents` as a JSON list.
///
/// # Errors
/// As [`document_json`].
pub fn list_json<D: Document>(documents: &[D]) -> serde_json::Result<String> {
    let all: Vec<Named<D>> = documents.iter().map(Named::new).collect();
    serde_json::to_string_pretty(&all)
}

/// The schema of what a command prints.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentSchema {
    /// Name of the document.
    pub name: &'static str,
    /// The schema, as JSON Schema 2020-12.
    pub schema: Value,
}

impl DocumentSchema {
    /// Of a command that prints one document.
    pub fn of<D: Document>() -> DocumentSchema {
        let mut settings = SchemaSettings::draft2020_12();
        settings.contract = schemars::generate::Contract::Serialize;
        let schema = settings.into_generator().into_root_schema_for::<D>();
        let mut schema = schema.to_value();
        if let Some(root) = schema.as_object_mut() {
            root.insert("title".to_owned(), json!(format!("whichfs {}", D::NAME)));
            name(root, D::NAME, D::SCHEMA);
        }
        DocumentSchema {
            name: D::NAME,
            schema,
        }
    }

    /// Of a command that prints a list of documents.
    pub fn of_list<D: Document>() -> DocumentSchema {
        let mut schema = DocumentSchema::of::<D>().schema;
        let mut list = json!({"type": "array"});
        if let (Some(list), Some(item)) = (list.as_object_mut(), schema.as_object_mut()) {
            for key in ["$schema", "title", "$defs"] {
                list.extend(item.remove_entry(key));
            }
            list.insert("items".to_owned(), schema);
        }
        DocumentSchema {
            name: D::NAME,
            schema: list,
        }
    }

    /// Of a file with a list of rows, each of which has the number of its schema in a column.
    pub fn of_rows<R: JsonSchema>(name: &'static str) -> DocumentSchema {
        let mut settings = SchemaSettings::draft2020_12();
        settings.contract = schemars::generate::Contract::Serialize;
        let schema = settings.into_generator().into_root_schema_for::<Vec<R>>();
        let mut schema = schema.to_value();
        if let Some(root) = schema.as_object_mut() {
            root.insert("title".to_owned(), json!(format!("whichfs {name}")));
        }
        DocumentSchema { name, schema }
    }

    /// Name of its file: `fs list` is `fs-list.schema.json`.
    pub fn file(&self) -> String {
        format!(
            "{}.schema.json",
            self.name.replace(" --", "-").replace(' ', "-")
        )
    }
}

/// Adds the fields that each document has to `schema`, and to each of its forms where it lists
/// several: a form may allow no other fields than its own.
fn name(schema: &mut Map<String, Value>, document: &str, number: u32) {
    let fields = [("document", json!(document)), ("schema", json!(number))];
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        for (field, value) in &fields {
            properties.insert((*field).to_owned(), json!({ "const": value }));
        }
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Some(required) = required.as_array_mut() {
        required.extend(fields.iter().map(|(field, _)| json!(field)));
    }
    for forms in ["oneOf", "anyOf"] {
        let forms = schema.get_mut(forms).and_then(Value::as_array_mut);
        for form in forms.into_iter().flatten().filter_map(Value::as_object_mut) {
            name(form, document, number);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Serialize, JsonSchema)]
    struct Inner {
        words: Vec<&'static str>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Sample {
        count: u64,
        /// Why there is none.
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        #[serde(flatten)]
        inner: Inner,
    }

    impl Document for Sample {
        const NAME: &'static str = "sample show";
    }

    fn sample() -> Sample {
        Sample {
            count: 1,
            why: None,
            inner: Inner { words: vec!["a"] },
        }
    }

    fn fits(schema: &DocumentSchema, value: &Value) -> bool {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        compiler
            .add_resource("schema.json", schema.schema.clone())
            .unwrap();
        let index = compiler.compile("schema.json", &mut schemas).unwrap();
        schemas.validate(value, index).is_ok()
    }

    #[test]
    fn a_document_says_its_name_first_and_fits_its_schema() {
        let text = document_json(&sample()).unwrap();
        assert!(
            text.starts_with("{\n  \"document\": \"sample show\",\n  \"schema\": 1,\n"),
            "{text}"
        );
        let schema = DocumentSchema::of::<Sample>();
        assert_eq!(schema.file(), "sample-show.schema.json");
        let whole: Value = serde_json::from_str(&text).unwrap();
        assert!(fits(&schema, &whole));
        assert!(schema.schema.to_string().contains("Why there is none."));
        for field in ["document", "schema", "count", "words"] {
            let mut less = whole.clone();
            less.as_object_mut().unwrap().remove(field);
            assert!(!fits(&schema, &less), "without {field}");
            let mut other = whole.clone();
            other[field] = json!({"a": 1});
            assert!(!fits(&schema, &other), "another {field}");
        }
    }

    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Either {
        Left { why: &'static str },
        Right(Inner),
    }

    impl Document for Either {
        const NAME: &'static str = "either";
    }

    #[test]
    fn each_form_of_a_document_says_its_name() {
        let schema = DocumentSchema::of::<Either>();
        let right = Inner { words: vec!["a"] };
        for form in [Either::Left { why: "b" }, Either::Right(right)] {
            let text = document_json(&form).unwrap();
            let mut whole: Value = serde_json::from_str(&text).unwrap();
            assert!(fits(&schema, &whole), "{text}");
            whole.as_object_mut().unwrap().remove("document");
            assert!(!fits(&schema, &whole), "{text}");
        }
    }

    #[test]
    fn each_line_of_a_list_is_a_document() {
        let text = list_json(&[sample(), sample()]).unwrap();
        let mut whole: Value = serde_json::from_str(&text).unwrap();
        let schema = DocumentSchema::of_list::<Sample>();
        assert!(fits(&schema, &whole));
        assert!(fits(&schema, &json!([])));
        whole[1]["schema"] = json!(2);
        assert!(!fits(&schema, &whole));
        assert!(!fits(&schema, &whole[0]), "no list");
    }
}
