//! The methods of the extension, and the files as resources.

use std::time::Duration;

use oxmcp::{
    Error, ErrorCode, Revision, Server,
    protocol::{CacheHint, ResourceBody},
};
use oxmcp_skills::{Digest, ID, ServerExt, Skills};
use serde_json::{Value, json};

use crate::{
    CHARTS, GetSkill, LIMITS, ListSkills, PNG, REFUNDS, REPORT, ReadDirectory, ask, list, session,
    shop, skills,
};

fn file(uri: &str, bytes: impl AsRef<[u8]>) -> Value {
    let bytes = bytes.as_ref();
    json!({"uri": uri, "digest": Digest::of(bytes).to_string(), "size": bytes.len()})
}

fn charts() -> Value {
    let uri = "skill://shop/team/report/parts/charts/SKILL.md";
    json!({
        "uri": uri,
        "frontmatter": {"name": "charts", "description": "Draw a chart", "allowed-tools": "Bash"},
        "resources": [file(uri, CHARTS)],
    })
}

fn entries() -> Value {
    json!([
        {
            "uri": "skill://shop/refunds/SKILL.md",
            "frontmatter": {
                "name": "refunds",
                "description": "Refund an order",
                "metadata": {"since": "2026-01-31", "version": 1.0},
            },
            "resources": [
                file("skill://shop/refunds/SKILL.md", REFUNDS),
                file("skill://shop/refunds/logo.png", PNG),
                file("skill://shop/refunds/references/limits.md", LIMITS),
            ],
        },
        {
            "uri": "skill://shop/team/report/SKILL.md",
            "frontmatter": {"name": "report", "description": "Write the daily report"},
            "resources": [
                file("skill://shop/team/report/SKILL.md", REPORT),
                file("skill://shop/team/report/parts/charts/SKILL.md", CHARTS),
            ],
        },
        charts(),
    ])
}

fn code(error: &Error) -> ErrorCode {
    assert!(error.is_protocol(), "{error}");
    error.code()
}

#[tokio::test]
async fn extension_is_declared_with_resources() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        session.ping().await.unwrap();
        let capabilities = session.server_capabilities();
        let declared = capabilities.extensions.as_ref().unwrap();
        assert_eq!(declared.get(ID), Some(&json!({"directoryRead": true})));
        assert!(capabilities.resources.is_some(), "{revision}");
        assert!(capabilities.prompts.is_none(), "{revision}");
    }
}

#[tokio::test]
async fn entries_list_all_files_with_digests() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        let mut expected = json!({"skills": entries()});
        let mut one = json!({"skill": charts()});
        if revision.is_modern() {
            for result in [&mut expected, &mut one] {
                result["ttlMs"] = json!(0);
                result["cacheScope"] = json!("private");
            }
        }
        assert_eq!(list(&session).await, expected, "{revision}");
        let uri = "skill://shop/team/report/parts/charts/SKILL.md";
        let got = ask::<GetSkill>(&session, json!({"uri": uri})).await;
        assert_eq!(got.unwrap(), one, "{revision}");
    }
}

#[tokio::test]
async fn cache_hint_is_the_most_careful_of_all_sources() {
    let hour = Duration::from_secs(3600);
    let other = || Skills::embedded([("other/SKILL.md", REPORT.replace("report", "other"))]);
    let one = skills().cache(CacheHint::public(hour));
    let two = other().cache(CacheHint::public(hour * 2));
    let public = Server::new("s", "1").skills(one.clone()).skills(two);
    let private = Server::new("s", "1").skills(one).skills(other());
    for (server, ttl, scope) in [(public, 3_600_000, "public"), (private, 0, "private")] {
        let session = session(&server, Revision::LATEST).await;
        let listed = list(&session).await;
        assert_eq!(listed["skills"].as_array().unwrap().len(), 4);
        assert_eq!(
            (&listed["ttlMs"], &listed["cacheScope"]),
            (&json!(ttl), &json!(scope))
        );
        let read = session
            .read_resource("skill://refunds/SKILL.md")
            .await
            .unwrap();
        assert_eq!(read.ttl_ms, Some(ttl));
    }
}

#[tokio::test]
async fn contents_are_exactly_the_bytes_of_the_digests() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        for (uri, bytes, mime_type) in [
            (
                "skill://shop/refunds/SKILL.md",
                REFUNDS.as_bytes(),
                "text/markdown",
            ),
            ("skill://shop/refunds/logo.png", PNG, "image/png"),
            (
                "skill://shop/refunds/references/limits.md",
                LIMITS.as_bytes(),
                "text/markdown",
            ),
        ] {
            let read = session.read_resource(uri).await.unwrap();
            let [contents] = &read.contents[..] else {
                panic!("one file: {read:?}");
            };
            let (own, is_text) = match &contents.body {
                ResourceBody::Text(text) => (text.as_bytes(), true),
                ResourceBody::Blob(blob) => (&blob[..], false),
                other => panic!("{other:?}"),
            };
            assert_eq!(
                (own, is_text),
                (bytes, mime_type == "text/markdown"),
                "{uri}"
            );
            assert_eq!(contents.mime_type.as_deref(), Some(mime_type));
            assert_eq!(&*contents.uri, uri);
        }
        for uri in [
            "skill://shop/refunds",
            "skill://shop/team/README.md",
            "skill://shop/refunds/../refunds/SKILL.md",
            "skill://shop/refunds/%53KILL.md",
            "skill://refunds/SKILL.md",
        ] {
            assert!(session.read_resource(uri).await.is_err(), "{uri}");
        }
    }
}

