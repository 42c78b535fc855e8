//! Declaration order of fields: each gets a number, so that a schema can list its properties as the type declares them. The
//! maps of schemars are sorted by name.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::tokens::{fill, punct, regroup, split_at_commas, without_comma};

/// The fields of `{ .. }`, each with an attribute that says which one it is.
pub(crate) fn number(fields: TokenStream, private: &str) -> TokenStream {
    let mut output = TokenStream::new();
    for (index, field) in split_at_commas(fields).into_iter().enumerate() {
        let (marker, ty) = match checked_type(&field) {
            Some(ty) => (format!("declared_as::<{index}, TYPE>"), ty),
            None => (format!("declared::<{index}>"), TokenStream::new()),
        };
        let marker = format!("#[schemars(transform = {private}::{marker})]");
        // Under the type is where the compiler tells of one without a schema.
        let first = ty.clone().into_iter().next();
        let at = first.map_or_else(Span::call_site, |token| token.span());
        let span = Span::call_site().located_at(at);
        output.extend(fill(&marker, span, &[("TYPE", ty)]));
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

/// The type of a field, which must have a schema, unless an attribute says what the schema is made `with`.
fn checked_type(field: &[TokenTree]) -> Option<TokenStream> {
    let mut attributes = field.iter().filter_map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
            Some(group.stream().to_string())
        }
        _ => None,
    });
    let is_replaced =
        |attribute: String| !attribute.starts_with("doc") && attribute.contains("with");
    if attributes.any(is_replaced) {
        return None;
    }
    let colon = field
        .iter()
        .position(|token| punct(Some(token)) == Some(':'))?;
    let ty = without_comma(field.get(colon + 1..)?);
    Some(ty.iter().cloned().collect())
}
