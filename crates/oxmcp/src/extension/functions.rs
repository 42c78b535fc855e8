//! Functions as methods: the function determines the types of params and result, without a [`Method`](oxmcp_protocol::Method)
//! type.

use std::fmt;

use oxmcp_json::Text;
use oxmcp_protocol::{Payload, Revision, internal::into_text};
use oxmcp_schema::{JsonSchema, Schema};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use crate::{
    error::{Error, Result, plain_decode_error},
    extension::handlers::{ServedMethod, encode, must_be_object, unfit},
    session::{
        connection::RequestContext,
        handler::traits::{Handler, HandlerContext, HandlerFuture, IntoError},
        inbound::body::Body,
        task::BoxFuture,
    },
};

/// The arguments of a function that is served as a method: `()`, `(RequestContext,)`, `(Params,)` or `(RequestContext,
/// Params)`.
#[diagnostic::on_unimplemented(
    message = "the handler of a method cannot take `{Self}`",
    label = "not `(Params)` or `(RequestContext, Params)`",
    note = "`Params` is one type of yours: `#[derive(serde::Deserialize, oxmcp::JsonSchema)]`"
)]
pub trait MethodArguments: Sized + Send + 'static {
    /// Returns the schema of the params, if the handler takes any.
    #[doc(hidden)]
    fn schema() -> Option<Schema>;

    /// Deserializes the params, which are valid.
    #[doc(hidden)]
    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self>;
}

impl MethodArguments for () {
    fn schema() -> Option<Schema> {
        None
    }

    fn read(_context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok(())
    }
}

impl MethodArguments for (RequestContext,) {
    fn schema() -> Option<Schema> {
        None
    }

    fn read(context: RequestContext, _params: &str) -> serde_json::Result<Self> {
        Ok((context,))
    }
}

impl<Params: DeserializeOwned + JsonSchema + Send + 'static> MethodArguments for (Params,) {
    fn schema() -> Option<Schema> {
        Some(Schema::of::<Params>())
    }

    fn read(_context: RequestContext, params: &str) -> serde_json::Result<Self> {
        Ok((serde_json::from_str(params)?,))
    }
}

impl<Context, Params> MethodArguments for (Context, Params)
where
    Context: HandlerContext + Send,
    Params: DeserializeOwned + JsonSchema + Send + 'static,
{
    fn schema() -> Option<Schema> {
        Some(Schema::of::<Params>())
    }

    fn read(context: RequestContext, params: &str) -> serde_json::Result<Self> {
        Ok((Context::of(context), serde_json::from_str(params)?))
    }
}

/// The result of a function that is served as a method: a `Result` whose value serializes to a JSON object. A value that
/// serializes to `null`, such as `()`, becomes the empty object. Any other value is an internal error, because results of
/// methods are objects.
#[diagnostic::on_unimplemented(
    message = "the handler of a method cannot return `{Self}`",
    label = "not a `Result` of a serializable type",
    note = "return `oxmcp::Result<T>`, or a `Result` with any `std::error::Error`, where `T: serde::Serialize` serializes to an object"
)]
pub trait IntoMethodResult {
    /// The type that is serialized.
    #[doc(hidden)]
    type Value: Serialize + Send + Sync;

    /// Converts to the result.
    #[doc(hidden)]
    fn into_method_result(self) -> Result<Self::Value>;
}

impl<T: Serialize + Send + Sync, E: IntoError> IntoMethodResult for Result<T, E> {
    type Value = T;

    fn into_method_result(self) -> Result<T> {
        self.map_err(IntoError::into_error)
    }
}

/// A result that has been serialized.
#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Box<RawValue>);

impl Payload for Answer {}

/// Serializes the result of a method as an object. `null` becomes an object without members.
fn object(name: &str, value: &impl Serialize) -> Result<Box<RawValue>> {
    let unfit = |why: &dyn fmt::Display| {
        Error::internal(format!("the result of {name} must be a JSON object: {why}"))
    };
    let written = to_raw_value(value).map_err(|error| unfit(&error))?;
    match written.get().as_bytes().first() {
        Some(b'{') => Ok(written),
        _ if written.get() == "null" => Ok(Text::EMPTY.to_raw()),
        _ => Err(unfit(&"it is not an object")),
    }
}

impl ServedMethod {
    /// A function as a method.
    pub(crate) fn of_function<Arguments, H>(
        name: &'static str,
        revisions: Vec<Revision>,
        handler: H,
    ) -> Self
    where
        Arguments: MethodArguments,
        H: Handler<Arguments>,
        H::Returned: HandlerFuture<Output: IntoMethodResult> + Send + 'static,
    {
        let schema = Arguments::schema();
        let handler = move |context: RequestContext, params: Text<'_>| {
            let params = own_params(name, params)?;
            check(name, schema.as_ref(), &params)?;
            let arguments = Arguments::read(context.clone(), &params)
                .map_err(|error| unfit(name, &plain_decode_error(&error)))?;
            let running = handler.call(arguments).run();
            let future: BoxFuture<Result<Body>> = Box::pin(async move {
                let value = running.await.into_method_result()?;
                encode(&context, Answer(object(name, &value)?))
            });
            Ok(future)
        };
        Self::erased(name, revisions, handler)
    }
}

/// The params without `_meta`, which belongs to the protocol and is in the context.
pub(crate) fn own_params(name: &str, params: Text<'_>) -> Result<String> {
    must_be_object(name, params)?;
    if let Some(doubled) = params.duplicate_key() {
        return Err(unfit(name, &format_args!("duplicate key {doubled:?}")));
    }
    let mut own = Vec::with_capacity(params.get().len());
    own.push(b'{');
    for (key, value) in params.members().filter(|(key, _)| !key.is_str("_meta")) {
        if own.len() > 1 {
            own.push(b',');
        }
        own.extend_from_slice(key.get().as_bytes());
        own.push(b':');
        own.extend_from_slice(value.get().as_bytes());
    }
    own.push(b'}');
    Ok(into_text(own)?.into())
}

fn check(name: &str, schema: Option<&Schema>, params: &str) -> Result<()> {
    let valid = schema.map_or(Ok(()), |it| it.validate_text(Text::checked(params)));
    valid.map_err(|violations| unfit(name, &violations))
}
