//! The files of the page, which are part of the program.

/// The document.
pub(crate) const INDEX: &str = include_str!("page/index.html");

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal $kind:ident)+) => {
        /// Finds a file. Returns its media type and its text.
        pub(crate) fn find(name: &str) -> Option<(&'static str, &'static str)> {
            match name {
                $($name => Some(($kind, include_str!(concat!("page/", $name)))),)+
                _ => None,
            }
        }
    };
}

files! {
    "api.js" SCRIPT
    "apps.js" SCRIPT
    "content.js" SCRIPT
    "dom.js" SCRIPT
    "findings.js" SCRIPT
    "form.js" SCRIPT
    "icon.svg" IMAGE
    "json.js" SCRIPT
    "latency.js" SCRIPT
    "logs.js" SCRIPT
    "main.js" SCRIPT
    "messages.js" SCRIPT
    "overview.js" SCRIPT
    "prompts.js" SCRIPT
    "questions.js" SCRIPT
    "resources.js" SCRIPT
    "results.js" SCRIPT
    "section.js" SCRIPT
    "server.js" SCRIPT
    "store.js" SCRIPT
    "style.css" STYLE
    "tools.js" SCRIPT
}
