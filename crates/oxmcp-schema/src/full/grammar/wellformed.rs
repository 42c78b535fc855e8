//! Validation of a schema as a value: the value of each keyword must have the form that its dialect requires.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::{
    fast::check::kind,
    full::{
        at::{Here, Out},
        dialect::Dialect,
        failure::{Detail, Misfit},
        grammar::table::{self, KINDS, Shape},
        nodes::{Accepts, Grammar},
        number,
        run::{self, Run},
    },
};

/// The form that a value is checked against, with the keyword that has the value, if any.
#[derive(Clone, Copy)]
struct Slot<'v> {
    grammar: &'v Grammar,
    keyword: Option<&'static str>,
    shape: Shape,
}

impl Slot<'_> {
    fn of(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }
}

impl<'v> Run<'v> {
    pub(crate) fn grammar<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        grammar: &'v Grammar,
        out: Out<'_, 'v, 'i>,
    ) -> bool {
        let slot = Slot {
            grammar,
            keyword: None,
            shape: grammar.shape,
        };
        match (grammar.shape, here.at.value) {
            (Shape::Schema, Value::Object(map)) => self.keywords(here, grammar, map, out),
            (Shape::Schema, value) => {
                let is_right = value.is_boolean() && grammar.dialect.has_boolean_schemas();
                self.fits(is_right, here, slot, out)
            }
            _ => self.shape(here, slot, out),
        }
    }

    fn keywords<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        grammar: &'v Grammar,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = !self.spend(map.len());
        for (index, (name, value)) in map.iter().enumerate() {
            let Some((keyword, shape)) = table::keyword(grammar.dialect, name) else {
                continue;
            };
            let slot = Slot {
                grammar,
                keyword: Some(keyword),
                shape,
            };
            let at = here.at.member(name, value);
            accepts &= self.shape(Here { at: &at, ..here }, slot, out.within());
            out.mark(index);
            if !accepts && out.is_brief() || self.is_exhausted {
                return false;
            }
        }
        if grammar.dialect > Dialect::Draft04 {
            return accepts;
        }
        // In this dialect, the one keyword modifies the other.
        let pairs = [
            ("exclusiveMinimum", "minimum"),
            ("exclusiveMaximum", "maximum"),
        ];
        for (flag, limit) in pairs {
            if map.contains_key(flag) && !map.contains_key(limit) {
                accepts = false;
                let missing = Detail::Missing(limit);
                self.report(here, "dependentRequired", missing, out.again());
            }
        }
        accepts
    }

    fn shape<'i>(&mut self, here: Here<'_, 'v, 'i>, slot: Slot<'v>, out: Out<'_, 'v, 'i>) -> bool {
        use Shape::{
            Dependencies, Flag, Kind, Kinds, NamedFlags, NamedNames, NamedSchemas, Names, Schema,
            SchemaOrFlag, SchemaOrNames, SchemaOrSchemas, Schemas, Text,
        };
        if self.spend(1) {
            return false;
        }
        match (slot.shape, here.at.value) {
            (Kinds | Names | Schemas | SchemaOrSchemas, Value::Array(items))
                if items.is_empty() && !may_be_empty(slot) =>
            {
                self.fits(false, here, slot, out)
            }
            (Kinds, Value::Array(names)) => self.different(here, slot.of(Kind), names, out),
            (Names, Value::Array(names)) => self.different(here, slot.of(Text), names, out),
            (Schemas | SchemaOrSchemas, Value::Array(schemas)) => {
                self.each(here, slot.of(Schema), schemas, out)
            }
            (NamedNames, Value::Object(map)) => self.named(here, slot.of(Names), map, out),
            (NamedFlags, Value::Object(map)) => self.named(here, slot.of(Flag), map, out),
            (NamedSchemas, Value::Object(map)) => self.named(here, slot.of(Schema), map, out),
            (Dependencies, Value::Object(map)) => {
                self.named(here, slot.of(SchemaOrNames), map, out)
            }
            (SchemaOrNames, Value::Array(_)) => self.shape(here, slot.of(Names), out),
            (SchemaOrFlag, Value::Bool(_)) => true,
            (Schema | SchemaOrSchemas | SchemaOrFlag | SchemaOrNames, _) => {
                self.schema(here, slot, out)
            }
            _ => {
                let is_right = is_right(here, slot);
                self.fits(is_right, here, slot, out)
            }
        }
    }

    /// Checks a schema within a schema.
    fn schema<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        slot: Slot<'v>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let id = self.dynamic_target(&slot.grammar.schema);
        let value = here.at.value;
        if value.is_object() || value.is_boolean() && slot.grammar.dialect.has_boolean_schemas() {
            return self.node(id, here.at, out.within());
        }
        // The failure is reported for the keyword, which may allow other forms, too.
        let is_right = self.node(id, here.at, Out::NOTHING);
        self.fits(is_right, here, slot, out)
    }

    fn each<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        slot: Slot<'v>,
        items: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for (index, value) in items.iter().enumerate() {
            let at = here.at.item(index, value);
            accepts &= self.shape(Here { at: &at, ..here }, slot, out.within());
            if !accepts && out.is_brief() || self.is_exhausted {
                return false;
            }
        }
        accepts
    }

    /// Checks items of which no two may be equal.
    fn different<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        slot: Slot<'v>,
        items: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let accepts = self.each(here, slot, items, out.within());
        if accepts && !self.are_unique(items) {
            self.report(here, "uniqueItems", Detail::None, out);
            return false;
        }
        accepts
    }

    fn named<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        slot: Slot<'v>,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for (name, value) in map {
            let at = here.at.member(name, value);
            accepts &= self.shape(Here { at: &at, ..here }, slot, out.within());
            if !accepts && out.is_brief() || self.is_exhausted {
                return false;
            }
        }
        accepts
    }

    fn fits<'i>(
        &mut self,
        is_right: bool,
        here: Here<'_, 'v, 'i>,
        slot: Slot<'v>,
        out: Out<'_, 'v, 'i>,
    ) -> bool {
        if !is_right {
            let misfit = Misfit {
                dialect: slot.grammar.dialect,
                keyword: slot.keyword,
                shape: slot.shape,
            };
            // It is reported for `type`, so that among several alternatives the value counts as one of
            // another type.
            self.report(here, "type", Detail::Misfit(misfit), out);
        }
        is_right
    }
}

