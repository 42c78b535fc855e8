//! Declaration order of fields: each gets a number, so that a schema can list its properties in that order. The maps of
//! schemars are sorted by name.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::tokens::{fill, flatten, punct, regroup, split_at_commas, without_comma};

/// The fields of `{ .. }`, each with an attribute that holds its number. If `checks`, their types are written so that the error about
/// a type without a schema is the one of oxmcp, which says what to do.
pub(crate) fn number(fields: TokenStream, private: &str, checks: bool) -> TokenStream {
    let mut output = TokenStream::new();
    for (index, field) in split_at_commas(fields).into_iter().enumerate() {
        let marker = format!("#[schemars(transform = {private}::declared::<{index}>)]");
        output.extend(fill(&marker, Span::call_site(), &[]));
        match checked_type(&field).filter(|_| checks) {
            Some((before, ty, after)) => {
                output.extend(before.iter().cloned());
                output.extend(checked(ty, private));
                output.extend(after.iter().cloned());
            }
            None => output.extend(field),
        }
    }
    output
}

/// Another name of a type, which only a type with a schema has.
fn checked(ty: &[TokenTree], private: &str) -> TokenStream {
    // The compiler reports a type without a schema at the type itself.
    let at = ty.first().map_or_else(Span::call_site, TokenTree::span);
    let span = Span::call_site().located_at(at);
    let name = format!("<TYPE as {private}::HasSchema<_>>::Type");
    fill(&name, span, &[("TYPE", ty.iter().cloned().collect())])
}

/// The variants of an enum, with their named fields numbered.
pub(crate) fn number_variants(variants: TokenStream, private: &str, checks: bool) -> TokenStream {
    let mut after_name = false;
    variants
        .into_iter()
        .map(|token| {
            let is_fields =
                std::mem::replace(&mut after_name, matches!(token, TokenTree::Ident(_)));
            match token {
                TokenTree::Group(group) if is_fields && group.delimiter() == Delimiter::Brace => {
                    TokenTree::Group(regroup(&group, number(group.stream(), private, checks)))
                }
                other => other,
            }
        })
        .collect()
}

/// The tokens before the type of a field, which must have a schema, the type, and the tokens after it; `None` if an attribute sets
/// the schema by `with`, or if the type contains `Self`, whose schema is being derived.
fn checked_type(field: &[TokenTree]) -> Option<(&[TokenTree], &[TokenTree], &[TokenTree])> {
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
    let (before, rest) = field.split_at_checked(colon + 1)?;
    let ty = without_comma(rest);
    let is_named = |token: &TokenTree| token.to_string() != "Self";
    let is_checked = flatten(ty.iter().cloned().collect()).iter().all(is_named);
    is_checked.then(|| (before, ty, rest.get(ty.len()..).unwrap_or_default()))
}
