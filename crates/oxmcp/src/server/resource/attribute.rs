//! Attribute `#[resource]`.

/// Makes a resource of an async function, or a resource template where the URI has variables.
///
/// The first thing in the attribute is the URI. Without variables there is `name::resource()` beside the function, which makes the
/// [`Resource`](struct@crate::Resource) for [`Server::resource`](crate::Server::resource); with variables there is `name::template()`, for
/// [`Server::resource_template`](crate::Server::resource_template), and each variable is a parameter, an [`Option`] where URIs may be
/// without it. The compiler says where they do not fit each other. A doc comment is the description, and may be missing. All else is as
/// with [`tool`](macro@crate::tool).
///
/// ```
/// use oxmcp::Server;
///
/// /// The weather as it is.
/// #[oxmcp::resource("weather://now", mime_type("text/plain"))]
/// async fn now() -> &'static str {
///     "20 °C"
/// }
///
/// /// The weather as it will be.
/// #[oxmcp::resource("weather://{city}/{day}{?unit}")]
/// async fn forecast(city: String, day: u8, unit: Option<String>) -> Option<String> {
///     let unit = unit.unwrap_or_else(|| "°C".to_owned());
///     (day < 7).then(|| format!("20 {unit} in {city}"))
/// }
///
/// let server = Server::new("weather", "1.0.0")
///     .resource(now::resource())
///     .resource_template(forecast::template());
/// # let _ = server;
/// ```
pub use oxmcp_macros::resource;
