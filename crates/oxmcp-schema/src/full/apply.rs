//! Keywords that apply other schemas to the same value.

use serde_json::{Map, Value};

use crate::full::{
    at::{At, Here, Out},
    compile::{DynamicRef, If, Keyword, NodeId},
    failure::Detail,
    run::Run,
};

impl<'v> Run<'v> {
    pub(super) fn of_object<'i>(
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
            Keyword::Grammar(grammar) => self.grammar(here, grammar, out),
            // What is about other kinds of values says nothing.
            _ => true,
        }
    }

    pub(super) fn dynamic_target(&mut self, reference: &DynamicRef) -> NodeId {
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
        let room = self.room;
        for id in ids {
            let mut wrong = Vec::new();
            accepts |= self.node(*id, here.at, out.apart(&mut wrong));
            // Where somebody wants to know what has been evaluated, each alternative that fits says so.
            if accepts && out.marks.is_none() {
                break;
            }
            all.push(wrong);
        }
        if accepts {
            self.room = room;
        } else {
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
        let room = self.room;
        for id in ids {
            let mut wrong = Vec::new();
            count += usize::from(self.node(*id, here.at, out.apart(&mut wrong)));
            all.push(wrong);
            if count > 1 {
                self.room = room;
                self.tell(here, "oneOf", Detail::Several, out);
                return false;
            }
        }
        if count == 0 {
            self.tell(here, "oneOf", Detail::Alternatives(all), out);
        } else {
            self.room = room;
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
}
