//! Files of logins: permissions, damage, hostile names, and locks that are not released.

use oxmcp::{auth::Secret, http::TokenStore};

use super::*;
use crate::http::client::login::flights::WHOLE;

/// The permission bits of a file or folder.
#[cfg(unix)]
fn rights(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;

    fs::metadata(path).unwrap().mode() & 0o777
}

#[cfg(unix)]
fn set_rights(path: &Path, rights: u32) {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, fs::Permissions::from_mode(rights)).unwrap();
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn stored_files_are_private_to_the_user() {
    let folder = Folder::new();
    let store = folder.store();
    let _lock = store.lock(&key("a")).await.unwrap();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    // The parent folder may hold other files, but was created for the store.
    assert_eq!(rights(&folder.0), 0o700);
    assert_eq!(rights(&folder.path()), 0o700);
    let names = names(&folder.path());
    assert_eq!(names.len(), 3, "a login and two locks: {names:?}");
    for name in names {
        assert_eq!(rights(&folder.path().join(&name)), 0o600, "{name}");
    }
    assert_eq!(
        format!("{store:?}"),
        format!("FileTokenStore {{ folder: {:?} }}", folder.path())
    );
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn world_accessible_folder_is_refused() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    for wide in [0o701, 0o710, 0o720, 0o755, 0o777] {
        set_rights(&folder.path(), wide);
        let errors = [
            store.load(&key("a")).await.unwrap_err(),
            store.save(&key("a"), "{}".into()).await.unwrap_err(),
            store.remove(&key("a")).await.unwrap_err(),
            store.lock(&key("a")).await.unwrap_err(),
            store.keys("a").await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.message().contains("chmod 700"), "{error}");
        }
    }
    set_rights(&folder.path(), 0o700);
    let text = store.load(&key("a")).await.unwrap();
    assert_eq!(text, Some("hunter2".into()));
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn world_readable_file_permissions_are_tightened() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    for wide in [0o604, 0o640, 0o644, 0o666] {
        set_rights(&folder.file(), wide);
        let text = store.load(&key("a")).await.unwrap();
        assert_eq!(text, Some("hunter2".into()));
        assert_eq!(rights(&folder.file()), 0o600);
    }
}

