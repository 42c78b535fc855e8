//! Keywords that apply other schemas to the members and items of a value.

use serde_json::{Map, Value};

use crate::full::{
    at::{At, Here, Out},
    compile::{Contains, Items, Members, NodeId, Rest},
    failure::Detail,
    run::{BYTES_PER_STEP, Run},
};

/// How many names are told in one failure.
const MAX_NAMES: usize = 17;

impl<'v> Run<'v> {
    pub(super) fn required<'i>(
        &mut self,
        here: Here<'_, 'v, 'i>,
        (keyword, names): (&'static str, &'v [String]),
        map: &Map<String, Value>,
        mut out: Out<'_, 'v, 'i>,
    ) -> bool {
        let mut accepts = !self.spend(names.len());
        for name in names.iter().filter(|name| !map.contains_key(*name)) {
            accepts = false;
            self.tell(here, keyword, Detail::Missing(name), out.again());
        }
        accepts
    }

    pub(super) fn names<'i>(
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
                marks: None,
            };
            if self.node(id, &At::root(&name), wanted) {
                continue;
            }
            accepts = false;
            if out.is_enough() || self.is_exhausted {
                break;
            }
            if let Some(failure) = wrong.into_iter().next() {
                let detail = Detail::Name(Box::new(failure.into_owned()));
                self.tell(here, "propertyNames", detail, out.again());
            }
        }
        accepts
    }

    pub(super) fn members<'i>(
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
            self.tell(here, "additionalProperties", names_of(&unexpected), out);
            return false;
        }
        accepts
    }

    pub(super) fn items<'i>(
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
            if !accepts && out.is_enough() || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    pub(super) fn contains<'i>(
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

    pub(super) fn unevaluated_items<'i>(
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
            if !accepts && out.is_enough() || self.is_exhausted {
                return false;
            }
            out.mark(index);
        }
        accepts
    }

    pub(super) fn unevaluated_members<'i>(
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
            let is_wrong = !accepts || !unexpected.is_empty();
            if is_wrong && out.is_enough() || self.spend(1) {
                return false;
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

fn names_of<'v, 'i>(names: &[&'i String]) -> Detail<'v, 'i> {
    let names = names.iter().take(MAX_NAMES);
    Detail::Unexpected(names.map(|name| name.as_str().into()).collect())
}
