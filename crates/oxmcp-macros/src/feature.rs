//! Expansion of `#[tool]`, `#[prompt]` and `#[resource]`: the unchanged function, and an empty enum of the same name, whose
//! associated function builds the tool.
//!
//! ```text
//! async fn divide(a: f64, b: f64) -> f64 { .. }
//!
//! enum divide {}
//! impl divide {
//!     fn tool() -> ::oxmcp::Tool {
//!         #[derive(Deserialize, JsonSchema)]
//!         struct __Input { /** the dividend */ a: f64, /** the divisor */ b: f64 }
//!         ::oxmcp::Tool::new("divide", "Divide a by b.", |__Input { a, b }: __Input| divide(a, b))
//!     }
//! }
//! ```
//!
//! A function lives in the namespace of values and an enum in that of types, so one `use` brings both. The expansion is the
//! code that a user would write by hand: the builders make all decisions.

use proc_macro::{Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

use crate::{
    function::{Function, Parameter, Purpose, outer_type},
    literal,
    options::Options,
    tokens::{Mistake, fill, flatten},
    uri,
};

/// The kind of item that is made from a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

/// The names of the builder and of the function that returns it.
struct Target {
    /// The name of the builder type.
    builder: &'static str,
    /// The name of the function that returns the builder.
    function: &'static str,
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Prompt => "a prompt",
            Self::Resource => "a resource",
        }
    }

    fn target(self, is_template: bool) -> Target {
        let (builder, function) = match self {
            Self::Tool => ("Tool", "tool"),
            Self::Prompt => ("Prompt", "prompt"),
            Self::Resource if is_template => ("ResourceTemplate", "template"),
            Self::Resource => ("Resource", "resource"),
        };
        Target { builder, function }
    }
}

/// Emits the function and its companion, and the errors if there are any.
pub(crate) fn expand(kind: Kind, arguments: TokenStream, item: TokenStream) -> TokenStream {
    let mut mistakes = Vec::new();
    let options = Options::read(arguments, kind == Kind::Resource, &mut mistakes);
    let function = match Function::read(item.clone(), kind.noun(), &mut mistakes) {
        Ok(function) => function,
        Err(mistake) => {
            let mut output = mistake.into_tokens();
            output.extend(item);
            return output;
        }
    };
    let is_template = check_uri(&options, &function, &mut mistakes);
    let target = kind.target(is_template);
    let description = description(kind, &options, &function, &mut mistakes);
    let mut output = function.item.clone();
    let body = if mistakes.is_empty() {
        body(&options, &function, &target, description)
    } else {
        // The mistakes are reported as errors; a missing function would cause another one.
        fill("::core::unreachable!()", Span::mixed_site(), &[])
    };
    if function.is_free {
        output.extend(companion(&options, &function, &target, body));
    }
    output.extend(mistakes.into_iter().map(Mistake::into_tokens));
    output
}

/// The description, which the model reads. A tool and a prompt must have one.
fn description(
    kind: Kind,
    options: &Options,
    function: &Function,
    mistakes: &mut Vec<Mistake>,
) -> Option<TokenStream> {
    if options.description.is_some() {
        return options.description.clone();
    }
    let text = literal::description(&function.docs);
    if !text.is_empty() {
        return Some(TokenTree::Literal(Literal::string(&text)).into());
    }
    if kind != Kind::Resource {
        let message = format!(
            "{} needs a doc comment, which models read as its description: `/// What it does.`",
            kind.noun()
        );
        mistakes.push(Mistake::new(function.name.span(), message));
    }
    None
}

