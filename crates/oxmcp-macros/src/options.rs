//! The arguments of an attribute: a URI, a name, the path of the crate, and methods of the builder.

use proc_macro::{Delimiter, Group, Literal, Span, TokenStream, TokenTree};

use crate::{
    literal,
    tokens::{Mistake, flatten, punct, split_at_commas, without_comma, word},
};

pub(crate) struct Options {
    /// The path of the `oxmcp` crate.
    pub(crate) facade: String,
    /// The URI or URI template, and its literal.
    pub(crate) uri: Option<(String, Literal)>,
    /// The argument of `name(..)`.
    pub(crate) name: Option<TokenStream>,
    /// The argument of `description(..)`.
    pub(crate) description: Option<TokenStream>,
    /// `.method(..)` for each method of the builder, in the tokens of the user.
    pub(crate) methods: TokenStream,
}

impl Options {
    /// Parses the arguments. The first one is a URI, if `has_uri` is set.
    pub(crate) fn read(arguments: TokenStream, has_uri: bool, mistakes: &mut Vec<Mistake>) -> Self {
        let mut options = Self {
            facade: "::oxmcp".to_owned(),
            uri: None,
            name: None,
            description: None,
            methods: TokenStream::new(),
        };
        let mut parts = split_at_commas(arguments).into_iter();
        if has_uri {
            let first = flatten(parts.next().unwrap_or_default().into_iter().collect());
            match first.first() {
                Some(TokenTree::Literal(uri)) => {
                    options.uri = literal::text(&uri.to_string()).map(|text| (text, uri.clone()));
                }
                Some(other) => mistakes.push(no_uri(other.span())),
                None => {}
            }
            if options.uri.is_none() && mistakes.is_empty() {
                mistakes.push(no_uri(Span::call_site()));
            }
        }
        for part in parts {
            if let Err(mistake) = options.take(&part) {
                mistakes.push(mistake);
            }
        }
        options
    }

    fn take(&mut self, part: &[TokenTree]) -> Result<(), Mistake> {
        match without_comma(part) {
            [TokenTree::Ident(name), equals, path]
                if name.to_string() == "crate" && punct(Some(equals)) == Some('=') =>
            {
                let path = match path {
                    TokenTree::Literal(path) => literal::text(&path.to_string()),
                    _ => None,
                };
                self.facade = path.ok_or_else(|| {
                    Mistake::new(name.span(), "write `crate = \"path::of::oxmcp\"`")
                })?;
            }
            [TokenTree::Ident(name)] => self.call(name.clone().into(), None),
            [TokenTree::Ident(name), TokenTree::Group(arguments)]
                if arguments.delimiter() == Delimiter::Parenthesis =>
            {
                match name.to_string().as_str() {
                    "name" => self.name = Some(arguments.stream()),
                    "description" => self.description = Some(arguments.stream()),
                    _ => self.call(name.clone().into(), Some(arguments.clone())),
                }
            }
            [] => {}
            [first, ..] => {
                let example = match (word(part.first()), punct(part.get(1))) {
                    (Some(name), Some('=')) => format!("`{name}(..)`"),
                    _ => "`read_only` or `title(\"..\")`".to_owned(),
                };
                let message = format!("options are methods of the builder: write {example}");
                return Err(Mistake::new(first.span(), message));
            }
        }
        Ok(())
    }

    fn call(&mut self, method: TokenTree, arguments: Option<Group>) {
        let span = method.span();
        let arguments = arguments.unwrap_or_else(|| {
            let mut none = Group::new(Delimiter::Parenthesis, TokenStream::new());
            none.set_span(span);
            none
        });
        let mut dot = TokenTree::Punct(proc_macro::Punct::new('.', proc_macro::Spacing::Alone));
        dot.set_span(span);
        self.methods
            .extend([dot, method, TokenTree::Group(arguments)]);
    }
}

fn no_uri(span: Span) -> Mistake {
    Mistake::new(
        span,
        "expected a URI or a URI template as the first argument, such as `\"weather://now\"` or `\"weather://{city}\"`",
    )
}
