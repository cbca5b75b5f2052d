//! Finds the process that listens on a port, for the message about a port in use.

use std::fs;

/// Processes examined at most.
const PROCESSES_MAX: usize = 50_000;
/// State of a listening socket in /proc/net/tcp.
const LISTEN: &str = "0A";

/// A process that listens on `port`, as `nginx (pid 123)`. `None` if none is found or can be
/// examined.
pub(super) fn of_port(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX).find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let holds = fs::read_dir(entry.path().join("fd")).ok()?.flatten().any(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| inodes.iter().any(|inode| target.as_os_str() == inode.as_str()))
        });
        let name = fs::read_to_string(entry.path().join("comm")).ok()?;
        holds.then(|| format!("{} (pid {pid})", name.trim()))
    })
}

/// Inodes of the sockets that listen on `port`, from a table in the format of /proc/net/tcp.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let is_it = fields.get(1)?.ends_with(&suffix) && *fields.get(3)? == LISTEN;
            is_it.then(|| fields.get(9).map(|inode| (*inode).to_owned())).flatten()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let holder = of_port(socket.local_addr().unwrap().port()).unwrap();
        assert!(holder.ends_with(&format!("(pid {})", std::process::id())), "{holder}");
        assert_eq!(of_port(0), None);
    }
}
