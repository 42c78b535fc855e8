//! Contract of token stores, checked against the stores of the SDK and against stores that break it.

use std::sync::Arc;

use oxmcp::{
    auth::Secret,
    http::{MemoryTokenStore, TokenStore, TokenStoreLock},
    testing::token_store_contract,
};

use super::*;

#[tokio::test(start_paused = true)]
async fn memory_store_satisfies_the_contract() {
    let make = || async {
        let store = MemoryTokenStore::new();
        (store.clone(), store)
    };
    token_store_contract(make).await.unwrap();
    // A store that is not empty must keep the contract, too.
    let store = MemoryTokenStore::new();
    let make = || async { (store.clone(), store.clone()) };
    token_store_contract(make).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_folder_handles_satisfy_the_contract() {
    let folder = Folder::new();
    let make = || async { (folder.store(), folder.store()) };
    token_store_contract(make).await.unwrap();
}

#[cfg(feature = "keyring")]
#[tokio::test(start_paused = true)]
async fn two_keyring_handles_satisfy_the_contract() {
    use oxmcp::http::KeyringTokenStore;

    let (folder, keyring) = (Folder::new(), keyring_core::mock::Store::new().unwrap());
    let handle = || KeyringTokenStore::at(keyring.clone(), "my-app", folder.path());
    let make = || async { (handle(), handle()) };
    token_store_contract(make).await.unwrap();
}

/// A way in which a store breaks the contract.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    LocksNobody,
    LocksOnce,
    ForgetsUsers,
    ListsAll,
    ListsOthers,
    KeepsWhatIsRemoved,
    KeepsTheOld,
    SharesNothing,
}

#[derive(Clone)]
struct Faulty {
    store: MemoryTokenStore,
    fault: Fault,
    lock: Arc<tokio::sync::Semaphore>,
}

impl Faulty {
    fn key(&self, key: &CredentialKey) -> CredentialKey {
        let mut key = key.clone();
        if self.fault == Fault::ForgetsUsers {
            key.issuer = format!("{}{}", key.user, key.issuer);
            key.user = String::new();
        }
        key
    }
}

impl TokenStore for Faulty {
    async fn load(&self, key: &CredentialKey) -> Result<Option<Secret>> {
        self.store.load(&self.key(key)).await
    }

    async fn save(&self, key: &CredentialKey, text: Secret) -> Result<()> {
        let key = self.key(key);
        if self.fault == Fault::KeepsTheOld && self.store.load(&key).await?.is_some() {
            return Ok(());
        }
        self.store.save(&key, text).await
    }

    async fn remove(&self, key: &CredentialKey) -> Result<()> {
        match self.fault {
            Fault::KeepsWhatIsRemoved => Ok(()),
            _ => self.store.remove(&self.key(key)).await,
        }
    }

    async fn lock(&self, key: &CredentialKey) -> Result<TokenStoreLock> {
        match self.fault {
            Fault::LocksNobody => Ok(TokenStoreLock::new(())),
            Fault::LocksOnce => {
                let permit = self.lock.try_acquire();
                let permit = permit.map_err(|_| Error::internal("the lock is held"))?;
                permit.forget();
                Ok(TokenStoreLock::new(()))
            }
            _ => self.store.lock(key).await,
        }
    }

    async fn keys(&self, user: &str) -> Result<Vec<CredentialKey>> {
        match self.fault {
            Fault::ListsAll => self.store.keys("").await,
            Fault::ListsOthers => {
                let others = self.store.keys(&format!("{user}/a")).await?;
                Ok([self.store.keys(user).await?, others].concat())
            }
            _ => self.store.keys(user).await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn contract_names_the_rule_a_store_breaks() {
    for (fault, expected) in [
        (Fault::LocksNobody, "a lock has one holder"),
        (Fault::LocksOnce, "the lock is held"),
        (Fault::ForgetsUsers, "replaces the whole text"),
        (Fault::ListsAll, "replaces the whole text"),
        (Fault::ListsOthers, "no keys of another user"),
        (Fault::KeepsWhatIsRemoved, "a removed text is gone"),
        (Fault::KeepsTheOld, "as it was saved"),
        (Fault::SharesNothing, "every handle loads"),
    ] {
        let make = || async move {
            let handle = |store| Faulty {
                store,
                fault,
                lock: Arc::new(tokio::sync::Semaphore::new(1)),
            };
            let one = handle(MemoryTokenStore::new());
            let other = match fault {
                Fault::SharesNothing => handle(MemoryTokenStore::new()),
                _ => one.clone(),
            };
            (one, other)
        };
        let error = token_store_contract(make).await.unwrap_err();
        assert!(error.message().contains(expected), "{fault:?}: {error}");
    }
}
