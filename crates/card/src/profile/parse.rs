//! Reading a profile: every mistake is named with its line, its key and what is legal.

use super::{Family, Interface, Profile};
use crate::families::{FamilyFigures, specs};
use crate::figures::{CardFigures, Figure, Kind, Spec};
use crate::limits::{COMPOSED_PERCENT, MEASURED_PERCENT};
use crate::residual::{FACTOR_PERCENT, Residual};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use whichfs_units::{hint, wanted};

/// Why a file is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {key}: found {found}; {}", wanted(.expected))]
pub struct ProfileError {
    /// File name as given.
    pub file: String,
    /// Line, counted from one.
    pub line: usize,
    /// Key with its section, or `profile` for the file as a whole.
    pub key: String,
    /// What is there.
    pub found: String,
    /// What is legal.
    pub expected: String,
}

/// Beyond a factor of ten a figure says nothing.
const UNCERTAINTY_MAX: u64 = 900;

impl Profile {
    /// Reads a profile from the text of a TOML file.
    ///
    /// # Errors
    /// Anything missing, unknown, negative, not a whole number or out of its range, with
    /// file, line, key, what was found and what is legal.
    pub fn parse(file_name: &str, toml: &str) -> Result<Profile, ProfileError> {
        let reader = Reader {
            file: file_name,
            text: toml,
        };
        let root = DeTable::parse(toml).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            reader.error(span, "profile", error.message(), "TOML")
        })?;
        reader.profile(root.get_ref())
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

type Table<'a> = DeTable<'a>;
type Value<'a> = Spanned<DeValue<'a>>;

/// Where each figure stands, for complaints about figures that do not fit together.
type Spans = BTreeMap<&'static str, Range<usize>>;

