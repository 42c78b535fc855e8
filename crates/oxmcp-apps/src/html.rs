//! The document of an app: whether it is HTML5, and the document with its policy.

/// Whether a document begins with the doctype of HTML5. White space, comments and a byte order mark may precede it.
pub(crate) fn is_html5(html: &str) -> bool {
    doctype(html).is_some_and(|words| is_of_html5(&words))
}

/// The words of the doctype that a document begins with.
fn doctype(html: &str) -> Option<Vec<&str>> {
    const DOCTYPE: &str = "<!doctype";
    let mut rest = html.strip_prefix('\u{feff}').unwrap_or(html);
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
        match rest.strip_prefix("<!--") {
            Some(comment) => rest = comment.split_once("-->")?.1,
            None => break,
        }
    }
    let (start, inner) = rest.split_at_checked(DOCTYPE.len())?;
    let (inner, _) = inner.split_once('>')?;
    let is_doctype = start.eq_ignore_ascii_case(DOCTYPE)
        && inner.starts_with(|it: char| it.is_ascii_whitespace());
    is_doctype.then(|| inner.split_ascii_whitespace().collect())
}

/// Whether a doctype is that of HTML5. Others are those of older versions.
fn is_of_html5(words: &[&str]) -> bool {
    let is_legacy = |it: &&str| {
        it.eq_ignore_ascii_case("system") || it.trim_matches(['"', '\'']) == "about:legacy-compat"
    };
    match words {
        [name, rest @ ..] => name.eq_ignore_ascii_case("html") && rest.iter().all(is_legacy),
        [] => false,
    }
}

/// Returns the document with a policy in a `meta` element before everything that the policy governs.
///
/// The element has a doctype of its own and precedes the whole document, in which browsers ignore a second doctype. A position
/// inside of it would have to be found as each HTML parser finds it.
#[cfg(feature = "host")]
pub(crate) fn with_policy(html: &str, policy: &str) -> String {
    let html = html.strip_prefix('\u{feff}').unwrap_or(html);
    // A policy consists of keywords and checked origins, and has no double quotes.
    format!(
        "<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">{html}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html5_documents_begin_with_their_doctype() {
        for good in [
            "<!doctype html><p>hi",
            "<!DOCTYPE HTML>\n<html></html>",
            "\u{feff}\n<!-- a --> <!-- <p> -->\n<!DocType\thtml >x",
            "<!DOCTYPE html SYSTEM \"about:legacy-compat\">",
        ] {
            assert!(is_html5(good), "{good}");
        }
        for bad in [
            "",
            "<html></html>",
            "<p>hi",
            "plain <!doctype html>",
            "<!doctype",
            "<!doctype html",
            "<!doctypehtml>",
            "<!doctype svg>",
            "<!-- <!doctype html>",
            "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"x\">",
            "é",
        ] {
            assert!(!is_html5(bad), "{bad}");
        }
    }

    #[cfg(feature = "host")]
    #[test]
    fn policy_precedes_the_whole_document() {
        let before = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" content=\"p\">";
        for html in [
            "<!doctype html><script>1</script>",
            "<script>1</script><!doctype html>",
            // For an HTML parser, these comments have ended before the script.
            "<!--><script>1</script>--><!doctype html>",
            "<!-- --!><script>1</script>--><!doctype html>",
        ] {
            assert_eq!(with_policy(html, "p"), format!("{before}{html}"));
        }
        assert_eq!(with_policy("\u{feff}x", "p"), format!("{before}x"));
    }
}
