//! The black-box tests.
fn main() {}
