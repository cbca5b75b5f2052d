//! Leaving the terminal.
