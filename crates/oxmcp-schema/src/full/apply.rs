//! Keywords that apply other schemas: to the same value, or to its members and items.

use serde_json::{Map, Value};

use crate::full::{
    at::{Here, Out, Position},
    failure::Detail,
    nodes::{Contains, DynamicRef, If, Items, Keyword, Members, NodeId, Rest},
    number::BYTES_PER_STEP,
    run::Run,
};

impl<'v> Run<'v> {
    pub(crate) fn of_object<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'v Keyword,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        match keyword {
            Keyword::Required(names) => self.required(here, ("required", names), map, out),
            Keyword::DependentRequired(all) => {
                let mut accepts = !self.spend(all.len());
                for (_, names) in all.iter().filter(|(name, _)| map.contains_key(name)) {
                    let names = ("dependentRequired", names.as_slice());
                    accepts &= self.required(here, names, map, out.again());
                }
                accepts
            }
            Keyword::DependentSchemas(all) => {
                self.spend(all.len());
                let all = all.iter().filter(|(name, _)| map.contains_key(name));
                self.all_of(all.map(|(_, id)| *id), here.at, out)
            }
            Keyword::PropertyNames(id) => self.names(here, *id, map, out),
            Keyword::Members(members) => self.members(here, members, map, out),
            Keyword::UnevaluatedProperties(rest) => self.unevaluated_members(here, *rest, map, out),
            _ => self.of_any(here, keyword, out),
        }
    }

    pub(crate) fn of_array<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'v Keyword,
        values: &'i [Value],
        out: Out<'_, 'v, 'i>,
    ) -> bool {
        match keyword {
            Keyword::Items(items) => self.items(here, items, values, out),
            Keyword::Contains(contains) => self.contains(here, contains, values, out),
            Keyword::UnevaluatedItems(id) => self.unevaluated_items(*id, here.at, values, out),
            _ => self.of_any(here, keyword, out),
        }
    }

    /// Checks a keyword that applies schemas to the same value, whatever its type.
    pub(crate) fn of_any<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'v Keyword,
        out: Out<'_, 'v, 'i>,
    ) -> bool {
        match keyword {
            Keyword::Ref(id) => self.node(*id, here.at, out),
            Keyword::DynamicRef(reference) => {
                let id = self.dynamic_target(reference);
                self.node(id, here.at, out)
            }
            Keyword::AllOf(ids) => self.all_of(ids.iter().copied(), here.at, out),
            Keyword::AnyOf(ids) => self.any_of(here, ids, out),
            Keyword::OneOf(ids) => self.one_of(here, ids, out),
            Keyword::Not(id) => {
                let accepts = !self.node(*id, here.at, Out::NOTHING);
                if !accepts {
                    self.report(here, "not", Detail::None, out);
                }
                accepts
            }
            Keyword::If(all) => self.condition(all, here.at, out),
            Keyword::Grammar(grammar) => self.grammar(here, grammar, out),
            // Keywords for other types of values are ignored.
            _ => true,
        }
    }

    pub(crate) fn dynamic_target(&mut self, reference: &DynamicRef) -> NodeId {
        let all = &reference.candidates;
        let mut looked_at = 0;
        let outermost = self.scope.iter().find_map(|resource| {
            looked_at += 1;
            let place = all.binary_search_by_key(resource, |(id, _)| *id).ok()?;
            all.get(place)
        });
        self.spend(looked_at);
        outermost.map_or(reference.otherwise, |(_, id)| *id)
    }

    fn all_of<'i>(
        &mut self,
        ids: impl Iterator<Item = NodeId>,
        at: &Position<'_, 'i>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for id in ids {
            accepts &= self.node(id, at, out.again());
            if !accepts && out.is_brief() {
                break;
            }
        }
        accepts
    }

    fn any_of<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        ids: &[NodeId],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = false;
        let mut all = Vec::new();
        let bytes_left = self.bytes_left;
        for id in ids {
            let mut wrong = Vec::new();
            accepts |= self.node(*id, here.at, out.apart(&mut wrong));
            // While evaluated members are collected, each alternative that accepts the value adds
            // its own.
            if accepts && out.evaluated.is_none() {
                break;
            }
            all.push(wrong);
        }
        if accepts {
            self.bytes_left = bytes_left;
        } else {
            self.report(here, "anyOf", Detail::Alternatives(all), out);
        }
        accepts
    }

    fn one_of<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        ids: &[NodeId],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut count = 0;
        let mut all = Vec::new();
        let bytes_left = self.bytes_left;
        for id in ids {
            let mut wrong = Vec::new();
            count += usize::from(self.node(*id, here.at, out.apart(&mut wrong)));
            all.push(wrong);
            if count > 1 {
                self.bytes_left = bytes_left;
                self.report(here, "oneOf", Detail::Several, out);
                return false;
            }
        }
        if count == 0 {
            self.report(here, "oneOf", Detail::Alternatives(all), out);
        } else {
            self.bytes_left = bytes_left;
        }
        count == 1
    }

    fn condition<'i>(&mut self, all: &If, at: &Position<'_, 'i>, mut out: Out<'_, 'v, 'i>) -> bool {
        let quiet = Out {
            found: None,
            evaluated: out.evaluated.as_deref_mut(),
        };
        let holds = self.node(all.condition, at, quiet);
        let consequence = if holds { all.then } else { all.otherwise };
        consequence.is_none_or(|id| self.node(id, at, out))
    }
}

