//! The links that a user is asked about: a person must see where they lead.

use crate::csp::is_authority;

/// The most bytes of a link. Browsers and servers accept longer ones, and nobody can read them.
const MAX_LINK: usize = 8 * 1024;

/// Checks a link that a view wants to open: a web page or an address for mail. Other schemes would run programs and scripts, or
/// open files.
///
/// # Errors
/// The problem, for the view.
pub(crate) fn check_link(url: &str) -> Result<(), &'static str> {
    match without_scheme(url, "mailto:") {
        Some("") => Err(INVALID_SCHEME),
        Some(_) => check_readable(url),
        None => check_web_link(url),
    }
}

/// Checks a link to a web page.
///
/// # Errors
/// The problem, for the view.
pub(crate) fn check_web_link(url: &str) -> Result<(), &'static str> {
    let rest = without_scheme(url, "https://").or_else(|| without_scheme(url, "http://"));
    let rest = rest.ok_or(INVALID_SCHEME)?;
    check_readable(url)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or_default();
    // A browser would go to `evil.example` in `https://bank.example@evil.example`, and in others that only programs read right.
    match is_authority(authority) && !authority.starts_with('*') {
        true => Ok(()),
        false => Err(
            "invalid link: its host must be a name or an address, without user information; write international names in ASCII",
        ),
    }
}

const INVALID_SCHEME: &str = "invalid link: use https, http or mailto";

fn without_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Checks that a person sees a link as it is. A backslash is a slash for browsers, and not for other programs.
fn check_readable(url: &str) -> Result<(), &'static str> {
    let is_hidden =
        |it: char| it.is_control() || it.is_whitespace() || it == '\\' || is_invisible(it);
    if url.len() > MAX_LINK {
        return Err("invalid link: it is too long");
    }
    match url.contains(is_hidden) {
        true => Err(
            "invalid link: it has characters that are not shown or that reorder the text; percent-encode them",
        ),
        false => Ok(()),
    }
}

/// Whether a character is not shown, or changes the direction of the text around it.
fn is_invisible(it: char) -> bool {
    matches!(it,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_links_are_accepted() {
        for good in [
            "https://a.example",
            "HTTPS://A.example:8443/x?y#z",
            "http://127.0.0.1:80",
            "https://[::1]/",
            "https://xn--bcher-kva.example/b%C3%BCcher",
            "https://a.example/größe?at=a@b.example",
            "mailto:a@b.example?subject=x",
        ] {
            assert_eq!(check_link(good), Ok(()), "{good}");
        }
        assert!(check_web_link("mailto:a@b.example").is_err());
    }

    // A view asks the user to open a link that leads elsewhere than it seems.
    #[test]
    fn deceiving_links_are_refused() {
        for (bad, problem) in [
            ("javascript:alert(1)", "use https, http or mailto"),
            ("file:///etc/passwd", "use https, http or mailto"),
            ("mailto:", "use https, http or mailto"),
            ("éé", "use https, http or mailto"),
            ("https://", "its host must be"),
            ("https:///evil.example", "its host must be"),
            ("https://bank.example@evil.example/", "user information"),
            ("https://bank.example:443@evil.example", "user information"),
            ("https://user:secret@a.example", "user information"),
            ("https://bank.example%2f@evil.example", "user information"),
            ("https://bank.example%2eevil.example", "its host must be"),
            ("https://b\u{430}nk.example", "international names in ASCII"),
            ("https://*.example", "its host must be"),
            ("https://evil.example\\@bank.example", "not shown"),
            ("https://a.example/\u{202e}gpj.exe", "not shown"),
            ("https://a.example/\u{2066}x\u{2069}", "not shown"),
            ("https://a.example/\u{61c}x", "not shown"),
            ("https://a.example/\u{200b}x", "not shown"),
            ("https://a.example/\u{e0041}", "not shown"),
            ("mailto:a@b.example\u{202e}", "not shown"),
            ("https://a.example/\nx", "not shown"),
            ("https://a.example/ x", "not shown"),
        ] {
            let refused = check_link(bad).unwrap_err();
            assert!(refused.contains(problem), "{bad:?}: {refused}");
        }
        let long = format!("https://a.example/{}", "x".repeat(MAX_LINK));
        assert_eq!(check_link(&long), Err("invalid link: it is too long"));
    }
}
