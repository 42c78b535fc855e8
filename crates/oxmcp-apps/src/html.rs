//! The document of an app: whether it is HTML5, and where a policy is inserted.

/// Returns the position after the doctype of an HTML5 document; `None` if it does not begin with one. White space, comments
/// and a byte order mark may precede it.
pub(crate) fn end_of_doctype(html: &str) -> Option<usize> {
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
    let mut words = inner.split_ascii_whitespace();
    let is_spaced = inner.starts_with(|it: char| it.is_ascii_whitespace());
    let is_html = words
        .next()
        .is_some_and(|it| it.eq_ignore_ascii_case("html"));
    let is_html5 = start.eq_ignore_ascii_case(DOCTYPE) && is_spaced && is_html;
    // Other doctypes are those of older versions.
    let legacy = |it: &str| {
        it.eq_ignore_ascii_case("system") || it.trim_matches(['"', '\'']) == "about:legacy-compat"
    };
    let is_html5 = is_html5 && words.all(legacy);
    is_html5.then(|| html.len() - rest.len() + start.len() + inner.len() + 1)
}

/// Returns the document with a policy in a `meta` element before everything that the policy governs. A parser creates the
/// head for it.
#[cfg(feature = "host")]
pub(crate) fn with_policy(html: &str, policy: &str) -> String {
    let (before, after) = html
        .split_at_checked(end_of_doctype(html).unwrap_or_default())
        .unwrap_or(("", html));
    // A policy consists of keywords and checked origins, and has no double quotes.
    format!("{before}<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">{after}")
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
            let (doctype, _) = good.split_at(end_of_doctype(good).unwrap());
            assert!(doctype.ends_with('>') && !doctype.contains("hi"));
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
            assert_eq!(end_of_doctype(bad), None, "{bad}");
        }
    }

    #[cfg(feature = "host")]
    #[test]
    fn policy_precedes_everything_but_the_doctype() {
        let meta = "<meta http-equiv=\"Content-Security-Policy\" content=\"p\">";
        let html = with_policy("<!doctype html><script>1</script>", "p");
        assert_eq!(html, format!("<!doctype html>{meta}<script>1</script>"));
        // Attack: a script before the doctype escapes the policy.
        let html = with_policy("<script>1</script><!doctype html>", "p");
        assert_eq!(html, format!("{meta}<script>1</script><!doctype html>"));
    }
}
