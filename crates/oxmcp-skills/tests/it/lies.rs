//! Hosts, with servers that lie.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU32, Ordering},
};

use oxmcp::{
    ClientSession, Error, Extension, JsonSchema, ResourceTemplate, Revision, Server,
    protocol::ResourceContents, testing,
};
use oxmcp_skills::{
    Digest, ID,
    host::{SessionExt, Skill, SkillError},
};
use serde::Deserialize;
use serde_json::{Value, json};

const URI: &str = "skill://a/SKILL.md";
const FILE: &str = "skill://a/b.md";
const TEXT: &str = "---\nname: a\ndescription: Do it\n---\nSee b.md.\n";

#[derive(Deserialize, JsonSchema)]
struct Cursor {
    cursor: Option<String>,
}

/// What a server sends. The tests change it.
struct Lies {
    /// The pages of the list, by cursor; the first one has none.
    pages: Vec<Value>,
    /// The entry of `skills/get`; `None` is an error.
    entry: Option<Value>,
    skill_md: Vec<ResourceContents>,
    file: Vec<ResourceContents>,
    children: Value,
}

fn entry() -> Value {
    json!({
        "uri": URI,
        "frontmatter": {"name": "a", "description": "Do it"},
        "resources": [resource(URI, TEXT), resource(FILE, "file")],
    })
}

fn resource(uri: &str, text: &str) -> Value {
    json!({"uri": uri, "digest": Digest::of(text.as_bytes()), "size": text.len()})
}

impl Default for Lies {
    fn default() -> Self {
        Self {
            pages: vec![json!({"skills": [entry()]})],
            entry: Some(entry()),
            skill_md: vec![ResourceContents::text(URI, TEXT)],
            file: vec![ResourceContents::text(FILE, "file")],
            children: json!([]),
        }
    }
}

/// A session with a server, and the numbers of its reads of files and of its `skills/get`.
struct Peer {
    session: ClientSession,
    reads: Arc<AtomicU32>,
    gets: Arc<AtomicU32>,
}

impl Peer {
    async fn new(lies: Lies) -> Self {
        Self::shared(&Arc::new(Mutex::new(lies))).await
    }

    async fn shared(lies: &Arc<Mutex<Lies>>) -> Self {
        let [for_list, for_get, for_read, for_directory] = [0; 4].map(|_| Arc::clone(lies));
        let reads = Arc::new(AtomicU32::new(0));
        let gets = Arc::new(AtomicU32::new(0));
        let (counted, got) = (Arc::clone(&reads), Arc::clone(&gets));
        let extension = Extension::new(ID)
            .settings(json!({"directoryRead": true}))
            .method_fn("skills/list", .., move |Cursor { cursor }: Cursor| {
                let at = cursor.and_then(|it| it.parse().ok()).unwrap_or(0_usize);
                let lies = for_list.lock().unwrap();
                let page = lies.pages[at % lies.pages.len()].clone();
                async move { Ok::<_, Error>(page) }
            })
            .method_fn("skills/get", .., move || {
                got.fetch_add(1, Ordering::Relaxed);
                let entry = for_get.lock().unwrap().entry.clone();
                async move {
                    let entry = entry.ok_or_else(|| Error::invalid_params("no such skill"))?;
                    Ok::<_, Error>(json!({"skill": entry}))
                }
            })
            .method_fn("resources/directory/read", .., move || {
                let children = for_directory.lock().unwrap().children.clone();
                async move { Ok::<_, Error>(json!({"resources": children})) }
            });
        let files = ResourceTemplate::dynamic("skill://{+path}", "files", move |_cx, variables| {
            counted.fetch_add(1, Ordering::Relaxed);
            let lies = for_read.lock().unwrap();
            let contents = match variables.uri() {
                URI => lies.skill_md.clone(),
                _ => lies.file.clone(),
            };
            async move { contents }
        });
        let server = Server::new("liar", "1.0.0")
            .extension(extension)
            .resource_template(files);
        let session = testing::connect(&server)
            .revision(Revision::LATEST)
            .await
            .unwrap();
        Self {
            session,
            reads,
            gets,
        }
    }

    async fn skill(&self) -> Skill {
        let list = self.session.skills("liar").list().await.unwrap();
        list.skills()[0].clone()
    }

    /// The error of loading the skill that is listed.
    async fn failure(&self) -> SkillError {
        let skill = self.skill().await;
        self.session.skills("liar").load(&skill).await.unwrap_err()
    }

    fn count(&self) -> (u32, u32) {
        (
            self.reads.load(Ordering::Relaxed),
            self.gets.load(Ordering::Relaxed),
        )
    }
}

