//! Logins that are sealed with a key in a keyring.

use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, mock};
use oxmcp::http::{KeyringTokenStore, TokenStore};

use super::*;

fn entry(keyring: &Arc<mock::Store>) -> Entry {
    let keyring: Arc<CredentialStore> = keyring.clone();
    keyring.build("my-app", "oxmcp logins", None).unwrap()
}

fn store(keyring: &Arc<mock::Store>, folder: &Folder) -> KeyringTokenStore {
    KeyringTokenStore::at(keyring.clone(), "my-app", folder.path())
}

#[tokio::test(start_paused = true)]
async fn keyring_holds_one_key_and_files_no_tokens() {
    let (folder, web, keyring) = (Folder::new(), Web::new(), mock::Store::new().unwrap());
    let login = |login: Login| login.store(store(&keyring, &folder));
    connect(&web, login(agreeing(&web))).await.unwrap();
    web.asked();
    connect(&web, login(Login::non_interactive()))
        .await
        .unwrap();
    assert!(web.asked().is_empty());
    assert_eq!(entry(&keyring).get_secret().unwrap().len(), 32);
    assert_eq!(keyring.inner.lock().unwrap().borrow().len(), 1);
    let text = fs::read_to_string(folder.file()).unwrap();
    assert!(text.contains(MCP) && !text.contains("hunter"), "{text}");
    let debug = format!("{:?}", store(&keyring, &folder));
    assert!(debug.contains("my-app"), "{debug}");
}

#[tokio::test(start_paused = true)]
async fn login_without_its_key_is_ignored() {
    let (folder, keyring) = (Folder::new(), mock::Store::new().unwrap());
    let store = store(&keyring, &folder);
    for user in ["a", "b"] {
        store.save(&key(user), "hunter2".into()).await.unwrap();
    }
    entry(&keyring).delete_credential().unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), None);
    store.save(&key("a"), "hunter3".into()).await.unwrap();
    assert_eq!(store.load(&key("a")).await.unwrap(), Some("hunter3".into()));
    let old = store.load(&key("b")).await.unwrap();
    assert_eq!(old, None, "the key is another one now");
    store.remove(&key("b")).await.unwrap();
    assert_eq!(store.keys("b").await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn sealed_text_opens_only_whole_under_its_key() {
    let (folder, keyring) = (Folder::new(), mock::Store::new().unwrap());
    let store = store(&keyring, &folder);
    store.save(&key("a"), "hunter2".into()).await.unwrap();
    let whole = fs::read_to_string(folder.file()).unwrap();
    let sealed = whole.rsplit('"').nth(1).unwrap();
    let changed = |to: String| whole.replacen(sealed, &to, 1);
    let turned: String = sealed.chars().rev().collect();
    let damaged = [
        changed(String::new()),
        changed("hunter2".to_owned()),
        changed(sealed.get(4..).unwrap().to_owned()),
        changed(turned),
    ];
    for text in damaged {
        fs::write(folder.file(), text).unwrap();
        assert_eq!(store.load(&key("a")).await.unwrap(), None);
    }
    // This user's sealed text in the file of another user, who would be logged in as this user.
    fs::remove_file(folder.file()).unwrap();
    store.save(&key("b"), "{}".into()).await.unwrap();
    let other = fs::read_to_string(folder.file()).unwrap();
    let foreign = other.replacen(other.rsplit('"').nth(1).unwrap(), sealed, 1);
    fs::write(folder.file(), foreign).unwrap();
    assert_eq!(store.load(&key("b")).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn failing_keyring_loses_nothing() {
    let (folder, web, keyring) = (Folder::new(), Web::new(), mock::Store::new().unwrap());
    let login = || agreeing(&web).store(store(&keyring, &folder));
    connect(&web, login()).await.unwrap();
    web.asked();
    let locked = || keyring_core::Error::NoStorageAccess("it is locked".into());
    let entry = entry(&keyring);
    let mock: &mock::Cred = entry.as_any().downcast_ref().unwrap();
    mock.set_error(locked());
    let error = connect(&web, login()).await.unwrap_err();
    assert!(
        error.is_authorization() && error.message().contains("it is locked"),
        "{error}"
    );
    assert!(web.asked().is_empty(), "nobody logs in over what is there");
    mock.set_error(locked());
    let saved = store(&keyring, &folder)
        .save(&key("a"), "hunter2".into())
        .await;
    assert!(saved.unwrap_err().message().contains("unlock"));
    connect(&web, login()).await.unwrap();
    assert!(web.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn non_key_keyring_entry_is_not_overwritten() {
    let (folder, keyring) = (Folder::new(), mock::Store::new().unwrap());
    entry(&keyring).set_password("hunter2").unwrap();
    let saved = store(&keyring, &folder).save(&key("a"), "{}".into()).await;
    let error = saved.unwrap_err();
    assert!(
        error.message().contains("is not a key") && !error.message().contains("hunter2"),
        "{error}"
    );
    assert_eq!(entry(&keyring).get_password().unwrap(), "hunter2");
}
