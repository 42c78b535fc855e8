//! Attributes that make tools, prompts and resources of functions.

mod functions;
mod same_as_by_hand;
