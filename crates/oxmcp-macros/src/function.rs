//! Parser of free async functions: attributes, visibility, name, parameters and return type.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::{
    literal,
    tokens::{Mistake, flatten, punct, regroup, split_at_commas, without_comma, word},
};

/// The parts of a function that could be parsed.
pub(crate) struct Function {
    /// The whole function, without those attributes of its parameters that the compiler does not know.
    pub(crate) item: TokenStream,
    /// The `#[cfg(..)]` attributes of the function.
    pub(crate) conditions: TokenStream,
    /// The doc comment of the function, line by line.
    pub(crate) docs: Vec<String>,
    pub(crate) visibility: TokenStream,
    pub(crate) name: Ident,
    pub(crate) parameters: Vec<Parameter>,
    /// The span of the return type; of the name if there is none.
    pub(crate) returned: Span,
    /// Whether an item of the same name can be emitted next to the function: it is not a method and has no generics.
    pub(crate) is_free: bool,
}

/// The purpose of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Argument,
    State,
    Context,
}

pub(crate) struct Parameter {
    pub(crate) purpose: Purpose,
    pub(crate) name: Ident,
    pub(crate) ty: TokenStream,
    /// The attributes of the field that the parameter becomes: its doc comment, and the attributes of the derives.
    pub(crate) attributes: Vec<Group>,
    /// The expression in `#[default(..)]`.
    pub(crate) default: Option<TokenStream>,
}

impl Function {
    /// Parses a function. `kind` is the item that it becomes, such as "a tool". If there is no function, that mistake is the only
    /// result.
    pub(crate) fn read(
        item: TokenStream,
        kind: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> Result<Self, Mistake> {
        let tokens: Vec<TokenTree> = item.into_iter().collect();
        let no_function = || {
            Mistake::new(
                Span::call_site(),
                format!("{kind} must be a free function: `async fn name(..) {{ .. }}`"),
            )
        };
        let keyword = tokens
            .iter()
            .position(|token| word(Some(token)).is_some_and(|word| word == "fn"))
            .ok_or_else(no_function)?;
        let Some(TokenTree::Ident(name)) = tokens.get(keyword + 1) else {
            return Err(no_function());
        };
        let is_parentheses = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis);
        let list = (keyword + 2..tokens.len())
            .find(|index| tokens.get(*index).is_some_and(is_parentheses))
            .ok_or_else(no_function)?;
        let (head, rest) = tokens.split_at(keyword);
        let outer = rest.get(2..list - keyword).unwrap_or_default();
        let mut function = Self {
            item: TokenStream::new(),
            conditions: TokenStream::new(),
            docs: Vec::new(),
            visibility: TokenStream::new(),
            name: name.clone(),
            parameters: Vec::new(),
            returned: name.span(),
            is_free: outer.is_empty(),
        };
        let span = rest.first().map_or_else(Span::call_site, TokenTree::span);
        function.read_head(head, span, kind, mistakes);
        if let Some(generic) = outer.first() {
            mistakes.push(Mistake::new(
                generic.span(),
                format!("{kind} cannot be generic, since it has one schema: use concrete types"),
            ));
        }
        let mut output: Vec<TokenTree> = tokens.get(..list).unwrap_or_default().to_vec();
        if let Some(TokenTree::Group(group)) = tokens.get(list) {
            let parameters = function.read_parameters(group.stream(), kind, mistakes);
            output.push(TokenTree::Group(regroup(group, parameters)));
        }
        let tail = tokens.get(list + 1..).unwrap_or_default();
        function.read_tail(tail, mistakes);
        output.extend_from_slice(tail);
        function.item = output.into_iter().collect();
        Ok(function)
    }

