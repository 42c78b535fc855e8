//! Trait of types that can be fitted to a revision, and projection of error codes.

use crate::{
    jsonrpc::error::{ErrorCode, ErrorObject},
    meta::object::Meta,
    revision::version::Revision,
};

/// A type that can be fitted to a revision.
pub trait Project {
    /// Drops or rewrites the members that `to` does not have. The cost is negligible if the value fits already.
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

/// Projects the `_meta` of a part of a message. (Every revision has the `_meta` of messages themselves.)
pub(crate) fn part_meta(meta: &mut Meta, to: Revision) {
    if !to.has_part_meta() {
        *meta = Meta::default();
    }
}

/// Fits an error to a revision: the code becomes the nearest one that the revision has; message and data stay.
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
    fn error_codes_are_projected_for_each_revision() {
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
