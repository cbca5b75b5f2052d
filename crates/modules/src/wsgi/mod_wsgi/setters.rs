//! The setters of directives about scripts and requests.

use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use bstr::ByteSlice;
use conf::Arg;
use conf::values::Subnet;
use server::directive::{Cx, Fault, Set};
use server::merge::Setting;

use super::alias::{Pattern, ScriptAlias};
use super::daemon::DaemonGroup;
use super::script::{HandlerScript, Import, Script, Selector};
use super::{Directory, MapHead, Wsgi, python, trusted, words};

type Here<'a, 't> = Cx<'a, 't, Wsgi>;

pub(super) fn on_or_off(directive: &str, arg: &Arg) -> Result<bool, Fault> {
    match () {
        () if arg.is("On") => Ok(true),
        () if arg.is("Off") => Ok(false),
        () => Err(Fault::new(format!("{directive} must be one of: Off | On")).at(arg)),
    }
}

pub(super) fn flag(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    field: fn(&mut Directory) -> &mut Setting<bool>,
) -> Set {
    let on = on_or_off(cx.target.directive, arg)?;
    field(cx.dir()).set(on);
    Ok(())
}

pub(super) fn map_head_to_get(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let map = match () {
        () if arg.is("On") => MapHead::On,
        () if arg.is("Off") => MapHead::Off,
        () if arg.is("Auto") => MapHead::Auto,
        () => return Err(Fault::new("WSGIMapHEADToGET must be one of: Off | On | Auto").at(arg)),
    };
    cx.dir().map_head.set(map);
    Ok(())
}

/// Source: `wsgi_add_script_alias`
pub(super) fn script_alias(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    add_alias(cx, arg, |_, from| Ok(Pattern::Prefix(from)))
}

pub(super) fn script_alias_match(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    add_alias(cx, arg, |cx, from| {
        let regex = cx.build().regex(&from, false).map_err(|fault| Fault {
            message: "Regular expression could not be compiled.".to_owned(),
            ..fault
        })?;
        Ok(Pattern::Regex(regex))
    })
}

fn add_alias(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    pattern: fn(&mut Here<'_, '_>, Vec<u8>) -> Result<Pattern, Fault>,
) -> Set {
    let name = cx.target.directive;
    let mut text: &[u8] = &arg.text;
    let from = words::word(&mut text);
    if from.is_empty() || text.is_empty() {
        let row = super::rows::ROWS.iter().find(|row| row.name == name);
        let doc = row.map_or("", |row| row.doc);
        return Err(format!("{name} requires at least two arguments, {doc}").into());
    }
    let target = words::word(&mut text);
    let from = pattern(cx, from)?;
    let options = Options::parse(&mut text, "WSGI script alias", Allowed::ALL)?;
    let alias = ScriptAlias {
        span: cx.span(),
        from,
        target,
        process_group: options.process_group,
        application_group: options.application_group,
        callable: options.callable,
        pass_authorization: options.pass_authorization,
    };
    if let Some(mut preloaded) = alias.preloaded() {
        preloaded.path = below_root(cx, &preloaded.path);
        cx.server().imports.0.push(Arc::new(preloaded));
    }
    cx.server().aliases.push(alias);
    Ok(())
}

pub(super) fn daemon_process(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let group = DaemonGroup::parse(arg, cx.span())?;
    if let Some(home) = group.text("python-home") {
        python::check_home("WSGIDaemonProcess", home)?;
    }
    for (name, reason) in group.idle_options() {
        cx.warn(format!("WSGIDaemonProcess: {name} has no effect: {reason}"));
    }
    cx.server().groups.0.push(Arc::new(group));
    Ok(())
}

pub(super) fn process_group(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().process_group.set(Arc::new(Selector::parse(&arg.text)));
    Ok(())
}

pub(super) fn application_group(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().application_group.set(Arc::new(Selector::parse(&arg.text)));
    Ok(())
}

pub(super) fn callable_object(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    cx.dir().callable.set(Arc::new(Selector::parse(&arg.text)));
    Ok(())
}

pub(super) fn restrict_process(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    for name in words::all(&arg.text) {
        let name = if name == b"%{GLOBAL}" { Vec::new() } else { name };
        cx.dir().restricted.push(name);
    }
    Ok(())
}

/// Source: `wsgi_add_import_script`
pub(super) fn import_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mut text: &[u8] = &arg.text;
    let path = words::word(&mut text);
    if path.is_empty() {
        return Err("Location of import script not supplied.".into());
    }
    let options = Options::parse(&mut text, "WSGI import script", Allowed::GROUPS)?;
    let name = |group: Option<Arc<Selector>>, what: &str| match group.as_deref() {
        None => Err(Fault::new(format!("Name of WSGI {what} group required."))),
        Some(name) => Ok(name.literal()),
    };
    let application_group = name(options.application_group, "application")?;
    let import = Import {
        span: cx.span(),
        process_group: name(options.process_group, "process")?,
        application_group,
        path: below_root(cx, &path),
    };
    cx.server().imports.0.push(Arc::new(import));
    Ok(())
}

/// Source: `wsgi_add_handler_script`
pub(super) fn handler_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let mut text: &[u8] = &arg.text;
    let name = words::word(&mut text);
    if name.is_empty() {
        return Err("Name for handler script not supplied.".into());
    }
    let path = words::word(&mut text);
    if path.is_empty() {
        return Err("Location of handler script not supplied.".into());
    }
    let options = Options::parse(&mut text, "WSGI handler script", Allowed::HANDLER)?;
    let script = HandlerScript {
        path: below_root(cx, &path),
        process_group: options.process_group,
        application_group: options.application_group,
        pass_authorization: options.pass_authorization,
    };
    cx.build().passed_on.insert(name.to_ascii_lowercase());
    cx.dir().handlers.insert(name, Arc::new(script));
    Ok(())
}

