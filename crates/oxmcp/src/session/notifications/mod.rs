pub(crate) mod bounded;
pub(crate) mod of_request;
pub(crate) mod progress_in;
pub(crate) mod progress_out;
pub(crate) mod progress_tokens;
pub(crate) mod queue;
