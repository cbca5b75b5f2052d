//! The user of the server's children, for as long as a request is explained.

use nix::unistd::{Gid, Uid, User, getgroups, setegid, seteuid, setgroups};

/// Runs `work` as the user that the test files' configurations name, if this is root.
pub async fn as_child<T>(work: impl Future<Output = T>) -> T {
    let child = Uid::effective().is_root().then(|| User::from_name("www-data").unwrap()).flatten();
    let Some(child) = child else { return work.await };
    let groups = getgroups().unwrap();
    setgroups(&[child.gid]).unwrap();
    setegid(child.gid).unwrap();
    seteuid(child.uid).unwrap();
    let result = work.await;
    seteuid(Uid::from_raw(0)).unwrap();
    setegid(Gid::from_raw(0)).unwrap();
    setgroups(&groups).unwrap();
    result
}
