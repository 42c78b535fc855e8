//! Declaration order of fields: each gets a number, so that a schema can list its properties as the type declares them. The
//! maps of schemars are sorted by name.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// The fields of `{ .. }`, each with an attribute that says which one it is.
pub(crate) fn number(fields: TokenStream, private: &str) -> TokenStream {
    let mut output = TokenStream::new();
    for (index, field) in split_at_commas(fields).into_iter().enumerate() {
        let marker = format!("#[schemars(transform = {private}::declared::<{index}>)]");
        output.extend(marker.parse::<TokenStream>().unwrap_or_default());
        output.extend(field);
    }
    output
}

/// The variants of an enum, with the fields of those that have names numbered.
pub(crate) fn number_variants(variants: TokenStream, private: &str) -> TokenStream {
    let mut after_name = false;
    variants
        .into_iter()
        .map(|token| {
            let is_fields =
                std::mem::replace(&mut after_name, matches!(token, TokenTree::Ident(_)));
            match token {
                TokenTree::Group(group) if is_fields && group.delimiter() == Delimiter::Brace => {
                    TokenTree::Group(regroup(&group, number(group.stream(), private)))
                }
                other => other,
            }
        })
        .collect()
}

/// The same group around other tokens.
pub(crate) fn regroup(group: &Group, stream: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), stream);
    new.set_span(group.span());
    new
}

/// The tokens up to and including each comma that is in no angle brackets. Other brackets are groups already.
fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let mut parts = Vec::new();
    let mut part = Vec::new();
    let mut depth = 0_usize;
    let mut previous = ' ';
    for token in tokens {
        let mut ends = false;
        let mut current = ' ';
        if let TokenTree::Punct(punct) = &token {
            current = punct.as_char();
            match current {
                '<' => depth += 1,
                // The arrow of `fn() -> T` closes nothing.
                '>' if previous != '-' => depth = depth.saturating_sub(1),
                ',' => ends = depth == 0,
                _ => {}
            }
        }
        previous = current;
        part.push(token);
        if ends {
            parts.push(std::mem::take(&mut part));
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}