impl Reader<'_> {
    fn profile(&self, root: &Table) -> Result<Profile, ProfileError> {
        let family = self.named(root, "family", &Family::NAMES)?;
        let interface = self.named(root, "interface", &Interface::NAMES)?;
        let title = self.text(root, "title", "profile", "title")?;
        let composed = match root.get("composed").map(|value| (value, value.get_ref())) {
            None => false,
            Some((_, DeValue::Boolean(composed))) => *composed,
            Some((value, _)) => return Err(self.wrong(value, "composed", "true or false")),
        };
        // Where neither the figure nor the file states an uncertainty.
        let default = if composed {
            COMPOSED_PERCENT
        } else {
            MEASURED_PERCENT
        };
        let key = "uncertainty_percent";
        let uncertainty = match root.get(key) {
            None => default,
            Some(value) => self.integer(value, key, 0, UNCERTAINTY_MAX)?,
        };
        let fit_error = match root.get("fit_error") {
            None => None,
            Some(_) => Some(self.text(root, "fit_error", "fit_error", "fit error")?),
        };
        self.refuse_unknown(root, family)?;
        let mut spans = Spans::new();
        let mut read = |spec| self.figure(root, spec, uncertainty, &mut spans);
        let profile = Profile {
            title,
            interface,
            composed,
            fit_error,
            common: CardFigures::read(&mut read)?,
            own: FamilyFigures::read(family, &mut read)?,
            residual: self.residual(root)?,
        };
        profile.check_shape().map_err(|(path, found)| {
            let span = spans.get(path).cloned().unwrap_or(0..0);
            self.error(span, path, &found, "figures that fit together")
        })?;
        Ok(profile)
    }

    fn figure(
        &self,
        root: &Table,
        spec: &'static Spec,
        uncertainty: u64,
        spans: &mut Spans,
    ) -> Result<Figure, ProfileError> {
        let (section, key) = spec.names();
        let range = format!("a whole number from {} to {}", spec.min, spec.max);
        let section = match root.get(section) {
            None => None,
            Some(value) => Some(self.table(value, section)?),
        };
        let Some(stated) = section.and_then(|table| table.get(key)) else {
            let (source, own) = spec.assumed.unzip();
            let varies = |value| Figure {
                path: spec.path,
                value,
                source: source.map(str::to_owned),
                uncertainty_percent: if spec.kind == Kind::Varied {
                    own.unwrap_or(uncertainty)
                } else {
                    0
                },
                spec,
            };
            let place = root
                .get_key_value(spec.names().0)
                .map_or(0..0, |(name, _)| name.span());
            let missing = || self.error(place, spec.path, "nothing", &range);
            return spec.default.map(varies).ok_or_else(missing);
        };
        spans.insert(spec.path, stated.span());
        let table = self.table(stated, spec.path)?;
        for name in table.keys() {
            if !["value", "source", "uncertainty_percent"].contains(&name.get_ref().as_ref()) {
                let found = format!("the unknown key `{}`", name.get_ref());
                let legal = "value, source, uncertainty_percent";
                return Err(self.error(name.span(), spec.path, &found, legal));
            }
        }
        let Some(value) = table.get("value") else {
            return Err(self.error(stated.span(), spec.path, "no value", &range));
        };
        let value = self.integer(value, spec.path, spec.min, spec.max)?;
        let source = self.text(table, "source", spec.path, "source")?;
        let own = match table.get("uncertainty_percent") {
            None => uncertainty,
            Some(value) => self.integer(value, spec.path, 0, UNCERTAINTY_MAX)?,
        };
        let uncertainty_percent = if spec.kind == Kind::Varied { own } else { 0 };
        Ok(Figure {
            path: spec.path,
            value,
            source: Some(source),
            uncertainty_percent,
            spec,
        })
    }

    /// The residual, if the file has one.
    fn residual(&self, root: &Table) -> Result<Option<Residual>, ProfileError> {
        const NAME: &str = "residual";
        let Some((name, value)) = root.get_key_value(NAME) else {
            return Ok(None);
        };
        let table = self.table(value, NAME)?;
        let keys = [
            "source",
            "uncertainty_percent",
            "block_bytes",
            "in_order",
            "at_random",
        ];
        if let Some((key, _)) = table
            .iter()
            .find(|(key, _)| !keys.contains(&key.get_ref().as_ref()))
        {
            let path = format!("{NAME}.{}", key.get_ref());
            let legal = hint(key.get_ref(), &keys, Some("docs/cards.md"));
            return Err(self.error(key.span(), &path, "an unknown key", &legal));
        }
        let stated = |key: &str| {
            let path = format!("{NAME}.{key}");
            let missing = || self.error(name.span(), &path, "nothing", "a list");
            table.get(key).ok_or_else(missing)
        };
        let factors = |key: &str| {
            let path = format!("{NAME}.{key}");
            let (least, most) = (*FACTOR_PERCENT.start(), *FACTOR_PERCENT.end());
            let rows = self.list(stated(key)?, &path)?.iter();
            let rows = rows.map(|row| self.integers(row, &path, least, most));
            rows.collect::<Result<Vec<_>, _>>()
        };
        let uncertainty = "uncertainty_percent";
        let residual = Residual {
            source: self.text(table, "source", NAME, "source")?,
            uncertainty_percent: match table.get(uncertainty) {
                Some(value) => {
                    let path = format!("{NAME}.{uncertainty}");
                    self.integer(value, &path, 0, UNCERTAINTY_MAX)?
                }
                None => 0,
            },
            block_bytes: self.integers(
                stated("block_bytes")?,
                "residual.block_bytes",
                512,
                1 << 30,
            )?,
            in_order: factors("in_order")?,
            at_random: factors("at_random")?,
        };
        residual.check().map_err(|(key, found)| {
            let path = format!("{NAME}.{key}");
            let span = table.get(key).map_or(name.span(), Spanned::span);
            self.error(span, &path, &found, "a table as docs/cards.md shows")
        })?;
        Ok(Some(residual))
    }

    /// Unknown sections and keys are typing errors that would silently mean the default.
    /// What is known of the card beside its figures, `[knowledge]`, is for others to read.
    fn refuse_unknown(&self, root: &Table, family: Family) -> Result<(), ProfileError> {
        /// Where all keys are listed.
        const KEYS: Option<&str> = Some("docs/cards.md");
        const TOP: [&str; 8] = [
            "knowledge",
            "residual",
            "title",
            "fit_error",
            "family",
            "interface",
            "composed",
            "uncertainty_percent",
        ];
        let known = || specs(family);
        for (name, value) in root.iter() {
            let section = name.get_ref().as_ref();
            if TOP.contains(&section) {
                continue;
            }
            let mut keys: Vec<&str> = known()
                .map(Spec::names)
                .filter(|(s, _)| *s == section)
                .map(|(_, k)| k)
                .collect();
            if keys.is_empty() {
                let mut sections: Vec<&str> = known().map(|spec| spec.names().0).collect();
                sections.dedup();
                sections.extend(TOP);
                let legal = hint(section, &sections, KEYS);
                return Err(self.error(name.span(), section, "an unknown name", &legal));
            }
            for (key, _) in self.table(value, section)?.iter() {
                if !keys.contains(&key.get_ref().as_ref()) {
                    keys.sort_unstable();
                    let path = format!("{section}.{}", key.get_ref());
                    let legal = hint(key.get_ref(), &keys, KEYS);
                    return Err(self.error(key.span(), &path, "an unknown key", &legal));
                }
            }
        }
        Ok(())
    }

    fn named<T: Copy>(
        &self,
        root: &Table,
        key: &str,
        names: &[(&str, T)],
    ) -> Result<T, ProfileError> {
        let legal = names
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ");
        let expected = format!("one of {legal}");
        let Some(value) = root.get(key) else {
            return Err(self.error(0..0, key, "nothing", &expected));
        };
        let found = value
            .get_ref()
            .as_str()
            .and_then(|text| names.iter().find(|n| n.0 == text));
        found
            .map(|(_, item)| *item)
            .ok_or_else(|| self.wrong(value, key, &expected))
    }

    fn text(
        &self,
        table: &Table,
        name: &str,
        owner: &str,
        what: &str,
    ) -> Result<String, ProfileError> {
        let expected = format!("a {what} in words");
        let Some(value) = table.get(name) else {
            let line = table.values().next().map_or(0..0, Spanned::span);
            return Err(self.error(line, owner, &format!("no {name}"), &expected));
        };
        match value.get_ref().as_str().map(str::trim) {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(self.wrong(value, owner, &expected)),
        }
    }

    fn integer(&self, value: &Value, key: &str, min: u64, max: u64) -> Result<u64, ProfileError> {
        let expected = format!("a whole number from {min} to {max}");
        let wrong = || self.wrong(value, key, &expected);
        let integer = value.get_ref().as_integer().ok_or_else(wrong)?;
        let parsed = u64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| wrong())?;
        if (min..=max).contains(&parsed) {
            Ok(parsed)
        } else {
            Err(wrong())
        }
    }

    fn integers(
        &self,
        value: &Value,
        key: &str,
        min: u64,
        max: u64,
    ) -> Result<Vec<u64>, ProfileError> {
        let items = self.list(value, key)?.iter();
        items
            .map(|item| self.integer(item, key, min, max))
            .collect()
    }

    fn list<'v, 'i>(
        &self,
        value: &'v Value<'i>,
        key: &str,
    ) -> Result<&'v [Value<'i>], ProfileError> {
        let list = value.get_ref().as_array();
        list.map(|list| &list[..])
            .ok_or_else(|| self.wrong(value, key, "a list, as in [100, 97]"))
    }

    fn table<'v, 'i>(
        &self,
        value: &'v Value<'i>,
        key: &str,
    ) -> Result<&'v Table<'i>, ProfileError> {
        let expected = "a table, as in { value = 16384, source = \"…\" }";
        value
            .get_ref()
            .as_table()
            .ok_or_else(|| self.wrong(value, key, expected))
    }

    /// Complains about `value`, quoting it as it stands in the file.
    fn wrong(&self, value: &Value, key: &str, expected: &str) -> ProfileError {
        let quoted: String = self.text[value.span()].chars().take(60).collect();
        self.error(value.span(), key, &format!("`{quoted}`"), expected)
    }

    fn error(&self, span: Range<usize>, key: &str, found: &str, expected: &str) -> ProfileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        ProfileError {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            key: key.to_owned(),
            found: found.trim().to_owned(),
            expected: expected.to_owned(),
        }
    }
}
