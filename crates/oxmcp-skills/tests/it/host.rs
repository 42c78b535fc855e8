//! Hosts, with honest servers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use oxmcp::{Resource, Revision, Server, middleware, protocol::CacheHint, testing};
use oxmcp_skills::{
    ServerExt, Skills,
    host::{Approval, SessionExt, SkillError, SkillId, collisions},
};

use crate::{CHARTS, LIMITS, PNG, REFUNDS, session, shop, skills};

const URI: &str = "skill://shop/refunds/SKILL.md";

/// A server whose requests of one method are counted.
fn counting(server: Server, method: &'static str) -> (Server, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&count);
    let server = server.layer(middleware::from_fn(move |request, next| {
        if request.method() == method {
            counted.fetch_add(1, Ordering::Relaxed);
        }
        next.run(request)
    }));
    (server, count)
}

#[tokio::test]
async fn skills_are_listed_loaded_and_read() {
    for revision in Revision::ALL {
        let (server, reads) = counting(shop(), "resources/read");
        let session = session(&server, revision).await;
        let skills = session.skills("my-shop");
        assert!(skills.is_supported().await.unwrap());
        let list = skills.list().await.unwrap();
        assert!(list.is_complete() && list.rejected().is_empty(), "{list:?}");
        let names: Vec<_> = list.skills().iter().map(|it| it.name()).collect();
        assert_eq!(names, ["refunds", "report", "charts"]);
        let refunds = list.find(&SkillId::new("my-shop", URI)).unwrap();
        assert_eq!(refunds.description(), "Refund an order");
        assert_eq!(
            refunds.total_size(),
            (REFUNDS.len() + LIMITS.len() + PNG.len()) as u64
        );
        assert_eq!(*refunds, skills.get(URI).await.unwrap());
        assert!(refunds.approval().is_some());
        assert_eq!(
            reads.load(Ordering::Relaxed),
            0,
            "nothing is read ahead of need"
        );

        let loaded = skills.load(refunds).await.unwrap();
        assert_eq!(loaded.text(), REFUNDS);
        assert!(loaded.is_verified());
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        let limits = loaded.read("references/limits.md").await.unwrap();
        assert_eq!(
            (limits.text(), limits.mime_type()),
            (Some(LIMITS), Some("text/markdown"))
        );
        assert_eq!(loaded.read("logo.png").await.unwrap().bytes(), PNG);
        // Verified files are kept.
        for same in [
            "./references/../references/limits.md#top",
            "SKILL.md",
            &*limits.uri().to_owned(),
        ] {
            loaded.read(same).await.unwrap();
        }
        assert_eq!(reads.load(Ordering::Relaxed), 3, "{revision}");
    }
}

#[tokio::test]
async fn loaded_skill_reads_only_its_own_files() {
    let other = Resource::text("skill://shop/secret.md", "secret", "secret");
    let session = session(&shop().resource(other), Revision::LATEST).await;
    let skills = session.skills("shop");
    let refunds = skills.get(URI).await.unwrap();
    let loaded = skills.load(&refunds).await.unwrap();
    for file in [
        "absent.md",
        "../secret.md",
        "../../shop/secret.md",
        "..%2Fsecret.md",
        "/etc/passwd",
        "",
        ".",
        "references",
        "skill://shop/secret.md",
        "skill://shop/team/report/SKILL.md",
        "skill://shop/refunds/../secret.md",
        "file:///etc/passwd",
    ] {
        let error = loaded.read(file).await.unwrap_err();
        assert!(
            matches!(error, SkillError::Unlisted { .. }),
            "{file}: {error}"
        );
    }
}

#[tokio::test]
async fn model_is_told_the_origin() {
    let session = session(&shop(), Revision::LATEST).await;
    let skills = session.skills("my-shop");
    let refunds = skills.get(URI).await.unwrap();
    let text = skills.load(&refunds).await.unwrap().for_model();
    let expected = format!("Skill \"refunds\" of the MCP server \"my-shop\" ({URI}). ");
    assert!(text.starts_with(&expected), "{text}");
    assert!(text.ends_with(REFUNDS));
}

#[tokio::test]
async fn manifest_answers_for_directories() {
    let session = session(&shop(), Revision::LATEST).await;
    let skills = session.skills("shop");
    let report = skills
        .get("skill://shop/team/report/SKILL.md")
        .await
        .unwrap();
    let loaded = skills.load(&report).await.unwrap();
    let top = [
        "skill://shop/team/report/SKILL.md",
        "skill://shop/team/report/parts",
    ];
    assert_eq!(loaded.children(""), top);
    assert_eq!(loaded.children("."), top);
    assert_eq!(
        loaded.children("parts"),
        ["skill://shop/team/report/parts/charts"]
    );
    assert!(loaded.children("..").is_empty() && loaded.children("none").is_empty());
    let live = skills
        .read_directory("skill://shop/team/report")
        .await
        .unwrap();
    let live: Vec<_> = live.iter().map(|it| &*it.uri).collect();
    assert_eq!(live, top);
}

#[tokio::test]
async fn nested_skill_needs_its_own_approval() {
    let session = session(&shop(), Revision::LATEST).await;
    let skills = session.skills("shop");
    let report = skills
        .get("skill://shop/team/report/SKILL.md")
        .await
        .unwrap();
    let charts = skills
        .get("skill://shop/team/report/parts/charts/SKILL.md")
        .await
        .unwrap();
    assert_ne!(report.approval(), charts.approval());
    // As a file of the outer skill it is only text.
    let loaded = skills.load(&report).await.unwrap();
    let file = loaded.read("parts/charts/SKILL.md").await.unwrap();
    assert_eq!(file.text(), Some(CHARTS));
}

