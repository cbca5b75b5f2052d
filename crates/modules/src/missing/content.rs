//! Handlers and filters: modules that generate or change content.

use server::missing::{Missing, missing, withholding};

/// The modules of this family.
pub(super) const FAMILY: &[Missing] = &[
    missing!("bucketeer", ""),
    missing!("case_filter", "CaseFilter").filters(&[withholding("CASEFILTER")]),
    missing!("case_filter_in", "CaseFilterIn"),
    missing!("dav", "DAV DAVBasePath DAVDepthInfinity DAVLockDiscovery DAVMinTimeout")
        .satisfied(&[("DAV", "off")])
        .handlers("dav-handler"),
    missing!("dav_fs", "DAVLockDB").inert("DAVLockDB"),
    missing!("dav_lock", "DAVGenericLockDB").inert("DAVGenericLockDB"),
    missing!(
        "lua",
        "<LuaHookAccessChecker <LuaHookAuthChecker <LuaHookCheckUserID <LuaHookFixups \
         <LuaHookMapToStorage <LuaHookPreTranslateName <LuaHookTranslateName \
         <LuaHookTypeChecker <LuaQuickHandler Lua_____ByteCodeHack LuaAuthzProvider \
         LuaCodeCache LuaHookAccessChecker LuaHookAuthChecker LuaHookCheckUserID \
         LuaHookFixups LuaHookInsertFilter LuaHookLog LuaHookMapToStorage LuaHookPreTranslate \
         LuaHookPreTranslateName LuaHookTranslateName LuaHookTypeChecker LuaInherit \
         LuaInputFilter LuaMapHandler LuaOutputFilter LuaPackageCPath LuaPackagePath \
         LuaQuickHandler LuaRoot LuaScope"
    )
    .handlers("lua-script"),
];
