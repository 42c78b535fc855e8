//! Envelopes that deviate from JSON-RPC, rewritten as valid ones.

use std::borrow::Cow;

use oxmcp_json::{Cursor, Text, write_string};

use super::{Leniency, Tolerated, repair::without_lone_surrogates};
use crate::jsonrpc::{envelope::Envelope, id::number};

/// The members of an envelope that were found, each as its text.
#[derive(Default)]
struct Found<'a> {
    version: Option<Text<'a>>,
    id: Option<Text<'a>>,
    method: Option<Text<'a>>,
    params: Option<Text<'a>>,
    result: Option<Text<'a>>,
    error: Option<Text<'a>>,
}

impl<'a> Found<'a> {
    /// Reads the members. `None` if the text is not an object, or has a name twice.
    fn read(text: &'a str) -> Option<Self> {
        let mut found = Self::default();
        let mut is_twice = false;
        let whole = Cursor::new(text).read_object(|key, cursor| {
            let slot = match key.as_str().as_deref() {
                Some("jsonrpc") => &mut found.version,
                Some("id") => &mut found.id,
                Some("method") => &mut found.method,
                Some("params") => &mut found.params,
                Some("result") => &mut found.result,
                Some("error") => &mut found.error,
                _ => return cursor.value().map(drop),
            };
            is_twice |= slot.replace(cursor.value()?).is_some();
            Ok(())
        });
        (matches!(whole, Ok(true)) && !is_twice).then_some(found)
    }

    /// A request must have the exact version, since two parsers could otherwise read it differently. A response may deviate: it
    /// can only be JSON-RPC.
    fn check_version(&self, is_asked: bool, mended: &mut Mended) -> Option<()> {
        if self.version.is_some_and(|version| version.is_str("2.0")) {
            return Some(());
        }
        let is_close = self.version.is_none_or(|version| {
            matches!(version.get(), "2" | "2.0" | "null" | r#""2""# | r#""1.0""#)
        });
        mended.tolerate(Leniency::Version, "/jsonrpc");
        (is_close && !is_asked).then_some(())
    }

    fn write_id(&self, is_asked: bool, mended: &mut Mended) {
        let Some(id) = self.id else { return };
        if id.is_null() && is_asked {
            return mended.tolerate(Leniency::EnvelopeMember, "/id");
        }
        match whole_number(id) {
            Some(number) => {
                mended.tolerate(Leniency::TextId, "/id");
                mended.add("id", &number);
            }
            None => mended.add("id", id.get()),
        }
    }

    fn write_request(&self, method: Text<'_>, mended: &mut Mended) -> Option<()> {
        let answers = [self.result, self.error];
        if answers.iter().flatten().any(|it| !it.is_null()) {
            return None;
        }
        if answers.iter().any(Option::is_some) {
            mended.tolerate(Leniency::EnvelopeMember, "");
        }
        mended.add("method", method.get());
        if let Some(params) = self.params.filter(|params| !params.is_null()) {
            let params = mend(params, &mut |leniency, place| {
                mended.tolerate(leniency, place);
            })?;
            mended.add("params", &params);
        }
        Some(())
    }

    fn write_response(&self, mended: &mut Mended) -> Option<()> {
        match (self.result, self.error) {
            (result, Some(error)) if !error.is_null() => {
                if result.is_some() {
                    // An error next to a null is an error; next to a result it could be either.
                    result.filter(|result| result.is_null())?;
                    mended.tolerate(Leniency::EnvelopeMember, "/result");
                }
                let mut tolerate = |leniency, place: &str| mended.tolerate(leniency, place);
                let error = error_object(error, &mut tolerate);
                mended.add("error", &error);
            }
            (Some(result), error) => {
                if error.is_some() {
                    mended.tolerate(Leniency::EnvelopeMember, "/error");
                }
                mended.add("result", result.get());
            }
            (None, _) => return None,
        }
        Some(())
    }
}

/// A message that is written again, and the deviations of the old one.
struct Mended {
    out: Vec<u8>,
    tolerated: Vec<Tolerated>,
}

impl Mended {
    fn tolerate(&mut self, leniency: Leniency, place: &str) {
        self.tolerated.push(Tolerated::new(leniency, place));
    }

