//! Reloading, and skills in directories.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use oxmcp::{Client, Revision, Server, testing};
use oxmcp_skills::{ServerExt, Skills};
use tokio::sync::mpsc;

use crate::{CHARTS, LIMITS, REFUNDS, REPORT, list, session};

type Stored = Arc<Mutex<Vec<(String, String)>>>;

fn stored(files: &[(&str, &str)]) -> Stored {
    let stored = Stored::default();
    store(&stored, files);
    stored
}

fn store(stored: &Stored, files: &[(&str, &str)]) {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    *stored.lock().unwrap() = files.collect();
}

fn from(stored: &Stored) -> Skills {
    let stored = Arc::clone(stored);
    Skills::from_fn(move || Ok::<_, std::io::Error>(stored.lock().unwrap().clone()))
}

async fn names(server: &Server) -> Vec<String> {
    let listed = list(&session(server, Revision::LATEST).await).await;
    let skills = listed["skills"].as_array().unwrap().iter();
    skills
        .map(|it| it["frontmatter"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn reload_replaces_all_skills() {
    let files = stored(&[("refunds/SKILL.md", REFUNDS), ("refunds/limits.md", LIMITS)]);
    let server = Server::new("shop", "1.0.0").skills(from(&files).also_as_prompts());
    assert_eq!(names(&server).await, ["refunds"]);
    store(&files, &[("report/SKILL.md", REPORT)]);
    assert_eq!(names(&server).await, ["refunds"]);
    server.reload_skills().await.unwrap();
    assert_eq!(names(&server).await, ["report"]);
    let session = session(&server, Revision::LATEST).await;
    assert!(
        session
            .read_resource("skill://refunds/SKILL.md")
            .await
            .is_err()
    );
    assert!(
        session
            .read_resource("skill://report/SKILL.md")
            .await
            .is_ok()
    );
    let prompts = session.prompts().all().await.unwrap();
    assert_eq!(prompts.len(), 1);
    assert_eq!(prompts[0].name, "report");
    store(&files, &[]);
    server.reload_skills().await.unwrap();
    assert!(names(&server).await.is_empty());
}

#[tokio::test]
async fn failed_reload_changes_nothing() {
    let files = stored(&[("refunds/SKILL.md", REFUNDS)]);
    let server = Server::new("shop", "1.0.0").skills(from(&files));
    store(
        &files,
        &[
            ("report/SKILL.md", REPORT),
            ("charts/SKILL.md", "# no frontmatter"),
        ],
    );
    let error = server.reload_skills().await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("charts/SKILL.md: no frontmatter"),
        "{error}"
    );
    assert!(
        error.to_string().contains("the skills are unchanged"),
        "{error}"
    );
    assert_eq!(names(&server).await, ["refunds"]);
    let none = Server::new("shop", "1.0.0")
        .reload_skills()
        .await
        .unwrap_err();
    assert!(
        none.to_string().contains("the server has no skills"),
        "{none}"
    );
}

#[tokio::test(start_paused = true)]
async fn clients_are_notified_of_a_reload() {
    for revision in [Revision::LATEST_LEGACY, Revision::LATEST] {
        let files = stored(&[("refunds/SKILL.md", REFUNDS), ("refunds/limits.md", LIMITS)]);
        let server = Server::new("shop", "1.0.0")
            .skills(from(&files))
            .subscriptions();
        let (sender, mut changed) = mpsc::channel(8);
        let client = Client::new("host", "1.0.0").on_resources_changed(move |_| {
            let sender = sender.clone();
            async move { sender.send(()).await.unwrap() }
        });
        let connect = testing::connect(&server).client(&client).revision(revision);
        let session = connect.await.unwrap();
        let mut watch = session
            .watch_resource("skill://refunds/limits.md")
            .await
            .unwrap();
        let quiet = std::time::Duration::from_secs(60);
        tokio::time::sleep(quiet).await;
        while changed.try_recv().is_ok() {}
        server.reload_skills().await.unwrap();
        tokio::time::sleep(quiet).await;
        assert!(
            changed.try_recv().is_err(),
            "nothing has changed: {revision}"
        );
        store(
            &files,
            &[
                ("refunds/SKILL.md", REFUNDS),
                ("refunds/limits.md", "# None\n"),
            ],
        );
        server.reload_skills().await.unwrap();
        changed.recv().await.unwrap();
        assert!(watch.next().await.is_some(), "{revision}");
    }
}

/// A directory for one test, which is removed at its end.
struct Temp(PathBuf);

impl Temp {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("oxmcp-skills-{}-{count}", process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn directory_is_searched_for_skills() {
    let temp = Temp::new();
    temp.write("refunds/SKILL.md", REFUNDS);
    temp.write("refunds/two words.md", LIMITS);
    temp.write("refunds/.git/config", "secret");
    temp.write("team/report/SKILL.md", REPORT);
    temp.write("team/report/charts/SKILL.md", CHARTS);
    let server = Server::new("shop", "1.0.0").skills(Skills::dir(&temp.0));
    server.check().unwrap();
    assert_eq!(names(&server).await, ["refunds", "report", "charts"]);
    let session = session(&server, Revision::LATEST).await;
    assert!(
        session
            .read_resource("skill://refunds/two%20words.md")
            .await
            .is_ok()
    );
    assert!(
        session
            .read_resource("skill://refunds/.git/config")
            .await
            .is_err()
    );
    temp.write("new/SKILL.md", REPORT.replace("name: report", "name: new"));
    server.reload_skills().await.unwrap();
    assert_eq!(names(&server).await, ["new", "refunds", "report", "charts"]);
}

#[tokio::test]
async fn directory_of_one_skill_is_served_under_its_name() {
    let temp = Temp::new();
    temp.write("SKILL.md", REFUNDS);
    temp.write("limits.md", LIMITS);
    let server = Server::new("shop", "1.0.0").skills(Skills::dir(&temp.0).prefix("acme"));
    server.check().unwrap();
    let session = session(&server, Revision::LATEST).await;
    assert!(
        session
            .read_resource("skill://acme/refunds/limits.md")
            .await
            .is_ok()
    );
}

#[cfg(unix)]
#[tokio::test]
async fn links_lead_nowhere() {
    use std::os::unix::fs::symlink;

    let (temp, outside) = (Temp::new(), Temp::new());
    outside.write("secret.md", "secret");
    outside.write(
        "other/SKILL.md",
        REPORT.replace("name: report", "name: other"),
    );
    temp.write("refunds/SKILL.md", REFUNDS);
    symlink(
        outside.0.join("secret.md"),
        temp.0.join("refunds/limits.md"),
    )
    .unwrap();
    symlink(outside.0.join("other"), temp.0.join("other")).unwrap();
    let server = Server::new("shop", "1.0.0").skills(Skills::dir(&temp.0));
    assert_eq!(names(&server).await, ["refunds"]);
    let session = session(&server, Revision::LATEST).await;
    assert!(
        session
            .read_resource("skill://refunds/limits.md")
            .await
            .is_err()
    );
    // A link that replaces a file later is not followed, either.
    fs::remove_file(temp.0.join("refunds/SKILL.md")).unwrap();
    symlink(
        outside.0.join("other/SKILL.md"),
        temp.0.join("refunds/SKILL.md"),
    )
    .unwrap();
    assert!(server.reload_skills().await.is_err());
    assert_eq!(names(&server).await, ["refunds"]);
}
