//! Where requests may come from. A page in a browser can make requests to whatever its user can reach, under a name of its own
//! for this machine: `Host` and `Origin` give it away.

use http::{HeaderMap, HeaderName, header, request::Parts};

use super::{
    allowed::{Allowed, Authority, Origin},
    refusal::Fault,
    rungs::Verdict,
};
use crate::{Error, Result};

/// Who may come near an endpoint. By default that is a server on its user's own machine: nobody else names it, and no page
/// from elsewhere talks to it.
#[derive(Clone, Debug, Default)]
pub(in crate::http::server) struct Policy {
    hosts: Allowed<Authority<'static>>,
    origins: Allowed<Origin>,
    /// The first thing that is wrong with what was said.
    problem: Option<String>,
}

impl Policy {
    /// Replaces the hosts that the endpoint is reached by: each `name` or `name:port`, or `*` for any.
    pub(in crate::http::server) fn allow_hosts(
        &mut self,
        hosts: impl IntoIterator<Item = impl Into<String>>,
    ) {
        let hosts = list(hosts, |host| {
            Authority::parse(host).map(Authority::into_owned)
        });
        self.hosts = self.settle(
            hosts,
            "a host, like \"example.com\", \"example.com:8080\", \"[::1]\", or \"*\" for any",
        );
    }

    /// Replaces the origins from which pages may talk to the endpoint: each `scheme://host` or `scheme://host:port`, or `*` for
    /// any. Pages of the host itself always may, where not any host will do.
    pub(in crate::http::server) fn allow_origins(
        &mut self,
        origins: impl IntoIterator<Item = impl Into<String>>,
    ) {
        let origins = list(origins, Origin::parse);
        self.origins = self.settle(
            origins,
            "an origin, like \"https://example.com\" or \"http://localhost:3000\", or \"*\" for any",
        );
    }

    /// Says what is wrong with what was allowed.
    ///
    /// # Errors
    /// Where something is. Then nobody should be let in: what was meant is not known.
    pub(in crate::http::server) fn check(&self) -> Result<()> {
        match &self.problem {
            Some(problem) => Err(Error::misuse(problem.clone())),
            None => Ok(()),
        }
    }

    /// Notes what cannot be read, and then allows nothing.
    fn settle<T>(&mut self, listed: Result<Allowed<T>, String>, wanted: &str) -> Allowed<T> {
        listed.unwrap_or_else(|entry| {
            let problem = format!("{entry:?} is not {wanted}");
            self.problem.get_or_insert(problem);
            Allowed::Listed(Vec::new())
        })
    }
}

/// Those that are allowed, or the first that cannot be read.
fn list<T>(
    entries: impl IntoIterator<Item = impl Into<String>>,
    parse: fn(&str) -> Option<T>,
) -> Result<Allowed<T>, String> {
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.into();
        if entry == "*" {
            return Ok(Allowed::Any);
        }
        listed.push(parse(&entry).ok_or(entry)?);
    }
    Ok(Allowed::Listed(listed))
}

/// The step [`Rung::Host`](super::rungs::Rung::Host).
pub(super) fn host(policy: &Policy, parts: &Parts) -> Verdict {
    let host = named_host(parts)?;
    if policy.hosts == Allowed::Loopback && Authority::is_usual(host) {
        return Ok(());
    }
    if policy.hosts.has(&parsed(host)?) {
        return Ok(());
    }
    Err(
        "the endpoint is not reached by the name in `Host`; whoever runs it can allow that name"
            .into(),
    )
}

/// The step [`Rung::Origin`](super::rungs::Rung::Origin). Who is no browser sends none.
pub(super) fn origin(policy: &Policy, parts: &Parts) -> Verdict {
    let Some(origin) = only(&parts.headers, &header::ORIGIN)? else {
        return Ok(());
    };
    if policy.origins == Allowed::Any {
        return Ok(());
    }
    let is_allowed = Origin::parse(origin).is_some_and(|origin| {
        let is_own = policy.hosts != Allowed::Any;
        let host = || named_host(parts).and_then(parsed);
        let is_own = is_own && host().is_ok_and(|host| origin.is_of(&host));
        is_own || policy.origins.has(&origin)
    });
    if is_allowed {
        return Ok(());
    }
    Err(
        "pages of this `Origin` may not talk to the endpoint; whoever runs it can allow them"
            .into(),
    )
}

/// The host that the request names: in `Host`, or in what HTTP/2 has instead.
fn named_host(parts: &Parts) -> Result<&str, Fault> {
    let header = only(&parts.headers, &header::HOST)?;
    let target = parts.uri.authority().map(http::uri::Authority::as_str);
    match (header, target) {
        (Some(header), Some(target)) if !header.eq_ignore_ascii_case(target) => {
            Err("`Host` and the URL of the request name different hosts".into())
        }
        (Some(host), _) | (None, Some(host)) => Ok(host),
        (None, None) => Err("the request must name its host in `Host`".into()),
    }
}

fn parsed(host: &str) -> Result<Authority<'_>, Fault> {
    Authority::parse(host).ok_or_else(|| "`Host` names no host".into())
}

/// The value of a header that may stand there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(format!("the header {name} stands there twice").into());
    }
    let value = value.to_str();
    let value = value.map_err(|_| Fault::from(format!("the header {name} cannot be read")))?;
    Ok(Some(value))
}
