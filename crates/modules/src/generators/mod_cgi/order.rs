//! The order to start a script: as which user, in which folder, with which arguments.

use server::request::Request;

use crate::arch::mod_unixd::spawner::Spawner;
use crate::arch::mod_unixd::suexec;
use crate::util_script::program::order;
use crate::util_script::shell_escaped;

/// The shell of commands (`SHELL_PATH`).
const SHELL: &[u8] = b"/bin/sh";

/// The order to start the request's file, in its folder, with at most as many arguments from the
/// query, and the file that is executed.
pub(super) async fn of(
    request: &Request,
    spawner: &Spawner,
    arguments_max: usize,
) -> (Vec<u8>, Vec<u8>) {
    let file = request.resource.filename.as_slice();
    let folder = file.iter().rposition(|byte| *byte == b'/').and_then(|at| file.get(..=at));
    let folder = folder.unwrap_or(b"/");
    let identity = match &spawner.suexec {
        Some(wrapper) => suexec::identity(request).await.map(|identity| (wrapper, identity)),
        None => None,
    };
    let mut words = match identity {
        Some((wrapper, identity)) => identity.words(wrapper, file).to_vec(),
        None => vec![file.to_vec()],
    };
    let executed = words.first().cloned().unwrap_or_default();
    let arguments = arguments(request.query().unwrap_or_default()).into_iter();
    words.extend(arguments.take(arguments_max));
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    (order(request, folder, &executed, &words), executed)
}

/// The order to start a shell with `command` in the folder of the request's file, and the file that
/// is executed. With another user the wrapper executes the command itself, without a shell.
pub(super) async fn of_command(
    request: &Request,
    spawner: &Spawner,
    command: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let file = request.resource.filename.as_slice();
    let folder = file.iter().rposition(|byte| *byte == b'/').and_then(|at| file.get(..=at));
    let identity = match &spawner.suexec {
        Some(wrapper) => suexec::identity(request).await.map(|identity| (wrapper, identity)),
        None => None,
    };
    let words = match identity {
        Some((wrapper, identity)) => identity.words(wrapper, command).to_vec(),
        None => vec![SHELL.to_vec(), b"-c".to_vec(), command.to_vec()],
    };
    let executed = words.first().cloned().unwrap_or_default();
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    (order(request, folder.unwrap_or(b"/"), &executed, &words), executed)
}

/// The arguments in a query without `=` (RFC 3875 section 4.4): words between `+`, unescaped, and
/// escaped for a shell.
///
/// Source: `split_argv`, `create_argv`
fn arguments(query: &[u8]) -> Vec<Vec<u8>> {
    if query.is_empty() || query.contains(&b'=') {
        return Vec::new();
    }
    query.split(|byte| *byte == b'+').map(argument).collect()
}

fn argument(word: &[u8]) -> Vec<u8> {
    let mut text = word.to_vec();
    // Whatever it contains.
    let _ = wire::uri::unescape_url(&mut text, wire::uri::Slashes::Decode);
    shell_escaped(text.split(|byte| *byte == 0).next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_without_an_equals_sign_is_arguments() {
        let of = |query: &str| -> Vec<String> {
            let words = arguments(query.as_bytes()).into_iter();
            words.map(|word| String::from_utf8(word).unwrap()).collect()
        };
        assert_eq!(of("a+b%20c++d"), ["a", "b c", "", "d"]);
        assert_eq!(of("%27;%zz+%00b+%e2%82%ac"), ["\\'\\;%zz", "", "€"]);
        assert_eq!(of("+"), ["", ""]);
        assert!(of("").is_empty() && of("a=b+c").is_empty());
    }
}