/// The maximum number of names in one failure.
const MAX_NAMES: usize = 17;

impl<'v> Run<'v> {
    pub(crate) fn required<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        (keyword, names): (&'static str, &'v [String]),
        map: &Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = !self.spend(names.len());
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            accepts = false;
            self.report(here, keyword, Detail::Missing(name), out.again());
        }
        accepts
    }

    pub(crate) fn names<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        id: NodeId,
        map: &Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for name in map.keys() {
            if self.spend(name.len() / BYTES_PER_STEP) {
                return false;
            }
            let name = Value::String(name.clone());
            let mut wrong = Vec::new();
            let wanted = Out {
                found: (!out.is_enough()).then_some(&mut wrong),
                evaluated: None,
            };
            if self.node(id, &Position::root(&name), wanted) {
                continue;
            }
            accepts = false;
            if out.is_enough() || self.is_exhausted {
                break;
            }
            if let Some(failure) = wrong.into_iter().next() {
                let detail = Detail::Name(Box::new(failure.into_owned()));
                self.report(here, "propertyNames", detail, out.again());
            }
        }
        accepts
    }

    pub(crate) fn members<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        members: &Members,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        let mut unexpected = Vec::new();
        for (index, (name, value)) in map.iter().enumerate() {
            let at = here.at.member(name, value);
            let mut is_named = false;
            if let Some(id) = members.named.get(name) {
                is_named = true;
                accepts &= self.node(*id, &at, out.within());
            }
            for (pattern, id) in &members.patterns {
                if self.matches(pattern, name) {
                    is_named = true;
                    accepts &= self.node(*id, &at, out.within());
                }
            }
            match members.rest {
                Some(Rest::Refused) if !is_named => unexpected.push(name),
                Some(Rest::Checked(id)) if !is_named => {
                    accepts &= self.node(id, &at, out.within());
                }
                _ => {}
            }
            if is_named || members.rest.is_some() {
                out.mark(index);
            }
            let is_wrong = !accepts || !unexpected.is_empty();
            if is_wrong && out.is_enough() || self.spend(1 + name.len() / BYTES_PER_STEP) {
                return false;
            }
        }
        if !unexpected.is_empty() {
            self.report(here, "additionalProperties", names_of(&unexpected), out);
            return false;
        }
        accepts
    }

    pub(crate) fn items<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        items: &Items,
        values: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        if items.is_closed && values.len() > items.first.len() {
            self.report(here, "additionalItems", Detail::None, out);
            return false;
        }
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            let Some(id) = items.first.get(index).copied().or(items.rest) else {
                break;
            };
            accepts &= self.node(id, &here.at.item(index, value), out.within());
            if !accepts && out.is_enough() || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    pub(crate) fn contains<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        contains: &Contains,
        values: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut count = 0;
        for (index, value) in values.iter().enumerate() {
            if self.node(contains.item, &here.at.item(index, value), Out::NOTHING) {
                count += 1;
                if contains.evaluated {
                    out.mark(index);
                }
            }
        }
        let keyword = if count < contains.least {
            "contains"
        } else if contains.most.is_some_and(|most| count > most) {
            "maxContains"
        } else {
            return true;
        };
        self.report(here, keyword, Detail::None, out);
        false
    }

    pub(crate) fn unevaluated_items<'i>(
        &mut self,
        id: NodeId,
        at: &Position<'_, 'i>,
        values: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            if out
                .evaluated
                .as_ref()
                .is_some_and(|evaluated| evaluated.has(index))
            {
                continue;
            }
            accepts &= self.node(id, &at.item(index, value), out.within());
            if !accepts && out.is_enough() || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    pub(crate) fn unevaluated_members<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        rest: Rest,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        let mut unexpected = Vec::new();
        for (index, (name, value)) in map.iter().enumerate() {
            if out
                .evaluated
                .as_ref()
                .is_some_and(|evaluated| evaluated.has(index))
            {
                continue;
            }
            match rest {
                Rest::Refused => unexpected.push(name),
                Rest::Checked(id) => {
                    accepts &= self.node(id, &here.at.member(name, value), out.within());
                }
            }
            let is_wrong = !accepts || !unexpected.is_empty();
            if is_wrong && out.is_enough() || self.spend(1) {
                return false;
            }
            out.mark(index);
        }
        if !unexpected.is_empty() {
            self.report(here, "unevaluatedProperties", names_of(&unexpected), out);
            return false;
        }
        accepts
    }
}

fn names_of<'v, 'i>(names: &[&'i String]) -> Detail<'v, 'i> {
    let names = names.iter().take(MAX_NAMES);
    Detail::Unexpected(names.map(|name| name.as_str().into()).collect())
}
