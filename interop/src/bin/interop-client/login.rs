//! Logins of the client: its identity, and the lifetime of its tokens.
//!
//! | HOW            | the client                                                                       |
//! |----------------|----------------------------------------------------------------------------------|
//! | `person`       | is registered, and the user logs in by the program in the variable `BROWSER`     |
//! | `pinned`       | the same, if the server spells the issuer differently                            |
//! | `document`     | has an id that is the URL of its metadata, and the user logs in                  |
//! | `document-key` | the same, with a key, which is in the variable `CLIENT_KEY`                      |
//! | `secret`       | acts for itself, with the secret in the variable `CLIENT_SECRET`                 |
//! | `key`          | acts for itself, with its key                                                    |

use std::{env, sync::Arc, time::Duration};

use oxmcp::{
    Client as McpClient, ClientSession, Error,
    auth::{client::Client, jose::SigningKey},
    http::{Endpoint, Login, MemoryTokenStore, TokenStore},
};
use tokio::time::sleep;

use crate::{
    call::{Outcome, call, ensure},
    person::{Person, browse},
};

const DOCUMENTS: &str = "https://client.example";
/// The time until a token of 5 s is refreshed, and then the time until it has expired.
const REFRESHED: Duration = Duration::from_secs(4);
const ENDED: Duration = Duration::from_secs(2);
/// The time for which our server caches the introspection of a token.
const CACHE_LIFETIME: Duration = Duration::from_millis(1200);

/// The login of a user, or of the client for itself.
pub(crate) fn login(how: &str, issuer: &str, person: &Person) -> Outcome<Login> {
    let login = match how {
        "person" => by_person(person),
        "pinned" => by_person(person).issuer(issuer),
        "document" => by_person(person).client_document(document("public.json")?),
        "document-key" => {
            let client = document("key.json")?.with_key(key()?).issued_by(issuer);
            by_person(person).client_document(client)
        }
        "secret" => {
            let client = Client::new("service")?.with_secret(env::var("CLIENT_SECRET")?);
            Login::client_credentials(client.issued_by(issuer))
        }
        "key" => {
            let client = Client::new("service-key")?.with_key(key()?);
            Login::client_credentials(client.issued_by(issuer))
        }
        _ => return Err(format!("unknown login `{how}`").into()),
    };
    Ok(login.store(person.store().clone()))
}

fn by_person(person: &Person) -> Login {
    let person = person.clone();
    Login::with_loopback(move |url| {
        let person = person.clone();
        async move {
            person
                .log_in(&url)
                .map_err(|error| Error::internal(error.to_string()))
        }
    })
    .client_name("interop-client")
}

fn document(name: &str) -> Outcome<Client> {
    Ok(Client::from_document_url(format!("{DOCUMENTS}/{name}"))?)
}

fn key() -> Outcome<Arc<SigningKey>> {
    let key = SigningKey::from_pem(&env::var("CLIENT_KEY")?)?;
    Ok(Arc::new(key.with_key_id("client")))
}

/// Runs a task of the command line that concerns logins.
pub(crate) async fn run(
    task: (&str, &[&str]),
    session: &ClientSession,
    person: &Person,
) -> Outcome {
    match task {
        ("--wait", [seconds]) => {
            sleep(Duration::from_secs(seconds.parse()?)).await;
            Ok(())
        }
        ("--logins", [count]) => {
            let logins = person.logins();
            ensure(
                logins == count.parse::<usize>()?,
                &format!("{logins} logins"),
            )
        }
        ("--replay", [url, tool, args, text]) => {
            replay(session, person, [url, tool, args, text]).await
        }
        ("--revoke", [issuer, tool, args, text]) => {
            revoke(session, person, [issuer, tool, args, text]).await
        }
        _ => Err("wrong number of arguments".into()),
    }
}

/// Uses a stolen copy of the tokens after they were refreshed.
async fn replay(
    session: &ClientSession,
    person: &Person,
    [url, tool, args, text]: [&str; 4],
) -> Outcome {
    let (stolen, before) = (copy(person.store()).await?, person.logins());
    sleep(REFRESHED).await;
    call(session, tool, args, text).await?;
    sleep(ENDED).await;
    ensure(person.logins() == before, "a login")?;

    let login = Login::non_interactive().store(stolen);
    let thief = McpClient::new("interop-thief", "1.0.0");
    let refused = thief.connect(Endpoint::new(url).login(login)).await;
    ensure(refused.is_err(), "a session by tokens that were refreshed")?;

    sleep(REFRESHED).await;
    call(session, tool, args, text).await?;
    asked_once_more(person, before)
}

fn asked_once_more(person: &Person, before: usize) -> Outcome {
    let since = person.logins() - before;
    ensure(since == 1, &format!("{since} logins"))
}

async fn copy(store: &MemoryTokenStore) -> Outcome<MemoryTokenStore> {
    let copy = MemoryTokenStore::new();
    for key in store.keys("").await? {
        let text = store.load(&key).await?.ok_or("no stored credentials")?;
        copy.save(&key, text).await?;
    }
    Ok(copy)
}

/// Revokes the access token, and with it the refresh token, as the issuer implements it. The server's cached knowledge of the token
/// is valid only for a short time.
async fn revoke(
    session: &ClientSession,
    person: &Person,
    [issuer, tool, args, text]: [&str; 4],
) -> Outcome {
    let before = person.logins();
    let mut browser = browse(&format!("{issuer}/administrator/revoke"))?;
    ensure(browser.wait()?.success(), "that nothing was revoked")?;
    sleep(CACHE_LIFETIME).await;
    call(session, tool, args, text).await?;
    asked_once_more(person, before)
}