    /// Reads the tokens before `fn`.
    fn read_head(
        &mut self,
        head: &[TokenTree],
        keyword: Span,
        kind: &str,
        mistakes: &mut Vec<Mistake>,
    ) {
        let mut is_async = false;
        let mut tokens = head.iter().peekable();
        while let Some(token) = tokens.next() {
            match (token, tokens.peek()) {
                (TokenTree::Punct(_), Some(TokenTree::Group(group))) => {
                    self.docs.extend(literal::doc(group.stream()));
                    if word(flatten(group.stream()).first()).is_some_and(|name| name == "cfg") {
                        let attribute = [token.clone(), TokenTree::Group(group.clone())];
                        self.conditions.extend(attribute);
                    }
                    tokens.next();
                }
                (TokenTree::Ident(ident), _) => match ident.to_string().as_str() {
                    "async" => is_async = true,
                    "unsafe" | "extern" | "const" => mistakes.push(Mistake::new(
                        ident.span(),
                        format!("{kind} must be a plain `async fn`"),
                    )),
                    _ => self.visibility.extend([token.clone()]),
                },
                (TokenTree::Literal(_), _) => {}
                _ => self.visibility.extend([token.clone()]),
            }
        }
        if !is_async {
            mistakes.push(Mistake::new(
                keyword,
                format!("{kind} must be an async function: write `async fn`"),
            ));
        }
    }

