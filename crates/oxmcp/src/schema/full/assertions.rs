//! The keywords that say something of a value by itself, compiled.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::{
    dialect::Dialect,
    keywords::Keywords,
    number::{self, Decimal},
    validator::{Accepts, Keyword},
};
use crate::{
    error::Result,
    schema::check::{kind, kind_of},
};

impl Keywords<'_, '_> {
    pub(super) fn values(&self) -> Result<Vec<Keyword>> {
        let mut found = Vec::new();
        if let Some(value) = self.map.get("type") {
            let kinds = match value {
                Value::String(name) => kind_of(name),
                Value::Array(names) => names
                    .iter()
                    .try_fold(0, |kinds, name| Some(kinds | kind_of(name.as_str()?)?)),
                _ => None,
            };
            found.push(Keyword::Kinds(kinds.ok_or_else(|| self.misplaced("type"))?));
        }
        if let Some(values) = self.map.get("enum") {
            let values = values.as_array().ok_or_else(|| self.misplaced("enum"))?;
            let values = number::sorted(values, &mut 0).into_iter().cloned();
            found.push(Keyword::Values("enum", values.collect()));
        }
        if let Some(value) = self.get("const", Dialect::Draft06) {
            found.push(Keyword::Values("const", vec![value.clone()]));
        }
        Ok(found)
    }

    pub(super) fn limits(&self) -> Result<Vec<Keyword>> {
        const LIMITS: [(&str, &str, Accepts, Accepts); 2] = [
            (
                "minimum",
                "exclusiveMinimum",
                Ordering::is_ge,
                Ordering::is_gt,
            ),
            (
                "maximum",
                "exclusiveMaximum",
                Ordering::is_le,
                Ordering::is_lt,
            ),
        ];
        let mut found = Vec::new();
        for (inclusive, exclusive, reaches, passes) in LIMITS {
            let limit = self.number(inclusive)?;
            if self.dialect == Dialect::Draft04 {
                // There, the second only says how the first is meant.
                let is_exclusive = self.map.get(exclusive) == Some(&Value::Bool(true));
                let accepts = if is_exclusive { passes } else { reaches };
                found.extend(limit.map(|it| Keyword::Limit(inclusive, accepts, it)));
                continue;
            }
            found.extend(limit.map(|it| Keyword::Limit(inclusive, reaches, it)));
            let limit = self.number(exclusive)?;
            found.extend(limit.map(|it| Keyword::Limit(exclusive, passes, it)));
        }
        if let Some(divisor) = self.number("multipleOf")? {
            let divisor = Decimal::new(&divisor).ok_or_else(|| self.misplaced("multipleOf"))?;
            found.push(Keyword::MultipleOf(divisor));
        }
        Ok(found)
    }

    fn number(&self, keyword: &str) -> Result<Option<Number>> {
        match self.map.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(number.clone())),
            Some(_) => Err(self.misplaced(keyword)),
        }
    }

    pub(super) fn counts(&self) -> Result<Vec<Keyword>> {
        const COUNTS: [(&str, u8, Accepts); 6] = [
            ("minLength", kind::STRING, Ordering::is_ge),
            ("maxLength", kind::STRING, Ordering::is_le),
            ("minItems", kind::ARRAY, Ordering::is_ge),
            ("maxItems", kind::ARRAY, Ordering::is_le),
            ("minProperties", kind::OBJECT, Ordering::is_ge),
            ("maxProperties", kind::OBJECT, Ordering::is_le),
        ];
        let mut found = Vec::new();
        for (keyword, of, accepts) in COUNTS {
            let limit = self.count(keyword, Dialect::Draft04)?;
            found.extend(limit.map(|limit| Keyword::Count(keyword, of, accepts, limit)));
        }
        if self.map.get("uniqueItems") == Some(&Value::Bool(true)) {
            found.push(Keyword::UniqueItems);
        }
        Ok(found)
    }

    pub(super) fn text(&mut self) -> Result<Option<Keyword>> {
        match self.map.get("pattern") {
            None => Ok(None),
            Some(Value::String(pattern)) => {
                Ok(Some(Keyword::Pattern(self.pattern("pattern", pattern)?)))
            }
            Some(_) => Err(self.misplaced("pattern")),
        }
    }
}
