//! The contract of credential stores: the rules that every [`TokenStore`] must follow.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use futures_util::future::try_join_all;
use oxmcp_auth::{Secret, client::CredentialKey};
use tokio::task::yield_now;

use super::contract_rules::{must, unique};
use crate::{
    error::{Error, Result},
    http::TokenStore,
};

/// The number of polls of other tasks after which a future is considered to wait.
const POLLS: usize = 32;
/// The number of concurrent writers of one text, and the number of changes by each.
const WRITERS: usize = 8;
const CHANGES: usize = 4;

/// Checks a credential store against the contract of [`TokenStore`]. `make` returns two handles to one store, as in two
/// processes. Each rule calls it again, and may get handles to the same store, because user names are never reused.
///
/// ```
/// use oxmcp::{http::MemoryTokenStore, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::token_store_contract(|| async {
///     let store = MemoryTokenStore::new();
///     (store.clone(), store)
/// })
/// .await
/// # }
/// ```
///
/// # Errors
/// The first broken rule, with the details; or an error of the store.
///
/// # Cancel safety
/// If the future is dropped before it returns, its data may remain in the store.
pub async fn token_store_contract<S, F>(make: impl Fn() -> F) -> Result<()>
where
    S: TokenStore,
    F: Future<Output = (S, S)>,
{
    loads_what_was_saved(&make().await).await?;
    replaces_a_text(&make().await).await?;
    removed_text(&make().await).await?;
    keys_differ_by_each_part(&make().await).await?;
    keys_of_a_user(&make().await).await?;
    saves_at_once(&make().await).await?;
    one_holder_of_a_lock(&make().await).await?;
    given_up_locks(&make().await).await
}

fn key(user: &str) -> CredentialKey {
    CredentialKey::new(user, "https://as.example", "https://mcp.example/mcp")
}

async fn loaded(store: &impl TokenStore, key: &CredentialKey) -> Result<Option<String>> {
    let text = store.load(key).await?;
    Ok(text.map(|it| it.expose().to_owned()))
}

async fn loads_what_was_saved<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let key = key(&unique());
    let rule = "a key that was not saved has no text";
    must(rule, loaded(one, &key).await?, None)?;
    let rule = "every handle loads a text as it was saved";
    let long = "\u{1f980}".repeat(50_000);
    for text in ["", "{}", "{\"a\": \"é\\n\0\"}\r\n", &long] {
        one.save(&key, text.into()).await?;
        for store in [one, other] {
            must(rule, loaded(store, &key).await?.as_deref(), Some(text))?;
        }
    }
    Ok(())
}

async fn replaces_a_text<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let key = key(&unique());
    let rule = "saving again replaces the whole text";
    one.save(&key, Secret::new("a".repeat(1000))).await?;
    other.save(&key, "b".into()).await?;
    must(rule, loaded(one, &key).await?.as_deref(), Some("b"))?;
    must(rule, one.keys(&key.user).await?, vec![key])
}

async fn removed_text<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let (key, still) = (key(&unique()), key(&unique()));
    one.save(&key, "a".into()).await?;
    one.save(&still, "b".into()).await?;
    for _ in 0..2 {
        other.remove(&key).await?;
        let rule = "a removed text is gone, and removing it again is not an error";
        must(rule, loaded(one, &key).await?, None)?;
        must(rule, one.keys(&key.user).await?, Vec::new())?;
        let rule = "texts are removed one at a time";
        must(rule, loaded(one, &still).await?.as_deref(), Some("b"))?;
    }
    Ok(())
}

async fn keys_differ_by_each_part<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let user = unique();
    let parts = [
        ("", "a", "b"),
        ("", "ab", ""),
        ("a", "", "b"),
        ("", "", "ab"),
        ("/../../a", "../../a", "..\\a"),
        ("\0", "\n", "a\0b"),
        ("", "A", "b"),
    ];
    let keys = parts.map(|(end, issuer, resource)| {
        CredentialKey::new(format!("{user}{end}"), issuer, resource)
    });
    for (index, key) in keys.iter().enumerate() {
        one.save(key, Secret::new(index.to_string())).await?;
    }
    for (index, key) in keys.iter().enumerate() {
        let rule = "keys that differ in any part share nothing, whatever they contain";
        must(rule, loaded(other, key).await?, Some(index.to_string()))?;
    }
    Ok(())
}

async fn keys_of_a_user<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let user = unique();
    let resources = ["https://a.example", "https://b.example"];
    let mut keys = resources.map(|it| CredentialKey::new(&user, "https://as.example", it));
    let longer = key(&format!("{user}/a"));
    let rule = "a user without saved texts has no keys";
    must(rule, one.keys(&user).await?, Vec::new())?;
    for key in keys.iter().chain([&longer]) {
        one.save(key, "{}".into()).await?;
    }
    let mut found = other.keys(&user).await?;
    found.sort();
    keys.sort();
    let rule = "a user has all of its keys, and no keys of another user";
    must(rule, found, keys.to_vec())?;
    must(rule, other.keys(&longer.user).await?, vec![longer])
}

async fn saves_at_once<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let user = unique();
    let resources = 0..16;
    let keys = resources.map(|it| CredentialKey::new(&user, "https://as.example", it.to_string()));
    let keys: Vec<_> = keys.collect();
    let saved = keys.iter().zip([one, other].into_iter().cycle());
    try_join_all(saved.map(|(key, store)| store.save(key, Secret::new(&*key.resource)))).await?;
    for key in &keys {
        let rule = "texts that are saved concurrently are all stored";
        must(rule, loaded(one, key).await?.as_ref(), Some(&key.resource))?;
    }
    must(
        "the keys of texts that are saved concurrently are all listed",
        one.keys(&user).await?.len(),
        keys.len(),
    )
}

async fn one_holder_of_a_lock<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let key = key(&unique());
    one.save(&key, "0".into()).await?;
    let stores = [one, other].into_iter().cycle();
    try_join_all(stores.take(WRITERS).map(|it| count_up(it, &key))).await?;
    let rule = "a lock has one holder across all handles, which can load and save";
    let expected = (WRITERS * CHANGES).to_string();
    must(rule, loaded(one, &key).await?, Some(expected))
}

async fn count_up(store: &impl TokenStore, key: &CredentialKey) -> Result<()> {
    for _ in 0..CHANGES {
        let _lock = store.lock(key).await?;
        let count = loaded(store, key).await?.unwrap_or_default();
        let count: usize = count.parse().map_err(|_| Error::internal(count))?;
        // Other tasks could take the lock now, if it were not exclusive.
        for _ in 0..POLLS {
            yield_now().await;
        }
        let text = Secret::new((count + 1).to_string());
        store.save(key, text).await?;
    }
    Ok(())
}

async fn given_up_locks<S: TokenStore>((one, other): &(S, S)) -> Result<()> {
    let key = key(&unique());
    let lock = one.lock(&key).await?;
    for store in [one, other] {
        let mut waiting = pin!(store.lock(&key));
        for _ in 0..POLLS {
            let rule = "locking waits while the lock is held";
            let waits = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending()));
            must(rule, waits.await, true)?;
            yield_now().await;
        }
    }
    drop(lock);
    // This would wait forever, or fail, if an abandoned lock request still had the lock.
    one.lock(&key).await?;
    other.lock(&key).await.map(drop)
}
