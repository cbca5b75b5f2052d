//! mod_auth_form: logins by an HTML form, which last as long as a session.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_auth_form.html>

mod check;
mod fields;
mod form;
mod handlers;
mod instead;
mod rows;
mod session;

use server::directive::Row;
use server::hooks::{Hooks, Phase, Rank, always};
use server::merge::{Replace, Setting};
use server::module::Module;

use super::expression::Expression;
use super::provider::AuthnProvider;

/// `mod_auth_form.c`
pub struct AuthForm;

impl Module for AuthForm {
    const NAME: &'static str = "auth_form_module";
    const FILE: &'static str = "mod_auth_form.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthForm>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, AuthForm>) {
        hooks.on(Phase::CheckUserId, Rank::MIDDLE, always, check::authenticate);
        hooks.handler("form-login-handler", handlers::login);
        hooks.handler("form-logout-handler", handlers::logout);
        hooks.handler(instead::HANDLER, instead::handle);
        hooks.post_config(rows::check);
    }
}

/// A provider by name.
#[derive(Clone)]
pub struct Named {
    name: String,
    provider: AuthnProvider,
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthFormProvider`
        pub providers: Replace<Named>,
        /// `AuthFormAuthoritative`
        pub authoritative: Setting<bool>,
        /// `AuthFormFakeBasicAuth`
        pub fake: Setting<bool>,
        /// `AuthFormDisableNoStore`
        pub may_store: Setting<bool>,
        /// `AuthFormUsername`
        pub user_field: Setting<Vec<u8>>,
        /// `AuthFormPassword`
        pub password_field: Setting<Vec<u8>>,
        /// `AuthFormLocation`
        pub location_field: Setting<Vec<u8>>,
        /// `AuthFormMethod`
        pub method_field: Setting<Vec<u8>>,
        /// `AuthFormMimetype`
        pub media_type_field: Setting<Vec<u8>>,
        /// `AuthFormBody`
        pub body_field: Setting<Vec<u8>>,
        /// `AuthFormSize`, bytes.
        pub form_bytes: Setting<usize>,
        /// `AuthFormSitePassphrase`
        pub site: Setting<Vec<u8>>,
        /// `AuthFormLoginRequiredLocation`
        pub login_required: Setting<Expression>,
        /// `AuthFormLoginSuccessLocation`
        pub login_success: Setting<Expression>,
        /// `AuthFormLogoutLocation`
        pub logout: Setting<Expression>,
    }
}

/// The default of `AuthFormSize` (`HUGE_STRING_LEN`).
const FORM_BYTES: usize = 8192;
