//! The keywords that apply other schemas, to the value or to what is within it.

use serde_json::{Map, Value};

use super::{
    at::{At, Here, Out},
    offence::Detail,
    run::{MAX_OFFENCES, Run},
    validator::{Contains, DynamicRef, If, Items, Keyword, Members, NodeId, Rest},
};

/// How many names are told in one offence.
const MAX_NAMES: usize = 17;

impl<'v> Run<'v> {
    pub(super) fn of_object<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        keyword: &'v Keyword,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        match keyword {
            Keyword::Required(names) => self.required(here, names, map, out),
            Keyword::DependentRequired(all) => {
                let mut accepts = true;
                for (_, names) in all.iter().filter(|(name, _)| map.contains_key(name)) {
                    accepts &= self.required(here, names, map, out.again());
                }
                accepts
            }
            Keyword::DependentSchemas(all) => {
                let all = all.iter().filter(|(name, _)| map.contains_key(name));
                self.all_of(all.map(|(_, id)| *id), here.at, out)
            }
            Keyword::PropertyNames(id) => self.names(here, *id, map, out),
            Keyword::Members(members) => self.members(here, members, map, out),
            Keyword::UnevaluatedProperties(rest) => self.unevaluated_members(here, *rest, map, out),
            _ => self.of_any(here, keyword, out),
        }
    }

    pub(super) fn of_array<'i>(
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

    /// The keywords that apply schemas to the same value, whatever it is.
    pub(super) fn of_any<'i>(
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
                    self.tell(here, "not", Detail::None, out);
                }
                accepts
            }
            Keyword::If(all) => self.condition(all, here.at, out),
            // What is about other kinds of values says nothing.
            _ => true,
        }
    }

    fn required<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        names: &'v [String],
        map: &Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = !self.spend(names.len());
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            accepts = false;
            self.tell(here, "required", Detail::Missing(name), out.again());
        }
        accepts
    }

    fn names<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        id: NodeId,
        map: &Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for name in map.keys() {
            let name = Value::String(name.clone());
            let mut wrong = Vec::new();
            let wanted = Out {
                found: out.found.is_some().then_some(&mut wrong),
                marks: None,
            };
            if self.node(id, &At::root(&name), wanted) {
                continue;
            }
            accepts = false;
            if out.is_brief() || self.is_exhausted {
                break;
            }
            if let Some(offence) = wrong.into_iter().next() {
                let detail = Detail::Name(Box::new(offence.into_owned()));
                self.tell(here, "propertyNames", detail, out.again());
            }
        }
        accepts
    }

    fn members<'i>(
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
            if is_wrong && out.is_brief() || self.is_exhausted {
                return false;
            }
        }
        if !unexpected.is_empty() {
            self.tell(here, "additionalProperties", names_of(&unexpected), out);
            return false;
        }
        accepts
    }

    fn items<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        items: &Items,
        values: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        if items.is_closed && values.len() > items.first.len() {
            self.tell(here, "additionalItems", Detail::None, out);
            return false;
        }
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            let Some(id) = items.first.get(index).copied().or(items.rest) else {
                break;
            };
            accepts &= self.node(id, &here.at.item(index, value), out.within());
            if !accepts && is_enough(&out) || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    fn contains<'i>(
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
                if contains.marks {
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
        self.tell(here, keyword, Detail::None, out);
        false
    }

    fn dynamic_target(&self, reference: &DynamicRef) -> NodeId {
        let outermost = self.scope.iter().find_map(|resource| {
            let mut candidates = reference.candidates.iter();
            candidates.find(|(id, _)| id == resource)
        });
        outermost.map_or(reference.otherwise, |(_, id)| *id)
    }

    fn all_of<'i>(
        &mut self,
        ids: impl Iterator<Item = NodeId>,
        at: &At<'_, 'i>,
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
        for id in ids {
            let mut wrong = Vec::new();
            accepts |= self.node(*id, here.at, out.apart(&mut wrong));
            // Where somebody wants to know what has been evaluated, each alternative that fits says so.
            if accepts && out.marks.is_none() {
                return true;
            }
            all.push(wrong);
        }
        if !accepts {
            self.tell(here, "anyOf", Detail::Alternatives(all), out);
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
        for id in ids {
            let mut wrong = Vec::new();
            count += usize::from(self.node(*id, here.at, out.apart(&mut wrong)));
            all.push(wrong);
            if count > 1 {
                self.tell(here, "oneOf", Detail::Several, out);
                return false;
            }
        }
        if count == 0 {
            self.tell(here, "oneOf", Detail::Alternatives(all), out);
        }
        count == 1
    }

    fn condition<'i>(&mut self, all: &If, at: &At<'_, 'i>, mut out: Out<'_, 'v, 'i>) -> bool {
        let quiet = Out {
            found: None,
            marks: out.marks.as_deref_mut(),
        };
        let holds = self.node(all.condition, at, quiet);
        let consequence = if holds { all.then } else { all.otherwise };
        consequence.is_none_or(|id| self.node(id, at, out))
    }

    fn unevaluated_items<'i>(
        &mut self,
        id: NodeId,
        at: &At<'_, 'i>,
        values: &'i [Value],
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        for (index, value) in values.iter().enumerate() {
            if out.marks.as_ref().is_some_and(|marks| marks.has(index)) {
                continue;
            }
            accepts &= self.node(id, &at.item(index, value), out.within());
            if !accepts && is_enough(&out) || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    fn unevaluated_members<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        rest: Rest,
        map: &'i Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = true;
        let mut unexpected = Vec::new();
        for (index, (name, value)) in map.iter().enumerate() {
            if out.marks.as_ref().is_some_and(|marks| marks.has(index)) {
                continue;
            }
            match rest {
                Rest::Refused => unexpected.push(name),
                Rest::Checked(id) => {
                    accepts &= self.node(id, &here.at.member(name, value), out.within());
                }
            }
            out.mark(index);
        }
        if !unexpected.is_empty() {
            self.tell(here, "unevaluatedProperties", names_of(&unexpected), out);
            return false;
        }
        accepts
    }
}

/// Whether nothing is gained by looking further.
fn is_enough(out: &Out<'_, '_, '_>) -> bool {
    let found = out.found.as_ref();
    found.is_none_or(|found| found.len() >= MAX_OFFENCES)
}

fn names_of<'v, 'i>(names: &[&String]) -> Detail<'v, 'i> {
    let names = names.iter().take(MAX_NAMES);
    Detail::Unexpected(names.map(|name| (*name).clone()).collect())
}
