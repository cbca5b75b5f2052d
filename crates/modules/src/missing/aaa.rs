//! Authentication and authorisation.

use server::missing::{Missing, missing};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!(
        "authnz_ldap",
        "AuthLDAPAuthorizePrefix AuthLDAPBindAuthoritative AuthLDAPBindDN \
         AuthLDAPBindPassword AuthLDAPCharsetConfig AuthLDAPCompareAsUser \
         AuthLDAPCompareDNOnServer AuthLDAPDereferenceAliases AuthLDAPGroupAttribute \
         AuthLDAPGroupAttributeIsDN AuthLDAPInitialBindAsUser AuthLDAPInitialBindPattern \
         AuthLDAPMaxSubGroupDepth AuthLDAPRemoteUserAttribute AuthLDAPRemoteUserIsDN \
         AuthLDAPSearchAsUser AuthLDAPSubGroupAttribute AuthLDAPSubGroupClass AuthLDAPURL"
    )
    .providers("ldap ldap-user ldap-group ldap-dn ldap-attribute ldap-filter ldap-search"),
    missing!(
        "ldap",
        "LDAPCacheEntries LDAPCacheTTL LDAPConnectionPoolTTL LDAPConnectionTimeout \
         LDAPLibraryDebug LDAPOpCacheEntries LDAPOpCacheTTL LDAPReferralHopLimit \
         LDAPReferrals LDAPRetries LDAPRetryDelay LDAPSharedCacheFile LDAPSharedCacheSize \
         LDAPTimeout LDAPTrustedClientCert LDAPTrustedGlobalCert LDAPTrustedMode \
         LDAPVerifyServerCert"
    )
    .in_file("util_ldap.c")
    .handlers("ldap-status"),
];
