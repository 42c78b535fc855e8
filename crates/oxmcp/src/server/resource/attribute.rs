//! Attribute `#[resource]`.

/// Makes a resource from an async function, or a resource template if the URI has variables.
///
/// The first argument of the attribute is the URI. Without variables, the attribute defines `name::resource()` next to the
/// function, which returns the [`Resource`](struct@crate::Resource) for [`Server::resource`](crate::Server::resource). With
/// variables, it defines `name::template()`, for [`Server::resource_template`](crate::Server::resource_template). Each variable
/// is a parameter, and an [`Option`] if URIs may omit it; a mismatch is a compile error. A doc comment is optional, and is the
/// description. Everything else is the same as for [`tool`](macro@crate::tool).
///
/// ```
/// use oxmcp::Server;
///
/// /// The current weather.
/// #[oxmcp::resource("weather://now", mime_type("text/plain"))]
/// async fn now() -> &'static str {
///     "20 °C"
/// }
///
/// /// The forecast.
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