    /// Reads the parameters. Returns them as the function keeps them.
    fn read_parameters(
        &mut self,
        parameters: TokenStream,
        kind: &str,
        mistakes: &mut Vec<Mistake>,
    ) -> TokenStream {
        let mut kept = TokenStream::new();
        for part in split_at_commas(parameters) {
            let (attributes, rest) = attributes_of(&part);
            for attribute in &attributes {
                if is_for_the_compiler(attribute) {
                    let hash =
                        TokenTree::Punct(proc_macro::Punct::new('#', proc_macro::Spacing::Alone));
                    kept.extend([hash, TokenTree::Group(attribute.clone())]);
                }
            }
            kept.extend(rest.iter().cloned());
            if let Some(receiver) = receiver(rest) {
                self.is_free = false;
                mistakes.push(Mistake::new(
                    receiver,
                    format!(
                        "a method cannot be {kind}: use a free function that takes the state as a parameter, `#[state] it: Arc<..>`, or \
                         pass `with_state(it, Type::{})` to the builder's `new`, if the method takes `self: Arc<Self>` or `self`",
                        self.name
                    ),
                ));
                continue;
            }
            match Parameter::read(&attributes, rest) {
                Ok(parameter) => self.parameters.push(parameter),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        let mut contexts = self
            .parameters
            .iter()
            .filter(|it| it.purpose == Purpose::Context);
        if let Some(second) = contexts.nth(1) {
            let message = "duplicate request context: a function can take only one";
            mistakes.push(Mistake::new(second.name.span(), message));
        }
        kept
    }

    /// Reads the tokens after the parameters.
    fn read_tail(&mut self, tail: &[TokenTree], mistakes: &mut Vec<Mistake>) {
        for (index, token) in tail.iter().enumerate() {
            if punct(Some(token)) == Some('>')
                && index == 1
                && let Some(first) = tail.get(index + 1)
            {
                self.returned = first.span();
            }
            if word(Some(token)).is_some_and(|word| word == "where") {
                let message = "remove the `where` clause: the function cannot be generic";
                mistakes.push(Mistake::new(token.span(), message));
            }
        }
    }

    /// The parameters of one purpose.
    pub(crate) fn parameters_of(&self, purpose: Purpose) -> impl Iterator<Item = &Parameter> {
        self.parameters
            .iter()
            .filter(move |it| it.purpose == purpose)
    }
}

impl Parameter {
    fn read(attributes: &[Group], tokens: &[TokenTree]) -> Result<Self, Mistake> {
        let mut tokens = tokens;
        if word(tokens.first()).is_some_and(|word| word == "mut") {
            tokens = tokens.get(1..).unwrap_or_default();
        }
        let flat = match tokens.first() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::None => {
                flatten(group.stream())
            }
            Some(first) => vec![first.clone()],
            None => Vec::new(),
        };
        let span = tokens.first().map_or_else(Span::call_site, TokenTree::span);
        let [TokenTree::Ident(name)] = flat.as_slice() else {
            return Err(not_a_name(span));
        };
        if punct(tokens.get(1)) != Some(':') || ["ref", "_"].contains(&name.to_string().as_str()) {
            return Err(not_a_name(span));
        }
        let ty = without_comma(tokens.get(2..).unwrap_or_default());
        let ty: TokenStream = ty.iter().cloned().collect();
        let marked = |mark: &str| attributes.iter().any(|attribute| is_mark(attribute, mark));
        let purpose = if marked("state") {
            Purpose::State
        } else if marked("context") || is_context(ty.clone()) {
            Purpose::Context
        } else {
            Purpose::Argument
        };
        check_type(purpose, &ty)?;
        for attribute in attributes {
            let name = word(flatten(attribute.stream()).first()).unwrap_or_default();
            if name.starts_with("cfg") {
                let message = "`#[cfg(..)]` is not supported on a parameter: write two functions";
                return Err(Mistake::new(attribute.span(), message));
            }
        }
        let default = default_of(attributes, purpose, &ty)?;
        let mut attributes = attributes.to_vec();
        attributes.retain(|it| {
            !is_mark(it, "state")
                && !is_mark(it, "context")
                && !is_default(it)
                && !is_for_the_compiler(it)
        });
        let parameter = Self {
            purpose,
            name: name.clone(),
            ty,
            attributes,
            default,
        };
        if parameter.default.is_some() && parameter.serde().contains("default") {
            let message = "duplicate default: use either `#[default(..)]` or `#[serde(default)]`";
            return Err(Mistake::new(span, message));
        }
        Ok(parameter)
    }

    /// The text of the parameter's serde attributes.
    pub(crate) fn serde(&self) -> String {
        let of_serde = self.attributes.iter().map(|it| it.stream().to_string());
        of_serde.filter(|it| it.starts_with("serde")).collect()
    }
}

/// The expression in `#[default(..)]`, if there is one.
fn default_of(
    attributes: &[Group],
    purpose: Purpose,
    ty: &TokenStream,
) -> Result<Option<TokenStream>, Mistake> {
    let Some(attribute) = attributes.iter().find(|it| is_default(it)) else {
        return Ok(None);
    };
    let mistake = |message: &str| Err(Mistake::new(attribute.span(), message));
    match purpose {
        Purpose::Argument => {}
        Purpose::State => {
            return mistake(
                "state cannot have a default: it is passed to the function that builds the tool",
            );
        }
        Purpose::Context => {
            return mistake("the request context cannot have a default: it is always present");
        }
    }
    if outer_type(ty) == "Option" {
        return mistake(
            "a parameter with a default is never `None`: use `T` instead of `Option<T>`, or remove the default",
        );
    }
    match flatten(attribute.stream()).as_slice() {
        [_, TokenTree::Group(value)]
            if value.delimiter() == Delimiter::Parenthesis && !value.stream().is_empty() =>
        {
            Ok(Some(value.stream()))
        }
        _ => mistake(
            "expected a default value in parentheses: `#[default(3)]` or `#[default(\"red\")]`",
        ),
    }
}

/// The last segment of a type's path, without its generics.
pub(crate) fn outer_type(ty: &TokenStream) -> String {
    let tokens = flatten(ty.clone());
    let words = tokens.iter().map_while(|token| match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        TokenTree::Punct(punct) if punct.as_char() == ':' => Some(String::new()),
        _ => None,
    });
    words
        .filter(|word| !word.is_empty())
        .last()
        .unwrap_or_default()
}

fn not_a_name(span: Span) -> Mistake {
    let message = "expected a plain parameter name, such as `city: String`: it becomes the name of the argument";
    Mistake::new(span, message)
}

