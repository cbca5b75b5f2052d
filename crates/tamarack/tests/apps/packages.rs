//! Files of packages, copied into a folder: they are at the same paths below it, and symbolic links
//! between them stay there.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The variable with the folder in which packages are sought, instead of `/`.
pub const FOLDER: &str = "TAMARACK_PACKAGES";

/// The first of the files that does not exist.
pub fn missing<'a>(files: &[&'a str]) -> Option<&'a str> {
    let folder = env::var_os(FOLDER).map_or_else(|| PathBuf::from("/"), PathBuf::from);
    files.iter().copied().find(|file| !below(&folder, file).exists())
}

/// Copies the folders and files into `root`, with their times.
pub fn copy(root: &Path, paths: &[&str]) {
    for path in paths {
        let to = below(root, path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let mut command = Command::new("cp");
        command.args(["-dR", "--preserve=timestamps,mode", path]).arg(&to);
        assert!(command.status().unwrap().success(), "{path}");
    }
    for path in paths {
        correct_links(root, Path::new(path), paths);
    }
}

/// Replaces `paths` by those below `root` in the text of a copied file.
pub fn correct(root: &Path, file: &str, paths: &[&str]) {
    let file = below(root, file);
    let mut text = fs::read_to_string(&file).unwrap();
    for path in paths {
        text = text.replace(path, below(root, path).to_str().unwrap());
    }
    fs::write(file, text).unwrap();
}

/// The place of an absolute path in `root`.
pub fn below(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    root.join(path.as_ref().strip_prefix("/").unwrap())
}

/// Makes the links below `original`'s copy lead to copies, or to the original files outside.
fn correct_links(root: &Path, original: &Path, copied: &[&str]) {
    let copy = below(root, original);
    if copy.is_symlink() {
        let target = original.parent().unwrap().join(fs::read_link(&copy).unwrap());
        let target = without_dots(&target);
        let is_copied = copied.iter().any(|path| target.starts_with(path));
        fs::remove_file(&copy).unwrap();
        symlink(if is_copied { below(root, &target) } else { target }, &copy).unwrap();
    } else if copy.is_dir() {
        for entry in fs::read_dir(&copy).unwrap() {
            correct_links(root, &original.join(entry.unwrap().file_name()), copied);
        }
    }
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
