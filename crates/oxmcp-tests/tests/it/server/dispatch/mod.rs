//! Dispatch of requests: negotiation, methods of each revision, pages, views, spans.

mod methods_by_revision;
mod negotiation;
mod pages;
mod sessions;
mod span;
mod views;
