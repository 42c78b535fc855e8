//! Compile errors of wrong uses: each file of `tests/ui` fails with the text beside it.

#[test]
fn compile_errors_teach() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
