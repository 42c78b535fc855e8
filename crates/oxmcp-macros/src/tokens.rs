//! Helpers for tokens: reading, splitting and regrouping them, code with holes, and errors at the tokens of the user.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// A mistake of the user, and its span.
pub(crate) struct Mistake {
    pub(crate) span: Span,
    pub(crate) message: String,
}

impl Mistake {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
        }
    }

    /// `compile_error! { "…" }` at the span of the mistake.
    pub(crate) fn into_tokens(self) -> TokenStream {
        let span = self.span;
        let mut text = TokenTree::Literal(Literal::string(&self.message));
        text.set_span(span);
        let mut tokens = vec![
            TokenTree::Ident(Ident::new("compile_error", span)),
            TokenTree::Punct(Punct::new('!', Spacing::Alone)),
            TokenTree::Group(Group::new(Delimiter::Brace, TokenStream::from(text))),
        ];
        for token in &mut tokens {
            token.set_span(span);
        }
        tokens.into_iter().collect()
    }
}

/// The code in `text`, with tokens of the user in place of the identifiers named in `holes`. All other tokens get the span.
pub(crate) fn fill(text: &str, span: Span, holes: &[(&str, TokenStream)]) -> TokenStream {
    let code: TokenStream = text
        .parse()
        .unwrap_or_else(|_| Mistake::new(span, "invalid path in `crate = \"…\"`").into_tokens());
    fill_tokens(code, span, holes)
}

fn fill_tokens(code: TokenStream, span: Span, holes: &[(&str, TokenStream)]) -> TokenStream {
    let mut output = TokenStream::new();
    for mut token in code {
        if let TokenTree::Ident(ident) = &token {
            let name = ident.to_string();
            if let Some((_, tokens)) = holes.iter().find(|(hole, _)| *hole == name) {
                output.extend(tokens.clone());
                continue;
            }
        }
        if let TokenTree::Group(group) = &token {
            let stream = fill_tokens(group.stream(), span, holes);
            token = TokenTree::Group(Group::new(group.delimiter(), stream));
        }
        token.set_span(span);
        output.extend([token]);
    }
    output
}

/// The same group around other tokens.
pub(crate) fn regroup(group: &Group, stream: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), stream);
    new.set_span(group.span());
    new
}

/// The tokens, without the invisible groups that `macro_rules!` puts around its fragments.
pub(crate) fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let mut flat = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                flat.extend(flatten(group.stream()));
            }
            other => flat.push(other),
        }
    }
    flat
}

/// The character of a token, if the token is punctuation.
pub(crate) fn punct(token: Option<&TokenTree>) -> Option<char> {
    match token {
        Some(TokenTree::Punct(punct)) => Some(punct.as_char()),
        _ => None,
    }
}

/// The text of a token, if the token is an identifier.
pub(crate) fn word(token: Option<&TokenTree>) -> Option<String> {
    match token {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// A part of [`split_at_commas`] without its comma.
pub(crate) fn without_comma(part: &[TokenTree]) -> &[TokenTree] {
    match part {
        [rest @ .., comma] if punct(Some(comma)) == Some(',') => rest,
        all => all,
    }
}

/// Splits tokens after each comma that is not within angle brackets. Other brackets are groups already.
pub(crate) fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
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
