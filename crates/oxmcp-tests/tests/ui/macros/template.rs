//! Templates whose variables and the function's parameters do not match, and templates that are malformed or missing.

#[oxmcp::resource("weather://{city}/{day}")]
async fn unknown(city: String, dya: u8) -> Option<String> {
    Some(format!("{city} {dya}"))
}

#[oxmcp::resource("weather://{city}{?day}")]
async fn optional(city: String, day: u8) -> Option<String> {
    Some(format!("{city} {day}"))
}

#[oxmcp::resource("weather://{city")]
async fn broken(city: String) -> Option<String> {
    Some(city)
}

#[oxmcp::resource("weather://now")]
async fn none(city: String) -> Option<String> {
    Some(city)
}

#[oxmcp::resource]
async fn without() -> String {
    String::new()
}

#[oxmcp::resource(mime_type("text/plain"))]
async fn late() -> String {
    String::new()
}

fn main() {}
