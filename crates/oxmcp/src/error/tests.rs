//! Tests of errors as people read them.

use super::*;

#[test]
fn error_from_main_is_printed_readably() {
    let error = Error::closed("the server exited with status 1\nits last words:\n    oh");
    assert_eq!(
        format!("{error:?}"),
        "the server exited with status 1\nits last words:\n    oh"
    );
    assert!(format!("{error:#?}").contains("kind: Closed"));
}