/// Whether an array of this form may be empty.
fn may_be_empty(slot: Slot<'_>) -> bool {
    slot.shape == Shape::Names && slot.grammar.dialect > Dialect::Draft04
}

/// Whether a value has a form that does not depend on nested values.
fn is_right(here: Here<'_, '_, '_>, slot: Slot<'_>) -> bool {
    let value = here.at.value;
    match slot.shape {
        Shape::Anything => true,
        Shape::Text => value.is_string(),
        Shape::Id => value.as_str().is_some_and(table::is_id),
        Shape::Anchor => {
            let name = value.as_str();
            name.is_some_and(|name| table::is_anchor(slot.grammar.dialect, name))
        }
        Shape::Flag => value.is_boolean(),
        Shape::Number => value.is_number(),
        Shape::Positive => is_above(value, Ordering::is_gt),
        Shape::Count => {
            run::kind_of(here.node, value) == kind::INTEGER && is_above(value, Ordering::is_ge)
        }
        Shape::Array => value.is_array(),
        Shape::Kind | Shape::Kinds => value.as_str().is_some_and(|name| KINDS.contains(&name)),
        _ => false,
    }
}

/// Whether a value is a number whose comparison with zero is accepted.
fn is_above(value: &Value, accepts: Accepts) -> bool {
    let zero = Number::from(0);
    let number = value.as_number();
    number.is_some_and(|number| accepts(number::compare(number, &zero)))
}