#[tokio::test]
async fn wrong_size_is_refused() {
    for text in [
        format!("{TEXT}more"),
        TEXT.replace("See b.md.\n", ""),
        String::new(),
    ] {
        let skill_md = vec![ResourceContents::text(URI, text)];
        let peer = Peer::new(Lies {
            skill_md,
            ..Lies::default()
        })
        .await;
        let error = peer.failure().await;
        assert!(matches!(error, SkillError::Size { .. }), "{error}");
        // The entry is got once, and the file read once more.
        assert_eq!(peer.count(), (2, 1));
    }
}

#[tokio::test]
async fn wrong_digest_is_refused() {
    let skill_md = vec![ResourceContents::text(URI, TEXT.replace("See", "Run"))];
    let peer = Peer::new(Lies {
        skill_md,
        ..Lies::default()
    })
    .await;
    let error = peer.failure().await;
    assert_eq!(
        error.to_string(),
        "could not verify skill://a/SKILL.md: its digest does not match the entry; do not use it"
    );
    assert_eq!(peer.count(), (2, 1));
}

#[tokio::test]
async fn wrong_frontmatter_is_refused() {
    for (text, problem) in [
        (TEXT.replace("Do it", "Do more"), "`description` differs"),
        (
            TEXT.replace("---\nSee", "allowed-tools: Bash\n---\nSee"),
            "`allowed-tools` differs",
        ),
        (
            TEXT.replace("name: a", "name: &x a"),
            "anchors are not supported",
        ),
        (TEXT.replace("---\n", ""), "no frontmatter"),
    ] {
        let mut entry = entry();
        entry["resources"][0] = resource(URI, &text);
        let peer = Peer::new(Lies {
            pages: vec![json!({"skills": [entry]})],
            entry: Some(entry),
            skill_md: vec![ResourceContents::text(URI, &*text)],
            ..Lies::default()
        })
        .await;
        let error = peer.failure().await;
        assert!(matches!(error, SkillError::Frontmatter { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[tokio::test]
async fn wrong_file_is_refused() {
    let lies = Arc::new(Mutex::new(Lies::default()));
    let peer = Peer::shared(&lies).await;
    let skill = peer.skill().await;
    let loaded = peer.session.skills("liar").load(&skill).await.unwrap();
    for (file, is_size) in [("fild", false), ("files", true)] {
        lies.lock().unwrap().file = vec![ResourceContents::text(FILE, file)];
        let error = loaded.read("b.md").await.unwrap_err();
        assert_eq!(matches!(error, SkillError::Size { .. }), is_size, "{error}");
        assert_eq!(
            matches!(error, SkillError::Digest { .. }),
            !is_size,
            "{error}"
        );
    }
    for contents in [
        vec![],
        vec![ResourceContents::text(FILE, "file"); 2],
        vec![ResourceContents::text("skill://a/other.md", "file")],
    ] {
        lies.lock().unwrap().file = contents;
        let error = loaded.read("b.md").await.unwrap_err();
        assert!(matches!(error, SkillError::Content { .. }), "{error}");
    }
    // The same bytes in another form are the same file.
    lies.lock().unwrap().file = vec![ResourceContents::blob(FILE, b"file".to_vec())];
    assert_eq!(loaded.read("b.md").await.unwrap().text(), Some("file"));
}

#[tokio::test]
async fn changed_skill_must_be_approved_again() {
    let changed = TEXT.replace("See", "Run");
    let mut entry = entry();
    entry["resources"][0] = resource(URI, &changed);
    let peer = Peer::new(Lies {
        entry: Some(entry),
        skill_md: vec![ResourceContents::text(URI, &*changed)],
        ..Lies::default()
    })
    .await;
    let skill = peer.skill().await;
    let skills = peer.session.skills("liar");
    let error = skills.load(&skill).await.unwrap_err();
    let SkillError::Changed { skill: fresh } = error else {
        panic!("{error}");
    };
    assert_ne!(fresh.approval(), skill.approval());
    assert_eq!(skills.load(&fresh).await.unwrap().text(), changed);
}

#[tokio::test]
async fn failed_refresh_leaves_the_first_error() {
    let peer = Peer::new(Lies {
        entry: None,
        skill_md: vec![ResourceContents::text(URI, "")],
        ..Lies::default()
    })
    .await;
    assert!(matches!(peer.failure().await, SkillError::Size { .. }));
    assert_eq!(peer.count(), (1, 1));
}

/// A change of an entry, and the problem that it makes.
type Spoiled = (fn(&mut Value), &'static str);

fn spoiled() -> Vec<Spoiled> {
    vec![
        (|it| *it = json!(7), "it is not an object"),
        (|it| it["uri"] = json!(7), "it has no `uri`"),
        (
            |it| it["uri"] = json!("skill://a"),
            "is not that of a SKILL.md",
        ),
        (
            |it| it["uri"] = json!("skill://../SKILL.md"),
            "is not that of a SKILL.md",
        ),
        (
            |it| it["uri"] = json!(format!("skill://{}/SKILL.md", "a".repeat(4096))),
            "longer than",
        ),
        (|it| it["uri"] = json!("skill://A/SKILL.md"), "invalid name"),
        (
            |it| it["uri"] = json!("skill://b/SKILL.md"),
            "not that of its directory",
        ),
        (
            |it| it["frontmatter"] = json!("name: a"),
            "it has no `frontmatter`",
        ),
        (
            |it| it["frontmatter"]["name"] = json!(1),
            "not that of its directory",
        ),
        (
            |it| it["frontmatter"]["description"] = json!(""),
            "no `description`",
        ),
        (
            |it| it["frontmatter"]["x"] = json!("x".repeat(65_536)),
            "frontmatter is longer",
        ),
        (
            |it| it["resources"] = json!(null),
            "neither a list nor \"dynamic\"",
        ),
        (
            |it| it["resources"] = json!("static"),
            "neither a list nor \"dynamic\"",
        ),
        (
            |it| it["resources"] = json!([]),
            "SKILL.md is not in its `resources`",
        ),
        (
            |it| it["resources"][1]["uri"] = json!("skill://b/b.md"),
            "outside its directory",
        ),
        (
            |it| it["resources"][1]["uri"] = json!("skill://a/../b.md"),
            "outside its directory",
        ),
        (
            |it| it["resources"][1]["uri"] = json!("skill://a/%2e%2e/b.md"),
            "outside its directory",
        ),
        (|it| it["resources"][1]["uri"] = json!(URI), "listed twice"),
        (
            |it| it["resources"][1]["digest"] = json!("sha256:00"),
            "invalid digest",
        ),
        (|it| it["resources"][1]["size"] = json!(-1), "invalid file"),
        (
            |it| it["resources"][1]["size"] = json!(1_u64 << 63),
            "the limit is 16777216",
        ),
        (
            |it| it["resources"] = json!(vec![json!({}); 513]),
            "513 files; the limit is 512",
        ),
    ]
}

#[tokio::test]
async fn invalid_entries_are_rejected() {
    let with = |change: fn(&mut Value)| {
        let mut entry = entry();
        change(&mut entry);
        entry
    };
    let cases = spoiled();
    let mut all: Vec<_> = cases.iter().map(|(change, _)| with(*change)).collect();
    all.push(entry());
    all.push(entry());
    let pages = vec![json!({"skills": all})];
    let peer = Peer::new(Lies {
        pages,
        ..Lies::default()
    })
    .await;
    let list = peer.session.skills("liar").list().await.unwrap();
    assert_eq!(list.skills().len(), 1);
    assert!(list.is_complete());
    let problems: Vec<_> = list.rejected().iter().map(|it| &*it.problem).collect();
    for (problem, (_, expected)) in problems.iter().zip(&cases) {
        assert!(problem.contains(expected), "{problem:?} lacks {expected:?}");
        assert!(problem.len() < 1000);
    }
    assert_eq!(problems[cases.len()..], ["it is listed twice"]);
}

#[tokio::test]
async fn entry_of_another_skill_is_refused() {
    let peer = Peer::new(Lies::default()).await;
    let error = peer
        .session
        .skills("liar")
        .get("skill://x/a/SKILL.md")
        .await
        .unwrap_err();
    assert!(matches!(error, SkillError::InvalidEntry { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("it is the entry of \"skill://a/SKILL.md\""),
        "{error}"
    );
}

#[tokio::test]
async fn endless_lists_end() {
    // The same cursor again and again.
    let pages = vec![json!({"skills": [entry()], "nextCursor": "0"})];
    let peer = Peer::new(Lies {
        pages,
        ..Lies::default()
    })
    .await;
    let list = peer.session.skills("liar").list().await.unwrap();
    assert_eq!((list.skills().len(), list.is_complete()), (1, false));
    // Always another cursor.
    let pages = (0..1500).map(|it| json!({"skills": [], "nextCursor": (it + 1).to_string()}));
    let peer = Peer::new(Lies {
        pages: pages.collect(),
        ..Lies::default()
    })
    .await;
    let list = peer.session.skills("liar").list().await.unwrap();
    assert_eq!((list.skills().len(), list.is_complete()), (0, false));
    // A cursor that is too long to keep.
    let pages = vec![json!({"skills": [entry()], "nextCursor": "x".repeat(5000)})];
    let peer = Peer::new(Lies {
        pages,
        ..Lies::default()
    })
    .await;
    assert!(
        !peer
            .session
            .skills("liar")
            .list()
            .await
            .unwrap()
            .is_complete()
    );
}

#[tokio::test]
async fn longest_lists_are_cut() {
    let skill = |index: usize| {
        let uri = format!("skill://s{index}/SKILL.md");
        json!({
            "uri": uri,
            "frontmatter": {"name": format!("s{index}"), "description": "x"},
            "resources": [resource(&uri, "")],
        })
    };
    let pages = vec![json!({"skills": (0..10_001).map(skill).collect::<Vec<_>>()})];
    let peer = Peer::new(Lies {
        pages,
        ..Lies::default()
    })
    .await;
    let list = peer.session.skills("liar").list().await.unwrap();
    assert_eq!((list.skills().len(), list.is_complete()), (10_000, false));
    // Frontmatter that is long, and still within the limit of one skill.
    let long = |index: usize| {
        let mut skill = skill(index);
        skill["frontmatter"]["x"] = json!("x".repeat(60_000));
        skill
    };
    let pages = vec![json!({"skills": (0..300).map(long).collect::<Vec<_>>()})];
    let peer = Peer::new(Lies {
        pages,
        ..Lies::default()
    })
    .await;
    let list = peer.session.skills("liar").list().await.unwrap();
    assert_eq!((list.skills().len(), list.is_complete()), (279, false));
}

#[tokio::test]
async fn children_outside_the_directory_are_refused() {
    for uri in [
        "skill://b",
        "skill://a",
        "skill://a/../b",
        "skill://a/b/c",
        "file:///etc",
    ] {
        let children = json!([{"uri": uri, "name": "x"}]);
        let peer = Peer::new(Lies {
            children,
            ..Lies::default()
        })
        .await;
        let error = peer
            .session
            .skills("liar")
            .read_directory("skill://a")
            .await
            .unwrap_err();
        assert!(
            matches!(error, SkillError::Content { .. }),
            "{uri}: {error}"
        );
    }
}

fn dynamic() -> Lies {
    let mut entry = entry();
    entry["resources"] = json!("dynamic");
    Lies {
        pages: vec![json!({"skills": [entry]})],
        entry: Some(entry),
        ..Lies::default()
    }
}

#[tokio::test]
async fn dynamic_skill_is_loaded_only_on_request() {
    let peer = Peer::new(dynamic()).await;
    let error = peer.failure().await;
    assert!(matches!(error, SkillError::Dynamic { .. }), "{error}");
    assert_eq!(peer.count(), (0, 0));
    let skill = peer.skill().await;
    assert!(skill.is_dynamic() && skill.approval().is_none());
    let skills = peer.session.skills("liar");
    let loaded = skills.load_unverified(&skill).await.unwrap();
    assert!(!loaded.is_verified());
    assert_eq!(loaded.text(), TEXT);
    assert_eq!(loaded.read("b.md").await.unwrap().text(), Some("file"));
    assert_eq!(loaded.read(FILE).await.unwrap().text(), Some("file"));
    for file in [
        "../c.md",
        "skill://b/c.md",
        "skill://a/../c.md",
        "skill://a/%2e%2e/c.md",
        "",
    ] {
        let error = loaded.read(file).await.unwrap_err();
        assert!(
            matches!(error, SkillError::Unlisted { .. }),
            "{file}: {error}"
        );
    }
}

#[tokio::test]
async fn dynamic_skill_must_have_the_frontmatter_of_its_entry() {
    let skill_md = vec![ResourceContents::text(
        URI,
        TEXT.replace("Do it", "Do more"),
    )];
    let peer = Peer::new(Lies {
        skill_md,
        ..dynamic()
    })
    .await;
    let skill = peer.skill().await;
    let error = peer
        .session
        .skills("liar")
        .load_unverified(&skill)
        .await
        .unwrap_err();
    assert!(matches!(error, SkillError::Frontmatter { .. }), "{error}");
}

#[tokio::test]
async fn dynamic_skill_is_read_within_its_limit() {
    let file = vec![ResourceContents::text(FILE, "x".repeat(8 << 20))];
    let peer = Peer::new(Lies { file, ..dynamic() }).await;
    let skill = peer.skill().await;
    let loaded = peer
        .session
        .skills("liar")
        .load_unverified(&skill)
        .await
        .unwrap();
    assert!(loaded.read("b.md").await.is_ok());
    let error = loaded.read("b.md").await.unwrap_err();
    assert!(matches!(error, SkillError::TooLarge { .. }), "{error}");
}

#[tokio::test]
async fn skill_with_digests_is_always_verified() {
    let skill_md = vec![ResourceContents::text(URI, TEXT.replace("See", "Run"))];
    let peer = Peer::new(Lies {
        skill_md,
        ..Lies::default()
    })
    .await;
    let skill = peer.skill().await;
    let error = peer
        .session
        .skills("liar")
        .load_unverified(&skill)
        .await
        .unwrap_err();
    assert!(matches!(error, SkillError::Digest { .. }), "{error}");
}
