//! Claims of JSON Web Tokens, and the checks that make an access token valid.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use crate::{
    error::{AuthError, Result},
    metadata::document,
    time::UnixTime,
};

/// The claims of a token ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519#section-4)), or the members of an introspection
/// response, which have the same names.
///
/// Each claim that is checked may occur only once: a duplicate `aud` is a parse error.
#[derive(Clone)]
pub struct Claims {
    known: RegisteredClaims,
    all: Box<RawValue>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct RegisteredClaims {
    pub(crate) iss: Option<String>,
    pub(crate) sub: Option<String>,
    #[serde(default, deserialize_with = "one_or_many")]
    pub(crate) aud: Vec<String>,
    #[serde(default, deserialize_with = "date")]
    pub(crate) exp: Option<UnixTime>,
    #[serde(default, deserialize_with = "date")]
    pub(crate) nbf: Option<UnixTime>,
    #[serde(default, deserialize_with = "date")]
    pub(crate) iat: Option<UnixTime>,
    pub(crate) client_id: Option<String>,
    /// The client id in tokens of OpenID Connect and of some other servers.
    pub(crate) azp: Option<String>,
    /// The client id in tokens of Okta.
    pub(crate) cid: Option<String>,
    /// The client id in version 1 tokens of Entra.
    pub(crate) appid: Option<String>,
    #[serde(default, deserialize_with = "words")]
    pub(crate) scope: Vec<String>,
    /// The scopes in tokens of Entra and Okta.
    #[serde(default, deserialize_with = "words")]
    pub(crate) scp: Vec<String>,
    pub(crate) cnf: Option<Confirmation>,
}

/// The key to which a token is bound ([RFC 7800](https://www.rfc-editor.org/rfc/rfc7800#section-3.1)).
#[derive(Clone, Deserialize)]
pub(crate) struct Confirmation {
    /// The thumbprint of the key that signs the DPoP proofs.
    pub(crate) jkt: Option<String>,
}

impl Claims {
    pub(crate) fn parse(json: &[u8]) -> Result<Self> {
        let malformed = |_| AuthError::invalid_token("token has invalid claims");
        let all: &RawValue = serde_json::from_slice(json).map_err(malformed)?;
        Ok(Self {
            known: serde_json::from_str(all.get()).map_err(malformed)?,
            all: all.to_owned(),
        })
    }

    /// Parses an introspection response, in which some servers write times as text. An unreadable time is an error: it must not
    /// turn into no limit.
    pub(crate) fn parse_introspected(json: &[u8]) -> Result<Self> {
        Self::parse(json).or_else(|error| {
            let mut members = document::members(json).ok_or_else(|| error.clone())?;
            for (name, value) in &mut members {
                let is_time = matches!(name.as_str(), "exp" | "nbf" | "iat");
                let seconds = value.as_str().and_then(|it| it.trim().parse().ok());
                let seconds = seconds.filter(|it: &f64| is_time && it.is_finite());
                if let Some(seconds) = seconds {
                    *value = seconds.into();
                }
            }
            let members: serde_json::Map<_, _> = members.into_iter().collect();
            Self::parse(&serde_json::to_vec(&members).map_err(|_| error)?)
        })
    }

    pub(crate) fn known(&self) -> &RegisteredClaims {
        &self.known
    }

    /// Returns the claim with this name; `None` if it is absent or has another type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let all: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_str(self.all.get()).ok()?;
        serde_json::from_str(all.get(name)?.get()).ok()
    }

    /// Returns all claims, as the JSON object that was received.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.all.get()
    }
}

/// Shows neither values nor names of claims, since both can hold anything.
impl std::fmt::Debug for Claims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Claims(…)")
    }
}

/// The values that the claims of a valid token must have.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audiences: &'a [String],
    /// The audiences that only this issuer uses for the server.
    pub(crate) own_audiences: &'a [String],
    pub(crate) clock_skew: u64,
    pub(crate) now: UnixTime,
}

impl Expected<'_> {
    /// Checks issuer, audience, time and binding, in this order, so that the first error is the most useful one.
    pub(crate) fn check(&self, claims: &RegisteredClaims) -> Result<()> {
        if claims.exp.is_none() {
            return Err(AuthError::invalid_token("token has no expiry (`exp`)"));
        }
        self.check_issuer(claims.iss.as_deref())?;
        self.check_all_but_issuer(claims)
    }

    /// Checks the claims of an introspection response. The issuer may be absent, and so may the expiry, since an active token
    /// has not expired.
    pub(crate) fn check_introspected(&self, claims: &RegisteredClaims) -> Result<()> {
        if claims.iss.is_some() {
            self.check_issuer(claims.iss.as_deref())?;
        }
        self.check_all_but_issuer(claims)
    }

    fn check_issuer(&self, issuer: Option<&str>) -> Result<()> {
        if issuer == Some(self.issuer) {
            return Ok(());
        }
        Err(AuthError::invalid_token(
            "token is from an untrusted issuer",
        ))
    }

    fn check_all_but_issuer(&self, claims: &RegisteredClaims) -> Result<()> {
        let ours = || self.audiences.iter().chain(self.own_audiences);
        if !claims.aud.iter().any(|it| ours().any(|ours| ours == it)) {
            let ours: Vec<&str> = ours().map(String::as_str).collect();
            return Err(AuthError::invalid_token(format!(
                "token is not for this server: its audience must be {}",
                ours.join(" or ")
            )));
        }
        let has_ended = |end: UnixTime| self.now >= end.plus(self.clock_skew);
        if claims.exp.is_some_and(has_ended) {
            return Err(AuthError::invalid_token("token has expired"));
        }
        let soon = self.now.plus(self.clock_skew);
        if claims.nbf.is_some_and(|from| from > soon) || claims.iat.is_some_and(|at| at > soon) {
            return Err(AuthError::invalid_token("token is not valid yet"));
        }
        let binding = claims.cnf.as_ref();
        if binding.is_some_and(|it| it.jkt.is_none()) {
            return Err(AuthError::invalid_token(
                "token has an unsupported binding; only DPoP (`cnf.jkt`) is supported",
            ));
        }
        Ok(())
    }
}

/// A string, or a list of strings. `null` is absent.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(deserializer)? {
        Some(Wire::One(one)) => vec![one],
        Some(Wire::Many(many)) => many,
        None => Vec::new(),
    })
}

/// Words separated by spaces, or a list of strings, which some servers send instead.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = one_or_many(deserializer)?;
    let words = texts.iter().flat_map(|text| text.split_ascii_whitespace());
    Ok(words.map(str::to_owned).collect())
}

/// A time in seconds since 1970, which may have a fraction. Times before 1970 become its beginning.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UnixTime>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if seconds <= 0.0 {
        return Ok(Some(UnixTime::from_seconds(0)));
    }
    let date = UnixTime::from_fractional_seconds(seconds);
    date.map(Some)
        .ok_or_else(|| D::Error::custom("time is out of range"))
}
