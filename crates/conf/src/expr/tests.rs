//! Expressions as a whole.
