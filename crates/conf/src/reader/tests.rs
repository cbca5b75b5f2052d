//! Reading as a whole.
