//! Tests of the settings of an endpoint.

mod settings;
