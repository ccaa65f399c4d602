//! The shipped JSON Schemas, and documents that are checked against them.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// The schemas that the program prints, ready to check documents.
pub struct Shipped {
    schemas: Schemas,
    by_name: BTreeMap<String, SchemaIndex>,
}

impl Shipped {
    /// Those of `whichfs manual schemas`.
    pub fn read() -> Shipped {
        let output = Command::new(env!("CARGO_BIN_EXE_whichfs"))
            .args(["manual", "schemas"])
            .output()
            .unwrap();
        let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let mut by_name = BTreeMap::new();
        for schema in all {
            let title = schema["title"].as_str().unwrap();
            let name = title.strip_prefix("whichfs ").unwrap().to_owned();
            let place = format!("{name}.json").replace(' ', "-");
            compiler.add_resource(&place, schema).unwrap();
            let index = compiler.compile(&place, &mut schemas);
            by_name.insert(name, index.unwrap_or_else(|error| panic!("{error:#}")));
        }
        Shipped { schemas, by_name }
    }

    /// The name of the document `text`, or of the first of a list, which fits its schema.
    ///
    /// # Errors
    /// Why it does not.
    pub fn check(&self, text: &str) -> Result<String, String> {
        let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let first = match &document {
            Value::Array(all) if all.is_empty() => return Ok("an empty list".to_owned()),
            Value::Array(all) => &all[0],
            one => one,
        };
        let name = first["document"]
            .as_str()
            .ok_or("it does not say its name")?;
        let index = self.by_name.get(name);
        let index = index.ok_or_else(|| format!("there is no schema of {name}"))?;
        let fits = self.schemas.validate(&document, *index);
        fits.map_err(|error| format!("{error:#}"))?;
        Ok(name.to_owned())
    }
}