#[tokio::test]
async fn skill_files_are_listed_as_resources() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        let resources = session.resources().all().await.unwrap();
        let uris: Vec<_> = resources.iter().map(|it| &*it.uri).collect();
        let expected = [
            "skill://shop/refunds/SKILL.md",
            "skill://shop/team/report/SKILL.md",
            "skill://shop/team/report/parts/charts/SKILL.md",
        ];
        assert_eq!(uris, expected, "{revision}");
        let first = &resources[0];
        assert_eq!(first.name, "refunds");
        assert_eq!(first.description.as_deref(), Some("Refund an order"));
        assert_eq!(first.mime_type.as_deref(), Some("text/markdown"));
    }
}

#[tokio::test]
async fn directories_list_their_children() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        let read = async |uri: &str| {
            let result = ask::<ReadDirectory>(&session, json!({"uri": uri})).await;
            let children = result.unwrap()["resources"].clone();
            let children = children.as_array().unwrap().iter();
            let pair = |it: &Value| {
                let text = |key| it[key].as_str().unwrap().to_owned();
                (text("uri"), text("name"), text("mimeType"))
            };
            children.map(pair).collect::<Vec<_>>()
        };
        let row =
            |uri: &str, name: &str, kind: &str| (uri.to_owned(), name.to_owned(), kind.to_owned());
        let markdown = "text/markdown";
        let directory = "inode/directory";
        assert_eq!(
            read("skill://shop/refunds").await,
            [
                row("skill://shop/refunds/SKILL.md", "refunds", markdown),
                row("skill://shop/refunds/logo.png", "logo.png", "image/png"),
                row("skill://shop/refunds/references", "references", directory),
            ]
        );
        assert_eq!(
            read("skill://shop/team/report/parts").await,
            [row(
                "skill://shop/team/report/parts/charts",
                "charts",
                directory
            )]
        );
        // `README.md` belongs to no skill.
        assert_eq!(
            read("skill://shop/team").await,
            [row("skill://shop/team/report", "report", directory)]
        );
        assert_eq!(read("skill://shop").await.len(), 2);
        for (uri, problem) in [
            (
                "skill://shop/refunds/SKILL.md",
                "is not a directory of a skill",
            ),
            ("skill://shop/refunds/", "remove the slash at its end"),
            ("skill://other", "is not a directory of a skill"),
            ("skill://", "is not a directory of a skill"),
        ] {
            let error = ask::<ReadDirectory>(&session, json!({"uri": uri}))
                .await
                .unwrap_err();
            assert_eq!(code(&error), ErrorCode::INVALID_PARAMS);
            assert!(error.message().contains(problem), "{uri}: {error}");
        }
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    let server = Server::new("shop", "1.0.0").skills(skills().page_size(2));
    for revision in Revision::ALL {
        let session = session(&server, revision).await;
        let first = list(&session).await;
        assert_eq!(first["skills"].as_array().unwrap().len(), 2);
        let cursor = first["nextCursor"].clone();
        let second = ask::<ListSkills>(&session, json!({"cursor": cursor}))
            .await
            .unwrap();
        assert_eq!(second["skills"].as_array().unwrap().len(), 1);
        assert_eq!(second.get("nextCursor"), None);
        let directory = json!({"uri": "skill://refunds"});
        let first = ask::<ReadDirectory>(&session, directory.clone())
            .await
            .unwrap();
        let cursor = &first["nextCursor"];
        let next = json!({"uri": "skill://refunds", "cursor": cursor});
        let second = ask::<ReadDirectory>(&session, next).await.unwrap();
        assert_eq!(second["resources"][0]["name"], "references");
        let error = ask::<ListSkills>(&session, json!({"cursor": "7"}))
            .await
            .unwrap_err();
        assert_eq!(code(&error), ErrorCode::INVALID_PARAMS);
    }
}

#[tokio::test]
async fn unknown_skill_is_invalid_params() {
    for revision in Revision::ALL {
        let session = session(&shop(), revision).await;
        for params in [
            json!({"uri": "skill://none/SKILL.md"}),
            json!({"uri": "skill://shop/refunds"}),
            json!({"uri": "skill://shop/refunds/references/limits.md"}),
            json!({"uri": 7}),
            json!({}),
        ] {
            let error = ask::<GetSkill>(&session, params.clone()).await.unwrap_err();
            assert_eq!(code(&error), ErrorCode::INVALID_PARAMS, "{params}");
        }
    }
}

#[tokio::test]
async fn skills_are_named_in_the_instructions() {
    let server = Server::new("shop", "1.0.0")
        .instructions("Sells books.")
        .skills(skills().mention_in_instructions());
    let session = session(&server, Revision::LATEST_LEGACY).await;
    let instructions = session.instructions().unwrap();
    assert!(instructions.starts_with("Sells books.\n\nThis server has skills"));
    assert!(
        instructions.contains("\"refunds\" (skill://refunds/SKILL.md)"),
        "{instructions}"
    );
}

#[tokio::test]
async fn skills_are_prompts_for_hosts_without_skills() {
    let server = Server::new("shop", "1.0.0").skills(skills().also_as_prompts());
    for revision in Revision::ALL {
        let session = session(&server, revision).await;
        let prompts = session.prompts().all().await.unwrap();
        let names: Vec<_> = prompts.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["charts", "refunds", "report"]);
        assert_eq!(prompts[1].description.as_deref(), Some("Refund an order"));
        let prompt = session.get_prompt("refunds", ()).await.unwrap();
        let text = format!("{:?}", prompt.messages);
        assert!(
            text.contains("At most") || text.contains("references/limits.md"),
            "{text}"
        );
    }
}
