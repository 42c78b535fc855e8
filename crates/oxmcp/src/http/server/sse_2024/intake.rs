//! Taking in the bodies of requests.

use std::{error::Error as StdError, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::responses::{Refused, refuse};

/// How long a client may take to send its request: none needs a minute for 4 MiB.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Messages are JSON. Browsers send nothing that calls itself so to another site without asking it before.
pub(super) fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let only = match (types.next(), types.next()) {
        (Some(only), None) => only.to_str().unwrap_or_default(),
        _ => "",
    };
    let essence = only.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(refuse(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the Content-Type must be application/json",
    ))
}

/// Reads the body of a request.
pub(super) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Refused>
where
    B: Body<Data: Send, Error: Into<Box<dyn StdError + Send + Sync>>> + Send,
{
    let read = Box::pin(Limited::new(body, limit).collect());
    match timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {limit} bytes, which is the limit"),
        )),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the body of a request broke off");
            Err(refuse(StatusCode::BAD_REQUEST, "the body broke off"))
        }
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body took longer than a minute to arrive",
        )),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn attack_2_only_json_is_taken() {
        let headers = |types: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for it in types {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(it));
            }
            headers
        };
        for right in ["application/json", "Application/JSON ; charset=utf-8"] {
            assert!(is_json(&headers(&[right])).is_ok(), "{right}");
        }
        let wrong: [&[_]; 7] = [
            &[],
            &[""],
            &["text/plain"],
            &["text/plain; application/json"],
            &["application/jsonp"],
            &["application/x-www-form-urlencoded"],
            &["application/json", "application/json"],
        ];
        for types in wrong {
            let status = is_json(&headers(types)).unwrap_err().status();
            assert_eq!(status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{types:?}");
        }
    }
}
