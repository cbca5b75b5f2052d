//! All others: names, protocols, logs, sessions.

use server::missing::{Missing, missing};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!("dialup", "ModemStandard"),
    missing!("example_hooks", "Example"),
    missing!("example_ipc", ""),
    missing!(
        "md",
        "<MDomain <MDomainSet MDActivationDelay MDBaseServer MDCACertificateFile \
         MDCAChallenges MDCertificateAgreement MDCertificateAuthority MDCertificateCheck \
         MDCertificateFile MDCertificateKeyFile MDCertificateMonitor MDCertificateProtocol \
         MDCertificateStatus MDChallengeDns01 MDChallengeDns01Version MDCheckInterval \
         MDContactEmail MDDriveMode MDExternalAccountBinding MDHttpProxy \
         MDHttpProxyCACertificateFile MDInitialDelay MDMatchNames MDMember MDMembers \
         MDMessageCmd MDMustStaple MDNotifyCmd MDomain MDPortMap MDPrivateKeys MDProfile \
         MDProfileMandatory MDRenewMode MDRenewViaARI MDRenewWindow MDRequireHttps \
         MDRetryDelay MDRetryFailover MDServerStatus MDStapleOthers MDStapling \
         MDStaplingKeepResponse MDStaplingRenewWindow MDStoreDir MDStoreLocks MDWarnWindow"
    )
    .handlers("md-status"),
    missing!("optional_fn_export", ""),
    missing!("optional_fn_import", ""),
    missing!("optional_hook_export", ""),
    missing!("optional_hook_import", ""),
    missing!("systemd", "").needless(),
];
