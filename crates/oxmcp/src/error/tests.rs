//! Tests of errors as people read them.

use super::*;

#[test]
fn what_main_returns_is_printed_for_a_person() {
    let error = Error::closed("the server exited with status 1\nits last words:\n    oh");
    assert_eq!(
        format!("{error:?}"),
        "the server exited with status 1\nits last words:\n    oh"
    );
    assert!(format!("{error:#?}").contains("kind: Closed"));
}
