//! The server's processes: its folders and files, and the lifetime of children.

use std::path::PathBuf;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Fault, Row, Set, State, Takes};

use super::{Here, global, mutex};
use crate::atoi::atol;
use crate::core::Core;

pub(super) const ROWS: &[Row<Core>] = &[
    Row::<Core>::new(
        "ServerRoot",
        Takes::One(server_root),
        "directory-path",
        "Sets the base directory of relative file names in the configuration.",
    )
    .default("/etc/apache2"),
    global(
        "DefaultRuntimeDir",
        Takes::One(default_runtime_dir),
        "directory-path",
        "logs/",
        "Sets the directory for files that exist only while the server runs.",
    )
    .standing(Places::NOT_HTACCESS, Override::NONE),
    global(
        "PidFile",
        Takes::One(|cx, arg| {
            let path = absolute(cx, arg)?;
            cx.server().globals_mut().pid_file.set(path);
            Ok(())
        }),
        "filename",
        "logs/httpd.pid",
        "Sets the file that contains the supervisor's process id.",
    ),
    global(
        "ScoreBoardFile",
        Takes::One(|cx, arg| {
            let path = absolute(cx, arg)?;
            cx.server().globals_mut().scoreboard_file.set(path);
            Ok(())
        }),
        "file-path",
        "logs/apache_runtime_status",
        "Sets a file for the scoreboard.",
    )
    .state(State::Accepted("the scoreboard is anonymous shared memory")),
    global(
        "CoreDumpDirectory",
        Takes::One(core_dump_directory),
        "directory",
        "",
        "Sets the working directory of children, where core dumps are written.",
    ),
    global(
        "MaxConnectionsPerChild",
        Takes::One(max_connections_per_child),
        "number",
        "0",
        "Replaces a child after this many connections; 0 never does.",
    ),
    global(
        "MaxRequestsPerChild",
        Takes::One(max_connections_per_child),
        "number",
        "0",
        "The former name of MaxConnectionsPerChild.",
    ),
    global(
        "MaxMemFree",
        Takes::One(max_mem_free),
        "KBytes",
        "2048",
        "Limits the unused memory that Apache's allocators keep.",
    )
    .state(State::Accepted("memory is returned to the allocator at once")),
    global(
        "ThreadStackSize",
        Takes::One(thread_stack_size),
        "size",
        "",
        "Sets the stack size of serving threads in bytes.",
    ),
    global(
        "EnableExceptionHook",
        Takes::Flag(|cx, on| {
            cx.server().globals_mut().exception_hook.set(on);
            Ok(())
        }),
        "On|Off",
        "Off",
        "Runs modules' hooks when a child crashes.",
    )
    .state(State::Accepted("no module has such a hook")),
    global(
        "ExtendedStatus",
        Takes::Flag(|cx, on| {
            cx.server().globals_mut().extended_status.set(on);
            Ok(())
        }),
        "On|Off",
        "Off",
        "Records each request for the status page.",
    ),
    global(
        "SeeRequestTail",
        Takes::Flag(|cx, on| {
            cx.server().globals_mut().see_request_tail.set(on);
            Ok(())
        }),
        "On|Off",
        "Off",
        "Shows the end of long request lines on the status page instead of the beginning.",
    ),
    Row::<Core>::new(
        "Mutex",
        Takes::Some { least: 1, most: usize::MAX, set: mutex::mutex },
        "mechanism [default|mutex-name] ... [OmitPID]",
        "Sets how Apache's processes lock shared resources.",
    )
    .standing(Places::SERVER, Override::NONE)
    .default("default")
    .state(State::Accepted("processes share memory with atomic access")),
    Row::<Core>::new(
        "Port",
        Takes::One(|_, _| Err("Port was replaced with Listen in Apache 2.0".into())),
        "port",
        "Removed: use Listen.",
    )
    .standing(Places::SERVER, Override::NONE),
];

fn absolute(cx: &mut Here<'_, '_>, arg: &Arg) -> Result<PathBuf, Fault> {
    let root = cx.build().server_root.clone();
    conf::values::relative_to(&root, &arg.text)
        .ok_or_else(|| Fault::new(format!("{} has an invalid path", cx.target.directive)).at(arg))
}

/// The reader has already applied it; this checks it.
fn server_root(_: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let path = server::path::as_path(&arg.text);
    if path.is_dir() {
        return Ok(());
    }
    Err(Fault::new("ServerRoot must be a valid directory").at(arg))
}

fn default_runtime_dir(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let path = absolute(cx, arg)?;
    if !path.is_dir() {
        let fault =
            "DefaultRuntimeDir must be a valid directory, absolute or relative to ServerRoot";
        return Err(Fault::new(fault).at(arg));
    }
    cx.server().globals_mut().runtime_dir.set(path);
    Ok(())
}

fn core_dump_directory(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let path = absolute(cx, arg)?;
    let fault = match path.metadata() {
        Ok(found) if found.is_dir() => None,
        Ok(_) => Some("is not a directory"),
        Err(_) => Some("does not exist"),
    };
    if let Some(fault) = fault {
        let text = format!("CoreDumpDirectory {} {fault}", path.display());
        return Err(Fault::new(text).at(arg));
    }
    cx.server().globals_mut().core_dump_directory.set(path);
    Ok(())
}

fn max_connections_per_child(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    if cx.target.directive == "MaxRequestsPerChild" {
        cx.warn("AH00545: MaxRequestsPerChild is deprecated, use MaxConnectionsPerChild instead.");
    }
    let number = u64::try_from(atol(&arg.text)).unwrap_or(0);
    cx.server().globals_mut().max_connections_per_child.set(number);
    Ok(())
}

fn max_mem_free(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Ok(kib) = u32::try_from(atol(&arg.text)) else {
        return Err(Fault::new(format!("Invalid MaxMemFree value: {}", arg.text)).at(arg));
    };
    cx.server().globals_mut().max_mem_free_kib.set(kib);
    Ok(())
}

fn thread_stack_size(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let Ok(bytes) = usize::try_from(atol(&arg.text)) else {
        return Err(Fault::new(format!("Invalid ThreadStackSize value: {}", arg.text)).at(arg));
    };
    cx.server().globals_mut().thread_stack_bytes.set(bytes);
    Ok(())
}
