//! Claims of JSON Web Tokens, and the checks that make an access token valid.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::value::RawValue;

use crate::{
    error::{AuthError, Result},
    time::UnixTime,
};

/// Claims of a token ([RFC 7519](https://www.rfc-editor.org/rfc/rfc7519#section-4)), or of an answer to an introspection,
/// which are the same.
///
/// The members that are looked at stand once: a second `aud` is an error of the parser, not a choice of it.
#[derive(Clone)]
pub struct Claims {
    known: Known,
    all: Box<RawValue>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Known {
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
    /// The client, as OpenID Connect and some servers have it.
    pub(crate) azp: Option<String>,
    /// The client, as Okta has it.
    pub(crate) cid: Option<String>,
    /// The client, as Entra has it in tokens of its first version.
    pub(crate) appid: Option<String>,
    #[serde(default, deserialize_with = "words")]
    pub(crate) scope: Vec<String>,
    /// Scopes, as Entra and Okta have them.
    #[serde(default, deserialize_with = "words")]
    pub(crate) scp: Vec<String>,
    pub(crate) cnf: Option<Confirmation>,
}

/// The key that a token is bound to ([RFC 7800](https://www.rfc-editor.org/rfc/rfc7800#section-3.1)).
#[derive(Clone, Deserialize)]
pub(crate) struct Confirmation {
    /// The thumbprint of a key that proofs are made with.
    pub(crate) jkt: Option<String>,
}

impl Claims {
    pub(crate) fn parse(json: &[u8]) -> Result<Self> {
        let malformed = |_| AuthError::invalid_token("the claims of the token cannot be read");
        let all: &RawValue = serde_json::from_slice(json).map_err(malformed)?;
        Ok(Self {
            known: serde_json::from_str(all.get()).map_err(malformed)?,
            all: all.to_owned(),
        })
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// A claim by its name; `None` where there is none, or it is of another type.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let all: std::collections::BTreeMap<String, &RawValue> =
            serde_json::from_str(self.all.get()).ok()?;
        serde_json::from_str(all.get(name)?.get()).ok()
    }

    /// All claims, as the JSON object that they came as.
    #[must_use]
    pub fn as_json(&self) -> &str {
        self.all.get()
    }
}

/// The names of the claims are left out with their values: there can be anything in them.
impl std::fmt::Debug for Claims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Claims(…)")
    }
}

/// What a token must say to be valid here.
pub(crate) struct Expected<'a> {
    pub(crate) issuer: &'a str,
    pub(crate) audiences: &'a [String],
    /// Those that this issuer alone writes for the server.
    pub(crate) own_audiences: &'a [String],
    pub(crate) clock_skew: u64,
    pub(crate) now: UnixTime,
}

impl Expected<'_> {
    /// Checks issuer, audience, time and binding, in the order of what tells most of a mistake.
    pub(crate) fn check(&self, claims: &Known) -> Result<()> {
        if claims.exp.is_none() {
            return Err(AuthError::invalid_token(
                "the token does not say when it expires",
            ));
        }
        self.check_issuer(claims.iss.as_deref())?;
        self.check_all_but_issuer(claims)
    }

    /// Checks what an issuer has said of a token when it was asked: it need not say who it is, and that the token is active
    /// says that it has not expired.
    pub(crate) fn check_introspected(&self, claims: &Known) -> Result<()> {
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
            "the token is from another issuer than this server trusts",
        ))
    }

    fn check_all_but_issuer(&self, claims: &Known) -> Result<()> {
        let ours = || self.audiences.iter().chain(self.own_audiences);
        if !claims.aud.iter().any(|it| ours().any(|ours| ours == it)) {
            let ours: Vec<&str> = ours().map(String::as_str).collect();
            return Err(AuthError::invalid_token(format!(
                "the token is not for this server: its audience must be {}",
                ours.join(" or ")
            )));
        }
        let has_ended = |end: UnixTime| self.now >= end.plus(self.clock_skew);
        if claims.exp.is_some_and(has_ended) {
            return Err(AuthError::invalid_token("the token has expired"));
        }
        let soon = self.now.plus(self.clock_skew);
        if claims.nbf.is_some_and(|from| from > soon) || claims.iat.is_some_and(|at| at > soon) {
            return Err(AuthError::invalid_token("the token is not valid yet"));
        }
        let binding = claims.cnf.as_ref();
        if binding.is_some_and(|it| it.jkt.is_none()) {
            return Err(AuthError::invalid_token(
                "the token is bound to something that this server cannot check: DPoP (\"jkt\") is what it can",
            ));
        }
        Ok(())
    }
}

/// A string, or a list of strings.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Wire::deserialize(deserializer)? {
        Wire::One(one) => vec![one],
        Wire::Many(many) => many,
    })
}

/// Words with spaces between them, or a list of strings, which some servers write instead.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = one_or_many(deserializer)?;
    let words = texts.iter().flat_map(|text| text.split_ascii_whitespace());
    Ok(words.map(str::to_owned).collect())
}

/// A number of seconds, which may have a fraction. What lies before 1970 is its beginning.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UnixTime>, D::Error> {
    let Some(seconds) = Option::<f64>::deserialize(deserializer)? else {
        return Ok(None);
    };
    if seconds <= 0.0 {
        return Ok(Some(UnixTime::from_seconds(0)));
    }
    let date = UnixTime::from_fractional_seconds(seconds);
    date.map(Some)
        .ok_or_else(|| D::Error::custom("a time that far off"))
}
