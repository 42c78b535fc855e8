/// What resources and templates say of themselves in the same words. Both have a `definition`, a `hint` and a
/// `visibility`.
macro_rules! options {
    ($type:ident) => {
        impl $type {
            /// A name for people to read.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// What it holds: what a model decides by.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// What it is. Contents whose handler does not say get this type.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// For whom it is, and how much it matters.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// Adds an icon.
            #[must_use]
            pub fn icon(mut self, icon: Icon) -> Self {
                self.definition.icons.push(icon);
                self
            }

            /// Sets a key of its [`_meta`](https://modelcontextprotocol.io/specification/2026-07-28/basic#meta).
            #[must_use]
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
                self.definition.meta.insert(key, value);
                self
            }

            /// What clients are told of what they read: how long it stays fresh, and who may share it. By default it is
            /// stale at once, and for who asked. A handler that returns a
            /// [`ReadResourceResult`](crate::protocol::ReadResourceResult) can say so itself, and what it says counts.
            /// What is [not for everybody](Self::visible_to) is not shared, whatever is said here.
            /// See [caching](https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching).
            #[must_use]
            pub fn cache(mut self, hint: CacheHint) -> Self {
                self.hint = Some(hint);
                self
            }

            /// Says which callers it is for. To the others it does not exist: it is not in their list, and they can
            /// neither read it nor hear of its updates; they may watch it, as they may what nobody has. The function is
            /// asked for each request, and before an update is told, and must be quick.
            #[must_use]
            pub fn visible_to(
                mut self,
                sees: impl Fn(&RequestContext) -> bool + Send + Sync + 'static,
            ) -> Self {
                self.visibility = Some(Arc::new(sees));
                self
            }
        }
    };
}

pub(super) use options;
