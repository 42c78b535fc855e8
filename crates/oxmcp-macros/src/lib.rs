//! Derive macros of the oxmcp SDK.
