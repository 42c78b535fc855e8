//! Declaration order of fields: each gets a number, so that a schema can list its properties in that order. The maps of
//! schemars are sorted by name.

use proc_macro::{Delimiter, Span, TokenStream, TokenTree};

use crate::tokens::{fill, flatten, punct, regroup, split_at_commas, without_comma};

/// The fields of `{ .. }`, each with an attribute that holds its number. Adds to `types` those that must have a schema.
pub(crate) fn number(
    fields: TokenStream,
    private: &str,
    types: &mut Vec<TokenStream>,
) -> TokenStream {
    let mut output = TokenStream::new();
    for (index, field) in split_at_commas(fields).into_iter().enumerate() {
        let marker = format!("#[schemars(transform = {private}::declared::<{index}>)]");
        output.extend(fill(&marker, Span::call_site(), &[]));
        types.extend(checked_type(&field));
        output.extend(field);
    }
    output
}

/// Code that requires a schema of each type. The derive of schemars requires the same, but its error does not say what to do.
pub(crate) fn check(types: &[TokenStream], private: &str) -> TokenStream {
    let mut calls = TokenStream::new();
    for ty in types {
        // The compiler reports a type without a schema at the type itself.
        let first = ty.clone().into_iter().next();
        let at = first.map_or_else(Span::call_site, |token| token.span());
        let span = Span::call_site().located_at(at);
        let call = format!("{private}::has_schema::<TYPE>();");
        calls.extend(fill(&call, span, &[("TYPE", ty.clone())]));
    }
    let code = "const _: () = { #[allow(dead_code)] fn fields() { CALLS } };";
    fill(code, Span::call_site(), &[("CALLS", calls)])
}

/// The variants of an enum, with their named fields numbered.
pub(crate) fn number_variants(
    variants: TokenStream,
    private: &str,
    types: &mut Vec<TokenStream>,
) -> TokenStream {
    let mut after_name = false;
    variants
        .into_iter()
        .map(|token| {
            let is_fields =
                std::mem::replace(&mut after_name, matches!(token, TokenTree::Ident(_)));
            match token {
                TokenTree::Group(group) if is_fields && group.delimiter() == Delimiter::Brace => {
                    TokenTree::Group(regroup(&group, number(group.stream(), private, types)))
                }
                other => other,
            }
        })
        .collect()
}

/// The type of a field, which must have a schema; `None` if an attribute sets the schema by `with`, or if the type contains
/// `Self`, which cannot be named outside of the item.
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
    let ty: TokenStream = without_comma(field.get(colon + 1..)?)
        .iter()
        .cloned()
        .collect();
    let is_named = |token: &TokenTree| token.to_string() != "Self";
    flatten(ty.clone()).iter().all(is_named).then_some(ty)
}
