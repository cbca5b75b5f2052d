//! The phases of a request.

/// The phases of a request, in Apache's order (docs/decisions, reference of phases).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Phase {
    /// After the head is read; with the host's own configuration. Run all.
    PostReadRequest,
    /// Before anything else is known; for mod_cache. Run first.
    QuickHandler,
    /// On the still escaped URL. Run first.
    PreTranslateName,
    /// URL to file name. Run first.
    TranslateName,
    /// File name to configuration; OPTIONS * and TRACE respond here. Run first.
    MapToStorage,
    /// After all sections are merged. Run all.
    PostPerdirConfig,
    /// Main request only. Run all.
    HeaderParser,
    /// Access by anything but identity. Run all.
    AccessChecker,
    /// Authorisation without a user. Run first.
    AccessCheckerEx,
    /// Whether authentication must run even if access was granted. Run first.
    ForceAuthn,
    /// Authentication. Run first.
    CheckUserId,
    /// Authorisation. Run first.
    AuthChecker,
    /// The media type, handler and encodings. Run first.
    TypeChecker,
    /// Last changes before the handler. Run all.
    Fixups,
    /// Output filters of an ordinary response. Run all.
    InsertFilter,
    /// Output filters of an error response. Run all.
    InsertErrorFilter,
    /// The response itself. Run first.
    Handler,
    /// After the response is sent. Run all.
    LogTransaction,
}

impl Phase {
    /// The number of phases.
    pub const COUNT: usize = Phase::LogTransaction as usize + 1;

    /// All phases in order.
    pub const ALL: [Phase; Phase::COUNT] = [
        Phase::PostReadRequest,
        Phase::QuickHandler,
        Phase::PreTranslateName,
        Phase::TranslateName,
        Phase::MapToStorage,
        Phase::PostPerdirConfig,
        Phase::HeaderParser,
        Phase::AccessChecker,
        Phase::AccessCheckerEx,
        Phase::ForceAuthn,
        Phase::CheckUserId,
        Phase::AuthChecker,
        Phase::TypeChecker,
        Phase::Fixups,
        Phase::InsertFilter,
        Phase::InsertErrorFilter,
        Phase::Handler,
        Phase::LogTransaction,
    ];

    /// Apache's name of the phase.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::PostReadRequest => "post_read_request",
            Phase::QuickHandler => "quick_handler",
            Phase::PreTranslateName => "pre_translate_name",
            Phase::TranslateName => "translate_name",
            Phase::MapToStorage => "map_to_storage",
            Phase::PostPerdirConfig => "post_perdir_config",
            Phase::HeaderParser => "header_parser",
            Phase::AccessChecker => "access_checker",
            Phase::AccessCheckerEx => "access_checker_ex",
            Phase::ForceAuthn => "force_authn",
            Phase::CheckUserId => "check_user_id",
            Phase::AuthChecker => "auth_checker",
            Phase::TypeChecker => "type_checker",
            Phase::Fixups => "fixups",
            Phase::InsertFilter => "insert_filter",
            Phase::InsertErrorFilter => "insert_error_filter",
            Phase::Handler => "handler",
            Phase::LogTransaction => "log_transaction",
        }
    }
}
