//! Dispatch of requests: negotiation, the methods of each revision, pages, views.

mod methods_by_revision;
mod negotiation;
mod pages;
mod sessions;
mod views;
