//! Where a workspace may be, and which file systems are mounted in it.

use super::lease::{Opened, unprotected, unusable, with_remedy};
use crate::jail::JailError;
use crate::sys;
use rustix::fs::{FileType, lstat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// Folders that no workspace may hold: a job that could write there would change the machine, or what its user runs.
const SYSTEM_FOLDERS: [&str; 6] = ["/proc", "/sys", "/dev", "/run", "/etc", "/usr"];

/// The list of mounts, and its column with the mount point.
const MOUNTS: &str = "/proc/self/mountinfo";
const MOUNT_POINT: usize = 4;

/// Refuses a workspace that is more than a folder to work in. `path` has no links.
pub(super) fn check_location(path: &Path) -> Result<(), JailError> {
    let homes =
        sys::jail::home().into_iter().chain(rustix::process::getuid().is_root().then(|| "/root".into()));
    let homes = homes.filter_map(|home| home.canonicalize().ok());
    let taken = SYSTEM_FOLDERS.iter().map(PathBuf::from).chain(homes).find(|taken| taken.starts_with(path));
    let Some(taken) = taken else { return Ok(()) };
    let taken = taken.display();
    let reason = format!("jobs must not be able to change {taken}; set `workspace` to a folder of its own");
    Err(unusable(path, &reason))
}

/// The mount points below the workspace, relative to it, and whether each is a folder.
pub(super) fn mounts(workspace: &Opened) -> Result<Vec<(PathBuf, bool)>, JailError> {
    let mut found = Vec::new();
    let text = fs::read(MOUNTS).map_err(|error| unprotected(Path::new(MOUNTS), &error))?;
    for path in text.split(|byte| *byte == b'\n').filter_map(mount_point) {
        let Some(relative) = workspace.inside(&path) else { continue };
        match lstat(&path) {
            Ok(stat) => {
                found.push((relative, FileType::from_raw_mode(stat.st_mode) == FileType::Directory));
            }
            // It is gone by now, or below another mount.
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            Err(error) => {
                let folder = path.parent().unwrap_or(&workspace.path);
                return Err(unprotected(&path, &with_remedy(error, folder)));
            }
        }
    }
    Ok(found)
}

/// The mount point in a line of the list.
fn mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(MOUNT_POINT)?;
    // Spaces and the like are written as a backslash and three digits.
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut path = parts.next()?.to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(3)?;
        path.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()?);
        path.extend(rest);
    }
    Some(OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_a_folder_of_its_own() {
        for path in ["/", "/proc", "/sys", "/dev", "/run", "/etc", "/usr"] {
            let refused = check_location(Path::new(path)).expect_err(path).to_string();
            assert!(refused.contains("set `workspace` to a folder of its own"), "{refused}");
        }
        check_location(Path::new("/usr/src/work")).expect("it holds nothing else");
        if let Some(home) = sys::jail::home().and_then(|home| home.canonicalize().ok()) {
            check_location(&home).expect_err("a home");
            check_location(home.parent().unwrap_or(&home)).expect_err("homes");
            check_location(&home.join("work")).expect("it holds nothing else");
        }
    }

    #[test]
    fn the_place_of_a_mount_is_read_with_its_spaces() {
        let line = br"36 35 98:0 /mnt1 /a\040b/c\134d rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(mount_point(line), Some(PathBuf::from(r"/a b/c\d")));
        assert_eq!(mount_point(b""), None);
    }
}
