//! What the compiler says to those who use the crate wrongly: each file of `tests/ui` fails with the text beside it.

#[test]
fn compile_errors_teach() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
