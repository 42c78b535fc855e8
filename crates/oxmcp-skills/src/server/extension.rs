//! The extension: its declaration, its methods, and the resources of the files.

use std::sync::Arc;

use oxmcp::{
    Error, Extension, JsonSchema, RequestContext, ResourceTemplate, Result,
    protocol::{CacheScope, ListResourcesResult, ReadResourceResult},
};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeSeq};
use serde_json::json;

use super::{registry::Registry, source::Skill};
use crate::{
    ID,
    entry::SkillEntry,
    methods::{ReadDirectory, ReadDirectoryParams},
};

/// The pattern of the URIs of skills.
const PATTERN: &str = "skill://{+path}";

/// Returns the extension of a server, which serves the skills of a registry.
pub(super) fn extension(registry: &Arc<Registry>) -> Extension {
    let (lists, gets) = (Arc::clone(registry), Arc::clone(registry));
    let (reads, checks) = (Arc::clone(registry), Arc::clone(registry));
    Extension::new(ID)
        .settings(json!({"directoryRead": true}))
        .requires_capability("resources")
        .state(Arc::clone(registry))
        .method_fn("skills/list", .., move |cx: RequestContext, params| {
            let listed = list(&lists, &cx, &params);
            async move { listed }
        })
        .method_fn("skills/get", .., move |cx: RequestContext, params| {
            let found = get(&gets, &cx, &params);
            async move { found }
        })
        .method::<ReadDirectory, _>(.., move |params: ReadDirectoryParams| {
            let read = read_directory(&reads, &params);
            async move { read }
        })
        .check_features(move |_| checks.problem().map_or(Ok(()), Err))
}

/// Returns the template by which clients read the files.
pub(super) fn template(registry: &Arc<Registry>) -> ResourceTemplate {
    let (reads, lists) = (Arc::clone(registry), Arc::clone(registry));
    let template = ResourceTemplate::dynamic(PATTERN, "skills", move |_cx, variables| {
        let file = reads.snapshot().file(variables.uri()).cloned();
        let hint = reads.settings().cache();
        let result = file.map(|file| {
            let mut result = ReadResourceResult::from(file.contents());
            result.ttl_ms = Some(hint.ttl_ms());
            result.cache_scope = Some(hint.scope);
            result
        });
        async move { result }
    });
    template
        .description("The files of the server's skills")
        .list(move |_cx| {
            let listed = lists.snapshot().listed();
            async move { Ok::<_, Error>(listed) }
        })
}

#[derive(Deserialize, JsonSchema)]
struct ListParams {
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct GetParams {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListResult {
    #[serde(serialize_with = "entries")]
    skills: Vec<Arc<Skill>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(flatten)]
    freshness: Option<Freshness>,
}

#[derive(Serialize)]
struct GetResult {
    skill: SkillEntry,
    #[serde(flatten)]
    freshness: Option<Freshness>,
}

/// The cache hint of a result, for clients of revisions that have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Freshness {
    ttl_ms: u64,
    cache_scope: CacheScope,
}

fn entries<S: Serializer>(skills: &[Arc<Skill>], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(skills.len()))?;
    for skill in skills {
        list.serialize_element(&skill.entry)?;
    }
    list.end()
}

fn freshness(registry: &Registry, cx: &RequestContext) -> Option<Freshness> {
    let hint = registry.settings().cache();
    cx.revision().is_modern().then(|| Freshness {
        ttl_ms: hint.ttl_ms(),
        cache_scope: hint.scope,
    })
}

/// The URI after which a page begins. Some clients send an empty cursor for the first page.
fn start(cursor: Option<&str>) -> Result<Option<&str>> {
    match cursor.filter(|it| !it.is_empty()) {
        Some(cursor) if !cursor.starts_with("skill://") => Err(Error::invalid_params(format!(
            "unknown cursor {cursor:?}; use the `nextCursor` of the previous page"
        ))),
        cursor => Ok(cursor),
    }
}

fn list(registry: &Registry, cx: &RequestContext, params: &ListParams) -> Result<ListResult> {
    let start = start(params.cursor.as_deref())?;
    let page = registry
        .snapshot()
        .page(start, registry.settings().page_size);
    Ok(ListResult {
        skills: page.items,
        next_cursor: page.next,
        freshness: freshness(registry, cx),
    })
}

fn get(registry: &Registry, cx: &RequestContext, params: &GetParams) -> Result<GetResult> {
    let uri = &params.uri;
    let snapshot = registry.snapshot();
    let skill = snapshot.skill(uri).ok_or_else(|| {
        Error::invalid_params(format!(
            "no skill at {uri:?}; use the URI of a SKILL.md from `skills/list`"
        ))
    })?;
    Ok(GetResult {
        skill: skill.entry.clone(),
        freshness: freshness(registry, cx),
    })
}

fn read_directory(
    registry: &Registry,
    params: &ReadDirectoryParams,
) -> Result<ListResourcesResult> {
    let uri = &params.uri;
    let start = start(params.cursor.as_deref())?;
    let snapshot = registry.snapshot();
    let page = snapshot.children(uri, start, registry.settings().page_size);
    let page = page.ok_or_else(|| {
        let without_slash = uri.trim_end_matches('/');
        Error::invalid_params(match snapshot.has_directory(without_slash) {
            true => format!("{uri:?} is not a directory; remove the slash at its end"),
            false => format!("{uri:?} is not a directory of a skill"),
        })
    })?;
    let mut result = ListResourcesResult::default();
    result.resources = page.items;
    result.next_cursor = page.next.map(Into::into);
    Ok(result)
}
