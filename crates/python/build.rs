//! Passes on what is known of the interpreter: `Py_GIL_DISABLED` if it can run without a lock.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