    fn add(&mut self, name: &str, value: &str) {
        for part in [",\"", name, "\":", value] {
            self.out.extend_from_slice(part.as_bytes());
        }
    }
}

/// Rewrites a message that could not be read strictly as the message that it was meant to be. `None` if it is not JSON, has a
/// duplicate name, cannot be understood, or would not change.
#[must_use]
pub fn mend_message(bytes: &[u8]) -> Option<(Vec<u8>, Vec<Tolerated>)> {
    let mut mended = Mended {
        out: br#"{"jsonrpc":"2.0""#.to_vec(),
        tolerated: Vec::new(),
    };
    let encoded = without_encoded_surrogates(bytes)?;
    let text = without_lone_surrogates(&encoded);
    for repaired in [&encoded, &text] {
        if matches!(repaired, Cow::Owned(_)) {
            mended.tolerate(Leniency::LoneSurrogate, "");
        }
    }
    let found = Found::read(text.trim())?;
    let method = found.method.filter(|method| method.as_str().is_some());
    found.check_version(method.is_some(), &mut mended)?;
    if found.id.is_some_and(Text::is_null) {
        // The response to a request with this ID could not be matched to it.
        let name = method.and_then(Text::as_str);
        name.is_none_or(|name| name.starts_with("notifications/"))
            .then_some(())?;
    }
    if found.method.is_some() && method.is_none() {
        mended.tolerate(Leniency::EnvelopeMember, "/method");
    }
    found.write_id(method.is_some(), &mut mended);
    match method {
        Some(method) => found.write_request(method, &mut mended)?,
        None => found.write_response(&mut mended)?,
    }
    let Mended { mut out, tolerated } = mended;
    out.push(b'}');
    // For example, an invalid ID cannot be repaired.
    let mut params = Text::EMPTY;
    let is_strict = Envelope::parse(&out, &mut params).is_ok();
    (is_strict && !tolerated.is_empty()).then_some((out, tolerated))
}

fn mend(params: Text<'_>, tolerate: &mut impl FnMut(Leniency, &str)) -> Option<String> {
    if !params.is_object() {
        let is_empty = params.get().starts_with('[') && params.items().next().is_none();
        return is_empty.then(|| {
            tolerate(Leniency::EmptyArray, "/params");
            "{}".to_owned()
        });
    }
    let is_odd = |(key, value): &(Text<'_>, Text<'_>)| key.is_str("_meta") && !value.is_object();
    if !params.members().any(|member| is_odd(&member)) {
        return Some(params.get().to_owned());
    }
    if params
        .members()
        .filter(|(key, _)| key.is_str("_meta"))
        .nth(1)
        .is_some()
    {
        return None;
    }
    let mut out = "{".to_owned();
    for member in params.members() {
        if is_odd(&member) {
            if !member.1.is_null() {
                tolerate(Leniency::EmptyArray, "/params/_meta");
            }
            continue;
        }
        if out.len() > 1 {
            out.push(',');
        }
        let (key, value) = member;
        out.extend([key.get(), ":", value.get()]);
    }
    out.push('}');
    Some(out)
}

/// An error as an object with a code and a message.
fn error_object(error: Text<'_>, tolerate: &mut impl FnMut(Leniency, &str)) -> String {
    let member = |name: &str| {
        let mut members = error.members();
        members
            .find(|(key, _)| key.is_str(name))
            .map(|(_, value)| value)
    };
    let code = member("code").filter(|code| code.get().parse::<i64>().is_ok());
    let message = member("message").filter(|message| message.is_string());
    if let (Some(_), Some(_)) = (code, message) {
        return error.get().to_owned();
    }
    tolerate(Leniency::ErrorObject, "/error");
    let text = match message.or_else(|| error.is_string().then_some(error)) {
        Some(message) => message.as_str().unwrap_or_default().into_owned(),
        None => {
            let shown: String = error.get().chars().take(200).collect();
            format!("the peer reported {shown}")
        }
    };
    let meant = member("code").and_then(whole_number);
    let code = code.map(|code| code.get().to_owned()).or(meant);
    let mut out = format!(
        r#"{{"code":{},"message":"#,
        code.as_deref().unwrap_or("-32603")
    )
    .into_bytes();
    write_string(&mut out, &text);
    let mut out = String::from_utf8(out).unwrap_or_default();
    if let Some(data) = member("data") {
        out.push_str(",\"data\":");
        out.push_str(data.get());
    }
    out.push('}');
    out
}

/// A whole number that is not written as an integer, as one.
fn whole_number(value: Text<'_>) -> Option<String> {
    let text = value.get();
    let is_integer = text.parse::<i64>().is_ok();
    number(text)
        .filter(|_| !is_integer)
        .map(|number| number.to_string())
}

/// The bytes as text, with each surrogate that is encoded as if it were a character replaced by U+FFFD. `None` if other bytes are not
/// UTF-8.
fn without_encoded_surrogates(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(&first) = rest.first() {
        if let [0xED, 0xA0..=0xBF, 0x80..=0xBF, after @ ..] = rest {
            out.extend_from_slice("\u{fffd}".as_bytes());
            rest = after;
        } else {
            out.push(first);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}
