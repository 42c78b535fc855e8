//! Parts that examples of authorization share: an authorization server for development, and a browser without a screen.
#![cfg(feature = "authorization")]

mod browser;
mod issuer;

pub use browser::browse;
pub use issuer::DevelopmentIssuer;

/// Any error.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;
