//! Trait of all that can be made to fit a revision, and error codes that a revision does not have.

use crate::{
    jsonrpc::error::{ErrorCode, ErrorObject},
    meta::object::Meta,
    revision::version::Revision,
};

/// What can be made to fit a revision.
pub trait Project {
    /// Drops or rewrites what `to` does not have. What fits already costs next to nothing.
    fn project(&mut self, to: Revision);
}

impl<T: Project> Project for Vec<T> {
    fn project(&mut self, to: Revision) {
        for item in self {
            item.project(to);
        }
    }
}

impl<T: Project> Project for Option<T> {
    fn project(&mut self, to: Revision) {
        if let Some(item) = self {
            item.project(to);
        }
    }
}

impl<T: Project> Project for Box<T> {
    fn project(&mut self, to: Revision) {
        (**self).project(to);
    }
}

/// `_meta` of a part of a message. (That of the message itself is in every revision.)
pub(crate) fn part_meta(meta: &mut Meta, to: Revision) {
    if !to.has_part_meta() {
        *meta = Meta::default();
    }
}

/// Makes an error fit a revision: message and data stay, the code becomes the nearest one that the revision has.
pub fn project_error(error: &mut ErrorObject, to: Revision) {
    let modern = to.is_modern();
    error.code = match error.code {
        ErrorCode::RESOURCE_NOT_FOUND if !to.has_resource_not_found() => ErrorCode::INVALID_PARAMS,
        ErrorCode::URL_ELICITATION_REQUIRED if !to.has_url_elicitation_required() => {
            ErrorCode::INVALID_REQUEST
        }
        ErrorCode::HEADER_MISMATCH | ErrorCode::MISSING_CLIENT_CAPABILITY if !modern => {
            ErrorCode::INVALID_REQUEST
        }
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION if !modern => ErrorCode::INVALID_PARAMS,
        code => code,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_by_revision() {
        use Revision as R;
        for (code, to, expected) in [
            (ErrorCode::RESOURCE_NOT_FOUND, R::V2025_11_25, -32002),
            (ErrorCode::RESOURCE_NOT_FOUND, R::V2026_07_28, -32602),
            (ErrorCode::URL_ELICITATION_REQUIRED, R::V2025_11_25, -32042),
            (ErrorCode::URL_ELICITATION_REQUIRED, R::V2025_06_18, -32600),
            (ErrorCode::URL_ELICITATION_REQUIRED, R::V2026_07_28, -32600),
            (ErrorCode::MISSING_CLIENT_CAPABILITY, R::V2025_11_25, -32600),
            (
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
                R::V2024_11_05,
                -32602,
            ),
            (
                ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
                R::V2026_07_28,
                -32022,
            ),
            (ErrorCode::from(7), R::V2024_11_05, 7),
        ] {
            let mut error = ErrorObject::new(code, "message");
            project_error(&mut error, to);
            assert_eq!(error.code.value(), expected, "{code} to {to}");
            assert_eq!(error.message, "message");
        }
    }
}