#[tokio::test(start_paused = true)]
async fn hostile_names_stay_within_the_folder() {
    let folder = Folder::new();
    let store = folder.store();
    let long = "x".repeat(1 << 20);
    let hostile = [
        "",
        ".",
        "..",
        "../../x",
        "/etc/x",
        "a\0b",
        "C:\\x",
        "new.tmp",
        "write.lock",
        "é\n",
        &long,
    ];
    let keys = hostile.iter().flat_map(|it| {
        [
            CredentialKey::new(*it, "https://as.example", MCP),
            CredentialKey::new("user", *it, MCP),
            CredentialKey::new("user", "https://as.example", *it),
        ]
    });
    let keys: Vec<_> = keys.collect();
    for (index, key) in keys.iter().enumerate() {
        store
            .save(key, Secret::new(index.to_string()))
            .await
            .unwrap();
        store.lock(key).await.unwrap();
    }
    for (index, key) in keys.iter().enumerate() {
        let text = store.load(key).await.unwrap();
        assert_eq!(text, Some(Secret::new(index.to_string())), "{index}");
        assert!(store.keys(&key.user).await.unwrap().contains(key));
    }
    assert_eq!(store.keys("user").await.unwrap().len(), 2 * hostile.len());
    assert_eq!(names(&folder.0), ["logins"]);
    let (locks, logins): (Vec<_>, Vec<_>) = names(&folder.path())
        .into_iter()
        .partition(|it| it.ends_with(".lock"));
    assert_eq!(logins.len(), keys.len());
    assert!(locks.len() <= keys.len() + 1);
    let is_digest = |it: &str| it.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-');
    for name in logins {
        assert!(name.strip_suffix(".json").is_some_and(is_digest), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn locks_do_not_grow_with_the_keys() {
    let folder = Folder::new();
    let store = folder.store();
    for user in 0..1000 {
        store.lock(&key(&user.to_string())).await.unwrap();
    }
    assert!(names(&folder.path()).len() <= 256);
}

#[tokio::test(start_paused = true)]
async fn oversized_login_is_refused_and_old_one_kept() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    let error = store
        .save(&key("a"), Secret::new("x".repeat(5 << 20)))
        .await;
    assert!(error.unwrap_err().is_limit());
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("hunter2".into()));
}

#[tokio::test(start_paused = true)]
async fn damaged_file_is_ignored_and_leads_to_login() {
    let (folder, web) = (Folder::new(), Web::new());
    let login = || agreeing(&web).store(folder.store());
    connect(&web, login()).await.unwrap();
    let whole = fs::read(folder.file()).unwrap();
    let cut = |at: usize| whole[..at].to_vec();
    let text = String::from_utf8(whole.clone()).unwrap();
    let newer = text.replacen("\"version\":1", "\"version\":1000", 1);
    let another = text.replacen("\"user\":\"\"", "\"user\":\"b\"", 1);
    assert!(newer != text && another != text);
    let endless = vec![b' '; 5 << 20];
    for damaged in [
        Vec::new(),
        cut(1),
        cut(whole.len() / 2),
        cut(whole.len() - 1),
        b"\xff\xfe".to_vec(),
        b"null".to_vec(),
        b"{}".to_vec(),
        "[".repeat(100_000).into(),
        newer.into(),
        another.into(),
        endless,
    ] {
        fs::write(folder.file(), damaged).unwrap();
        let store = folder.store();
        assert_eq!(store.keys("").await.unwrap(), []);
        assert_eq!(store.load(&key("")).await.unwrap(), None);
        assert_eq!(store.keys("b").await.unwrap(), []);
        web.asked();
        connect(&web, login()).await.unwrap();
        assert_eq!(web.asked(), WHOLE);
        assert_eq!(store.keys("").await.unwrap(), [key("")]);
    }
}

#[tokio::test(start_paused = true)]
async fn interrupted_write_keeps_the_stored_login() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    // A process that is killed before it renames the file leaves such a file.
    fs::write(folder.path().join("new.tmp"), "{\"version\":1,\"ke").unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("hunter2".into()));
    assert_eq!(store.keys("a").await.unwrap(), [key("a")]);
    store.save(&key("a"), "hunter3".into()).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("hunter3".into()));
    assert!(!folder.path().join("new.tmp").exists());
}

/// A link in the place of the temporary file could lead a save elsewhere.
#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn save_does_not_follow_links() {
    let folder = Folder::new();
    let store = folder.store();
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    let elsewhere = folder.0.join("elsewhere");
    fs::write(&elsewhere, "as it was").unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.path().join("new.tmp")).unwrap();
    store.save(&key("a"), "hunter3".into()).await.unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "as it was");
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("hunter3".into()));
}

#[tokio::test(start_paused = true)]
async fn failing_store_prevents_the_login() {
    let (folder, web) = (Folder::new(), Web::new());
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.path(), "a file").unwrap();
    let error = connect(&web, agreeing(&web).store(folder.store()))
        .await
        .unwrap_err();
    assert!(error.is_authorization() && !error.is_network(), "{error}");
    assert!(error.message().contains("is a file"), "{error}");
    assert!(web.asked().is_empty());
    assert!(
        web.fake().log.is_empty(),
        "it may have been done, and is not repeated"
    );
}

#[tokio::test(start_paused = true)]
async fn refresh_requires_the_lock() {
    let (folder, web) = (Folder::new(), Web::new());
    let session = connect(&web, agreeing(&web).store(folder.store()))
        .await
        .unwrap();
    web.asked();
    web.fake().expire();
    let other = folder.store();
    let lock = other.lock(&other.keys("").await.unwrap()[0]).await.unwrap();
    let before = tokio::time::Instant::now();
    let error = call(&session, "add").await.unwrap_err();
    assert!(error.is_authorization(), "{error}");
    assert!(
        error.message().contains("it is locked elsewhere"),
        "{error}"
    );
    assert!(before.elapsed().as_secs() >= 30);
    let asked = web.asked();
    assert!(!asked.contains(&"refresh_token".to_owned()), "{asked:?}");
    drop(lock);
    call(&session, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
}
