//! `#[derive(JsonSchema)]`, built on the derive of schemars.
//!
//! That derive refers to a crate `schemars`, on which the user's crate need not depend. The emitted code is
//!
//! ```text
//! const _: () = {
//!     #[derive(::oxmcp::__private::schemars::JsonSchema)]
//!     #[::oxmcp::__private::__erase]
//!     #[schemars(crate = "::oxmcp::__private::schemars")]
//!     struct Pair { a: <f64 as ::oxmcp::__private::HasSchema<_>>::Type, .. }
//! };
//! ```
//!
//! Attributes expand from the top: schemars sees the item and writes its `impl .. for Pair`. Then the copy erases
//! itself, together with every attribute below, so that `Pair` in the impl refers to the original. There is no second
//! type, so nothing is reported as unused, and `Self`, generics, defaults and recursion work as usual. The
//! type of a field is written as another name of the same type, which only a type with a schema has: otherwise there would
//! be a second error about one without.

use proc_macro::{Delimiter, Group, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::{
    fields,
    tokens::{Mistake, punct, regroup},
};

/// The parts of the item before its fields.
struct Header {
    /// The path of the crate whose `__private` has the items that the code needs.
    facade: String,
    /// Whether the user has set the path of schemars.
    has_schemars_path: bool,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Struct,
    Enum,
}

/// Derives the schema. `facade` is the path of the crate whose `__private` has the items that the code needs.
pub(crate) fn derive(input: TokenStream, facade: &str) -> TokenStream {
    let tokens: Vec<TokenTree> = input.into_iter().collect();
    match read_header(&tokens, facade) {
        Ok(header) => expand(&header, tokens),
        Err((span, message)) => Mistake::new(span, message).into_tokens(),
    }
}

fn read_header(tokens: &[TokenTree], facade: &str) -> Result<Header, (Span, &'static str)> {
    let mut facade = facade.to_owned();
    let mut has_schemars_path = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                let text = group.stream().to_string();
                has_schemars_path |= attribute_path(&text, "schemars").is_some();
                if let Some(path) = attribute_path(&text, "oxmcp") {
                    facade = path;
                }
            }
            TokenTree::Ident(ident) => match ident.to_string().as_str() {
                "struct" => {
                    return Ok(Header {
                        facade,
                        has_schemars_path,
                        kind: Kind::Struct,
                    });
                }
                "enum" => {
                    return Ok(Header {
                        facade,
                        has_schemars_path,
                        kind: Kind::Enum,
                    });
                }
                "union" => {
                    return Err((
                        ident.span(),
                        "JsonSchema cannot be derived for a union, since JSON does not tell which field is set: use an enum",
                    ));
                }
                _ => {}
            },
            _ => {}
        }
    }
    Err((
        Span::call_site(),
        "JsonSchema can be derived for structs and enums only",
    ))
}

/// The path in an attribute `name(.., crate = "path", ..)`.
fn attribute_path(attribute: &str, name: &str) -> Option<String> {
    let arguments = attribute
        .trim_start()
        .strip_prefix(name)?
        .trim_start()
        .strip_prefix('(')?;
    let (_, after) = arguments.split_once("crate")?;
    let after = after.trim_start().strip_prefix('=')?;
    let path = after.trim_start().strip_prefix('"')?;
    path.split('"').next().map(str::to_owned)
}

fn expand(header: &Header, tokens: Vec<TokenTree>) -> TokenStream {
    let private = format!("{}::__private", header.facade);
    let mut item = format!("#[derive({private}::schemars::JsonSchema)] #[{private}::__erase]");
    if !header.has_schemars_path {
        item.push_str(&format!(" #[schemars(crate = \"{private}::schemars\")]"));
    }
    let Ok(mut item) = item.parse::<TokenStream>() else {
        return Mistake::new(
            Span::call_site(),
            "invalid path in `#[oxmcp(crate = \"..\")]`",
        )
        .into_tokens();
    };
    let is_generic = tokens.iter().any(|token| punct(Some(token)) == Some('<'));
    item.extend(tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
            let stream = match header.kind {
                Kind::Struct => fields::number(group.stream(), &private, !is_generic),
                Kind::Enum => fields::number_variants(group.stream(), &private, !is_generic),
            };
            TokenTree::Group(regroup(&group, stream))
        }
        other => other,
    }));
    let block = TokenTree::Group(Group::new(Delimiter::Brace, item));
    let mut output = TokenStream::new();
    output.extend("const _: () =".parse::<TokenStream>());
    output.extend([block, TokenTree::Punct(Punct::new(';', Spacing::Alone))]);
    output
}