/// Refuses types that a parameter of this purpose cannot have.
fn check_type(purpose: Purpose, ty: &TokenStream) -> Result<(), Mistake> {
    let flat = flatten(ty.clone());
    if word(flat.first()).is_some_and(|word| word == "impl" || word == "dyn") {
        let span = flat.first().map_or_else(Span::call_site, TokenTree::span);
        return Err(Mistake::new(
            span,
            "`impl` and `dyn` types are not supported here: use a concrete type",
        ));
    }
    let is_shared = |token: &&TokenTree| {
        let shared = ["Mutex", "RwLock"];
        word(Some(token)).is_some_and(|word| shared.contains(&word.as_str()))
    };
    if purpose == Purpose::Argument
        && let Some(shared) = flat.iter().find(is_shared)
    {
        let message = "this type cannot be read from JSON: for state that calls share, write `#[state]` before the parameter";
        return Err(Mistake::new(shared.span(), message));
    }
    let mut tokens = flat.iter().enumerate();
    let reference = tokens.find(|(_, token)| punct(Some(token)) == Some('&'));
    let Some((index, reference)) = reference else {
        return Ok(());
    };
    match purpose {
        Purpose::Argument => Err(Mistake::new(
            reference.span(),
            "an argument cannot be borrowed, since it outlives the message: use an owned type, such as `String` instead of `&str`",
        )),
        Purpose::State if word(flat.get(index + 2)).is_some_and(|word| word == "static") => Ok(()),
        Purpose::State => Err(Mistake::new(
            reference.span(),
            "state cannot be borrowed, since each call gets its own clone: use a type that can be cloned, such as an `Arc`",
        )),
        Purpose::Context => Err(Mistake::new(
            reference.span(),
            "the request context must be taken by value: `cx: RequestContext`",
        )),
    }
}

/// The attributes before a parameter, and the tokens after them.
fn attributes_of(tokens: &[TokenTree]) -> (Vec<Group>, &[TokenTree]) {
    let mut attributes = Vec::new();
    let mut rest = tokens;
    while let [TokenTree::Punct(hash), TokenTree::Group(group), after @ ..] = rest {
        if hash.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
            break;
        }
        attributes.push(group.clone());
        rest = after;
    }
    (attributes, rest)
}

/// Whether an attribute is this mark, such as `#[state]`.
fn is_mark(attribute: &Group, mark: &str) -> bool {
    let tokens = flatten(attribute.stream());
    tokens.len() == 1 && word(tokens.first()).is_some_and(|word| word == mark)
}

/// Whether an attribute is `#[default]` in any form.
fn is_default(attribute: &Group) -> bool {
    word(flatten(attribute.stream()).first()).is_some_and(|word| word == "default")
}

/// Whether an attribute sets a lint, and so stays on the parameter of the function.
fn is_for_the_compiler(attribute: &Group) -> bool {
    let name = word(flatten(attribute.stream()).first()).unwrap_or_default();
    ["allow", "expect", "warn", "deny", "forbid"].contains(&name.as_str())
}

/// Whether the last segment of a type is `RequestContext`.
fn is_context(ty: TokenStream) -> bool {
    let flat = flatten(ty);
    let last = flat.iter().rfind(|token| punct(Some(token)) != Some('>'));
    word(last).is_some_and(|word| word == "RequestContext")
}

/// The span of `self`, in any of its forms.
fn receiver(tokens: &[TokenTree]) -> Option<Span> {
    for token in tokens {
        match token {
            TokenTree::Punct(punct) if ['&', '\''].contains(&punct.as_char()) => {}
            TokenTree::Ident(ident) if ident.to_string() == "self" => {
                return tokens.first().map(TokenTree::span);
            }
            // `mut`, or the name of a lifetime.
            TokenTree::Ident(_) => {}
            _ => return None,
        }
    }
    None
}
