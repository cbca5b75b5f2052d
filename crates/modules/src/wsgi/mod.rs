//! Python applications.

pub mod mod_wsgi;