#[tokio::test]
async fn approval_is_void_after_any_change() {
    let files = Arc::new(Mutex::new(vec![
        ("refunds/SKILL.md", REFUNDS),
        ("refunds/references/limits.md", LIMITS),
    ]));
    let source = Arc::clone(&files);
    let source = Skills::from_fn(move || Ok::<_, std::io::Error>(source.lock().unwrap().clone()));
    let server = Server::new("shop", "1.0.0").skills(source.prefix("shop"));
    let session = session(&server, Revision::LATEST).await;
    let skills = session.skills("shop");
    let approval = skills.get(URI).await.unwrap().approval().unwrap();
    let stored = serde_json::to_string(&approval).unwrap();
    let approval: Approval = serde_json::from_str(&stored).unwrap();
    assert_eq!(approval.id(), &SkillId::new("shop", URI));
    let held = skills.load_approved(&approval).await.unwrap();

    let original = files.lock().unwrap().clone();
    let changes = [
        vec![original[0], (original[1].0, "# None\n")],
        vec![original[0], original[1], ("refunds/new.md", "")],
        vec![original[0]],
        vec![original[0], ("refunds/references/other.md", LIMITS)],
    ];
    for changed in changes {
        *files.lock().unwrap() = changed;
        server.reload_skills().await.unwrap();
        let error = skills.load_approved(&approval).await.unwrap_err();
        let SkillError::Changed { skill } = error else {
            panic!("{error}");
        };
        assert_ne!(skill.approval().as_ref(), Some(&approval));
        assert!(skills.load(&skill).await.is_ok());
    }
    // A skill that is loaded notices a change of its files when it reads them.
    let error = held.read("references/limits.md").await.unwrap_err();
    assert!(matches!(error, SkillError::Changed { .. }), "{error}");

    *files.lock().unwrap() = original;
    server.reload_skills().await.unwrap();
    assert!(skills.load_approved(&approval).await.is_ok());
    assert!(held.read("references/limits.md").await.is_ok());
}

#[tokio::test]
async fn skills_of_two_servers_are_two_skills() {
    let (one, two) = (
        session(&shop(), Revision::LATEST).await,
        session(&shop(), Revision::LATEST).await,
    );
    let (one, two) = (one.skills("one"), two.skills("two"));
    let (first, second) = (one.get(URI).await.unwrap(), two.get(URI).await.unwrap());
    assert_ne!(first.id(), second.id());
    assert_ne!(first.approval(), second.approval());
    let error = two.load(&first).await.unwrap_err();
    assert!(matches!(error, SkillError::OtherServer { .. }), "{error}");
    let error = two
        .load_approved(&first.approval().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, SkillError::OtherServer { .. }), "{error}");
    let all = [first, second];
    let [(name, same)] = &collisions(&all)[..] else {
        panic!("one collision");
    };
    assert_eq!((*name, same.len()), ("refunds", 2));
}

#[tokio::test(start_paused = true)]
async fn fresh_list_is_not_requested_again() {
    let hint = CacheHint::public(Duration::from_secs(60));
    for (revision, expected) in [(Revision::LATEST, 1), (Revision::LATEST_LEGACY, 10)] {
        let server = Server::new("shop", "1.0.0").skills(skills().cache(hint));
        let (server, lists) = counting(server, "skills/list");
        let session = session(&server, revision).await;
        let skills = session.skills("shop");
        for _ in 0..10 {
            skills.clone().list().await.unwrap();
        }
        assert_eq!(lists.load(Ordering::Relaxed), expected, "{revision}");
        skills.refresh().await.unwrap();
        assert_eq!(lists.load(Ordering::Relaxed), expected + 1, "{revision}");
        tokio::time::advance(Duration::from_secs(61)).await;
        skills.list().await.unwrap();
        assert_eq!(lists.load(Ordering::Relaxed), expected + 2, "{revision}");
    }
}

#[tokio::test]
async fn pages_are_followed() {
    let server = Server::new("shop", "1.0.0").skills(skills().page_size(1));
    let session = session(&server, Revision::LATEST).await;
    let skills = session.skills("shop");
    let list = skills.list().await.unwrap();
    assert_eq!((list.skills().len(), list.is_complete()), (3, true));
    assert_eq!(
        skills
            .read_directory("skill://refunds")
            .await
            .unwrap()
            .len(),
        3
    );
}

#[tokio::test]
async fn server_without_skills_is_an_error() {
    let server = Server::new("shop", "1.0.0").resource(Resource::text("a://b", "b", ""));
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let session = testing::connect(&server).revision(revision).await.unwrap();
        let skills = session.skills("shop");
        assert!(!skills.is_supported().await.unwrap());
        let error = skills.list().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not use skills: the server \"shop\" does not declare the extension"
        );
        assert!(matches!(
            skills.get(URI).await,
            Err(SkillError::Unsupported { .. })
        ));
        let error = skills.read_directory("skill://shop").await.unwrap_err();
        assert!(matches!(error, SkillError::NoDirectories { .. }), "{error}");
    }
}

#[tokio::test]
async fn unknown_skill_is_the_error_of_the_server() {
    let session = session(&shop(), Revision::LATEST).await;
    let error = session
        .skills("shop")
        .get("skill://none/SKILL.md")
        .await
        .unwrap_err();
    assert!(error.to_string().contains("no skill at"), "{error}");
}