pub(super) fn dispatch_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let script = script(cx, arg, "dispatch script", "WSGI dispatch script")?;
    cx.dir().dispatch.set(script);
    Ok(())
}

pub(super) fn access_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let script = script(cx, arg, "access script", "WSGI access script")?;
    cx.dir().access.set(script);
    Ok(())
}

pub(super) fn auth_user_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let script = script(cx, arg, "auth user script", "WSGI auth user script")?;
    cx.dir().auth_user.set(script);
    Ok(())
}

pub(super) fn auth_group_script(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let script = script(cx, arg, "auth group script", "WSGI auth group script")?;
    cx.dir().auth_group.set(script);
    Ok(())
}

fn script(
    cx: &mut Here<'_, '_>,
    arg: &Arg,
    name: &str,
    definition: &str,
) -> Result<Arc<Script>, Fault> {
    let mut text: &[u8] = &arg.text;
    let path = words::word(&mut text);
    if path.is_empty() {
        return Err(format!("Location of {name} not supplied.").into());
    }
    let options = Options::parse(&mut text, definition, Allowed::APPLICATION)?;
    let path = below_root(cx, &path);
    Ok(Arc::new(Script { path, application_group: options.application_group }))
}

/// An absolute path.
fn below_root(cx: &mut Here<'_, '_>, path: &[u8]) -> Vec<u8> {
    cx.build().path(path).into_os_string().into_vec()
}

pub(super) fn trusted_proxies(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    for word in words::all(&arg.text) {
        let Ok(network) = Subnet::parse(&word) else {
            let mut text = "Unable to parse trusted proxy IP address/subnet of".to_owned();
            text += &format!(" \"{}\".", word.as_bstr());
            if word.contains(&b'/') {
                text += " The specified network mask is invalid.";
            }
            return Err(Fault::new(text).at(arg));
        };
        cx.dir().trusted_proxies.push(network);
    }
    Ok(())
}

pub(super) fn trusted_headers(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    for word in words::all(&arg.text) {
        match trusted::Header::named(&word) {
            Some(header) => cx.dir().trusted_headers.push(header),
            // As in mod_wsgi, it has no effect.
            None => cx.warn(format!(
                "WSGITrustedProxyHeaders: '{}' is no header of proxies; {}",
                word.as_bstr(),
                trusted::known()
            )),
        }
    }
    Ok(())
}

/// `WSGIAcceptMutex`, which only has to be a method that there is.
pub(super) fn accept_mutex(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    const METHODS: [&str; 6] = ["default", "flock", "fcntl", "sysvsem", "posixsem", "pthread"];
    if METHODS.iter().any(|method| arg.is(method)) {
        return Ok(());
    }
    let text = format!(
        "Accept mutex lock mechanism '{}' is invalid. Valid accept mutex mechanisms for this \
         platform are: {}.",
        arg.text,
        METHODS.join(", ")
    );
    Err(Fault::new(text).at(arg))
}

pub(super) fn refuse(cx: &mut Here<'_, '_>, _: &Arg) -> Set {
    let name = cx.target.directive;
    let row = super::rows::ROWS.iter().find(|row| row.name == name);
    match row.map(|row| row.state) {
        Some(server::directive::State::Refused(reason)) => {
            Err(Fault::new(format!("{name} is refused: {reason}")).help("remove the line"))
        }
        _ => Ok(()),
    }
}

pub(super) fn refuse_if_on(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    match on_or_off(cx.target.directive, arg)? {
        true => refuse(cx, arg),
        false => Ok(()),
    }
}

/// Which options a directive has.
struct Allowed(&'static [&'static str]);

impl Allowed {
    const ALL: Allowed =
        Allowed(&["process-group", "application-group", "callable-object", "pass-authorization"]);
    const HANDLER: Allowed = Allowed(&["process-group", "application-group", "pass-authorization"]);
    const GROUPS: Allowed = Allowed(&["process-group", "application-group"]);
    const APPLICATION: Allowed = Allowed(&["application-group"]);
}

#[derive(Default)]
struct Options {
    process_group: Option<Arc<Selector>>,
    application_group: Option<Arc<Selector>>,
    callable: Option<Arc<Selector>>,
    pass_authorization: Option<bool>,
}

impl Options {
    fn parse(text: &mut &[u8], what: &str, allowed: Allowed) -> Result<Options, Fault> {
        let invalid = || Fault::new(format!("Invalid option to {what} definition."));
        let mut options = Options::default();
        while !text.is_empty() {
            let (name, value) = words::option(text).ok_or_else(invalid)?;
            let name = allowed.0.iter().find(|known| known.as_bytes() == name);
            let name = name.ok_or_else(invalid)?;
            let named = |what: &str| match value.is_empty() {
                true => Err(Fault::new(format!("Invalid name for WSGI {what}."))),
                false => Ok(Some(Arc::new(Selector::parse(&value)))),
            };
            match *name {
                "process-group" => options.process_group = named("process group")?,
                "application-group" => options.application_group = named("application group")?,
                "callable-object" => options.callable = named("callable object")?,
                _ => {
                    let flag = match () {
                        () if value.eq_ignore_ascii_case(b"On") => true,
                        () if value.eq_ignore_ascii_case(b"Off") => false,
                        () => return Err("Invalid value for authorization flag.".into()),
                    };
                    options.pass_authorization = Some(flag);
                }
            }
        }
        Ok(options)
    }
}
