pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod body;
pub(crate) mod in_flight;
pub(crate) mod inline_execution;
pub(crate) mod receive;
pub(crate) mod run;