/// Checks the variables of a URI template against the parameters. Returns whether the URI is a template.
fn check_uri(options: &Options, function: &Function, mistakes: &mut Vec<Mistake>) -> bool {
    let Some((uri, at)) = &options.uri else {
        return false;
    };
    let variables = match uri::variables(uri) {
        Ok(variables) => variables,
        Err(mistake) => {
            mistakes.push(Mistake::new(at.span(), mistake));
            return true;
        }
    };
    let arguments = || function.parameters_of(Purpose::Argument);
    let names: Vec<_> = variables
        .iter()
        .map(|it| format!("`{}`", it.name))
        .collect();
    let renames = |it: &Parameter| {
        let serde = it.serde();
        ["rename", "alias", "flatten"]
            .iter()
            .any(|word| serde.contains(word))
    };
    if arguments().any(renames) {
        // Then the schema gives the names, and only the builder knows them.
        return !variables.is_empty();
    }
    for argument in arguments() {
        let name = plain(&argument.name);
        let Some(variable) = variables.iter().find(|it| it.name == name) else {
            let known = match names.as_slice() {
                [] => "it has none".to_owned(),
                names => format!("its variables are {}", names.join(", ")),
            };
            let message = format!("`{name}` is not a variable of the URI ({known})");
            mistakes.push(Mistake::new(argument.name.span(), message));
            continue;
        };
        let may_be_missing = outer_type(&argument.ty) == "Option"
            || argument.default.is_some()
            || argument.serde().contains("default");
        if variable.is_optional && !variable.is_list && !may_be_missing {
            let message = format!(
                "`{name}` is optional in the URI: use an `Option`, or write `#[default(..)]` before the parameter"
            );
            mistakes.push(Mistake::new(argument.name.span(), message));
        }
    }
    for variable in &variables {
        if !arguments().any(|it| plain(&it.name) == variable.name) {
            let message = format!("missing parameter for the variable `{}`", variable.name);
            mistakes.push(Mistake::new(at.span(), message));
        }
    }
    !variables.is_empty()
}

/// The companion of the function: the enum with `fn tool(<state>) -> Tool { body }`.
fn companion(
    options: &Options,
    function: &Function,
    target: &Target,
    body: TokenStream,
) -> TokenStream {
    let code = format!(
        "#[doc(hidden)]
         #[allow(missing_debug_implementations, missing_docs, non_camel_case_types, unnameable_types, unreachable_pub, clippy::all)]
         CONDITIONS VISIBILITY enum NAME {{}}

         #[allow(deprecated, missing_docs, non_camel_case_types, unreachable_pub, clippy::all)]
         CONDITIONS impl NAME {{
             #[doc = \"Builds it from the function of this name.\"]
             #[must_use]
             VISIBILITY fn {}(STATE) -> {}::{} {{ BODY }}
         }}",
        target.function, options.facade, target.builder
    );
    let mut state = TokenStream::new();
    for parameter in function.parameters_of(Purpose::State) {
        let holes = [
            ("NAME", local(&parameter.name)),
            ("TYPE", parameter.ty.clone()),
        ];
        state.extend(fill("NAME: TYPE,", Span::mixed_site(), &holes));
    }
    let holes = [
        ("CONDITIONS", function.conditions.clone()),
        ("VISIBILITY", function.visibility.clone()),
        ("NAME", ident(&function.name)),
        ("STATE", state),
        ("BODY", body),
    ];
    fill(&code, Span::mixed_site(), &holes)
}

/// The body of the companion's function: the struct of the arguments, and the builder.
fn body(
    options: &Options,
    function: &Function,
    target: &Target,
    description: Option<TokenStream>,
) -> TokenStream {
    let facade = &options.facade;
    let mut output = input(facade, function);
    let first = match &options.uri {
        Some((_, uri)) => TokenTree::Literal(uri.clone()).into(),
        None => name(options, function),
    };
    let (second, described) = match (&options.uri, description) {
        (None, Some(description)) => (description, TokenStream::new()),
        (None, None) => (TokenStream::new(), TokenStream::new()),
        (Some(_), None) => (name(options, function), TokenStream::new()),
        (Some(_), Some(text)) => {
            let described = fill(".description(TEXT)", Span::mixed_site(), &[("TEXT", text)]);
            (name(options, function), described)
        }
    };
    // Errors about the returned value are reported at the return type.
    let returned = Span::mixed_site().located_at(function.returned);
    let holes = [
        ("FIRST", first),
        ("SECOND", second),
        ("HANDLER", handler(facade, function)),
    ];
    let builder = target.builder;
    output.extend(fill(
        &format!("{facade}::{builder}::new(FIRST, SECOND, HANDLER)"),
        returned,
        &holes,
    ));
    output.extend(described);
    output.extend(options.methods.clone());
    output
}

/// The name that is passed to the builder.
fn name(options: &Options, function: &Function) -> TokenStream {
    let plain = || TokenTree::Literal(Literal::string(&plain(&function.name))).into();
    options.name.clone().unwrap_or_else(plain)
}

