//! The scheme and authority that a connection leads to.

use http::{
    HeaderValue, Uri,
    uri::{Authority, Scheme},
};

use crate::error::{Error, Result};

/// The server of a URL, by which the pool distinguishes connections.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    scheme: Scheme,
    authority: Authority,
}

impl Destination {
    pub(crate) fn of(uri: &Uri) -> Result<Self> {
        let parts = (uri.scheme().cloned(), uri.authority().cloned());
        let (Some(scheme), Some(authority)) = parts else {
            return Err(Error::misuse("the request needs an absolute URL"));
        };
        Ok(Self { scheme, authority })
    }

    pub(crate) fn is_of(&self, uri: &Uri) -> bool {
        uri.scheme() == Some(&self.scheme) && uri.authority() == Some(&self.authority)
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The header `Host` of requests to the server.
    pub(crate) fn host_header(&self) -> Result<HeaderValue> {
        let default = default_port(&self.scheme);
        let port = self.authority.port_u16().filter(|port| *port != default);
        let host = self.authority.host();
        let host = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        HeaderValue::try_from(host)
            .map_err(|_| Error::misuse("the host of the URL is not valid in a header"))
    }
}

/// The port of URLs that name no port.
pub(crate) fn default_port(scheme: &Scheme) -> u16 {
    if *scheme == Scheme::HTTPS { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_header_omits_only_the_default_port() {
        for (url, host) in [
            ("http://a/x", "a"),
            ("http://a:80/", "a"),
            ("http://a:443/", "a:443"),
            ("https://a:443/", "a"),
            ("https://me@[::1]:8080/", "[::1]:8080"),
        ] {
            let destination = Destination::of(&url.parse().unwrap()).unwrap();
            assert_eq!(destination.host_header().unwrap(), host, "{url}");
        }
    }
}
