/// A name as it stands in a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901#section-3).
pub(crate) fn pointer_token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