/// The struct into which the arguments are deserialized, if there are any.
fn input(facade: &str, function: &Function) -> TokenStream {
    let mut fields = TokenStream::new();
    let mut defaults = TokenStream::new();
    for parameter in function.parameters_of(Purpose::Argument) {
        if let Some(value) = &parameter.default {
            let name = format!("__default_{}", plain(&parameter.name));
            let code = format!("fn {name}() -> TYPE {{ {} }}", default_value(value));
            let holes = [("TYPE", parameter.ty.clone()), ("VALUE", value.clone())];
            defaults.extend(fill(&code, Span::mixed_site(), &holes));
            let attribute = format!("#[serde(default = \"{name}\")]");
            fields.extend(fill(&attribute, Span::mixed_site(), &[]));
        }
        for attribute in &parameter.attributes {
            let hash = TokenTree::Punct(Punct::new('#', Spacing::Alone));
            fields.extend([hash, TokenTree::Group(attribute.clone())]);
        }
        let holes = [
            ("NAME", ident(&parameter.name)),
            ("TYPE", parameter.ty.clone()),
        ];
        fields.extend(fill("NAME: TYPE,", Span::call_site(), &holes));
    }
    if fields.is_empty() {
        return fields;
    }
    let code = format!(
        "#[derive({facade}::__private::serde::Deserialize, {facade}::JsonSchema)]
         #[serde(crate = \"{facade}::__private::serde\")]
         #[oxmcp(crate = \"{facade}\")]
         struct __Input {{ FIELDS }}"
    );
    defaults.extend(fill(&code, Span::mixed_site(), &[("FIELDS", fields)]));
    defaults
}

/// The code of a default: a string literal is converted to the type of the parameter.
fn default_value(value: &TokenStream) -> &'static str {
    let is_text = match flatten(value.clone()).as_slice() {
        [TokenTree::Literal(literal)] => literal::text(&literal.to_string()).is_some(),
        _ => false,
    };
    if is_text {
        "::core::convert::From::from(VALUE)"
    } else {
        "VALUE"
    }
}

/// The closure that destructures the arguments and calls the function, in the order of its parameters.
fn handler(facade: &str, function: &Function) -> TokenStream {
    let (mut fields, mut call) = (TokenStream::new(), TokenStream::new());
    for parameter in &function.parameters {
        let name = local(&parameter.name);
        // Errors about the type of a parameter are reported at that type.
        let first = flatten(parameter.ty.clone()).first().map(TokenTree::span);
        let at = Span::mixed_site().located_at(first.unwrap_or_else(|| parameter.name.span()));
        let holes = [
            ("NAME", name),
            ("TYPE", parameter.ty.clone()),
            ("FIELD", ident(&parameter.name)),
        ];
        match parameter.purpose {
            Purpose::Argument => {
                fields.extend(fill("FIELD: NAME,", Span::mixed_site(), &holes));
                call.extend(fill("NAME,", Span::mixed_site(), &holes));
            }
            Purpose::State => {
                let share = format!("{facade}::traits::SharedAs::<TYPE>::share(&NAME),");
                call.extend(fill(&share, at, &holes));
            }
            Purpose::Context => {
                let of = format!("<TYPE as {facade}::traits::HandlerContext>::of(__context),");
                call.extend(fill(&of, at, &holes));
            }
        }
    }
    let mut parameters = String::new();
    if function.parameters_of(Purpose::Context).next().is_some() {
        parameters.push_str(&format!("__context: {facade}::RequestContext,"));
    }
    if !fields.is_empty() {
        parameters.push_str("__Input { FIELDS }: __Input");
    }
    let returned = Span::mixed_site().located_at(function.returned);
    let holes = [
        ("FIELDS", fields),
        ("FUNCTION", ident(&function.name)),
        ("CALL", call),
    ];
    fill(
        &format!("move |{parameters}| FUNCTION(CALL)"),
        returned,
        &holes,
    )
}

/// A name without `r#`.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

fn ident(name: &Ident) -> TokenStream {
    TokenTree::Ident(name.clone()).into()
}

/// A variable with the name of a parameter. Hygiene keeps it from referring to the function or to a variable of the user.
fn local(name: &Ident) -> TokenStream {
    let mut name = name.clone();
    name.set_span(Span::mixed_site().located_at(name.span()));
    TokenTree::Ident(name).into()
}
