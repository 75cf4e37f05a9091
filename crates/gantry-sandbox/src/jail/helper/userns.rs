//! The namespaces of a jail, and the user that the program is in them and outside.
//!
//! Inside, it always is the user 1000. Outside, it is the user that runs Gantry, or, if that is root, the owner of the
//! workspace. Never root: the kernel does not count root's processes against their limit, and a set-user-id file of
//! root's would be worth having. So root's folders are mounted such that they look like those of an unused user, and
//! files made in them become root's.

use super::HelperJob;
use crate::jail::error::{At as _, JailError, Step};
use crate::jail::protocol::{self, Owner};
use crate::sys;
use rustix::fs::{Gid, Uid};
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::{WaitOptions, getegid, geteuid, waitpid};
use rustix::thread::{
    LinkNameSpaceType, UnshareFlags, move_into_link_name_space, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

/// The user and the group in the jail.
const INSIDE: Owner = Owner { uid: 1000, gid: 1000 };

/// The user of a jailed program where Gantry runs as root and the workspace is root's. The number is above those that
/// distributions, directories and containers hand out, and below those that some systems take for negative.
const UNUSED_UID: u32 = 0x7800_6a61;

/// A folder of the job: opened by Gantry, or already a mount of its own with other owners.
#[derive(Debug)]
pub(super) enum Folder {
    Opened(OwnedFd),
    Mounted(OwnedFd),
}

/// The workspace and the stores, as far as there are any.
#[derive(Debug, Default)]
pub(super) struct Folders {
    pub(super) workspace: Option<Folder>,
    pub(super) stores: Vec<Folder>,
}

/// Enters the namespaces of a jail. The file system still is that of the machine, and so is the user.
pub(super) fn enter(job: &HelperJob) -> Result<Folders, JailError> {
    let is_root = geteuid().is_root();
    let outside = outside(job.spec.workspace, is_root).at(Step::UserMap, "the users of this machine")?;
    if is_root {
        set_thread_groups(&[]).at(Step::UserMap, "groups")?;
    }
    let place = |(folder, owner): (&OwnedFd, Owner)| {
        if is_root && owner != outside {
            return mounted_for(folder, owner, outside).map(Folder::Mounted);
        }
        Ok(Folder::Opened(folder.try_clone().at(Step::Job, "descriptors")?))
    };
    let placed = Folders {
        workspace: job.workspace.as_ref().zip(job.spec.workspace).map(place).transpose()?,
        stores: job
            .stores
            .iter()
            .zip(job.spec.stores.iter().copied())
            .map(place)
            .collect::<Result<_, _>>()?,
    };
    if is_root {
        let namespace = user_namespace(INSIDE, outside)?;
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::User))
            .at(Step::UserMap, "setns")?;
    } else {
        sys::jail::unshare(UnshareFlags::NEWUSER).at(Step::Namespaces, "user")?;
        fs::write("/proc/self/setgroups", "deny").at(Step::UserMap, "setgroups")?;
        write_maps("/proc/self", INSIDE, outside)?;
    }
    let others = UnshareFlags::NEWNS
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    sys::jail::unshare(others).at(Step::Namespaces, "")?;
    Ok(placed)
}

/// Becomes the user of the jail, outside as well as inside.
pub(super) fn become_user() -> Result<(), JailError> {
    let (uid, gid) = (Uid::from_raw(INSIDE.uid), Gid::from_raw(INSIDE.gid));
    set_thread_res_gid(gid, gid, gid).at(Step::UserMap, "group")?;
    set_thread_res_uid(uid, uid, uid).at(Step::UserMap, "user")
}

/// The user and group of the program on this machine.
fn outside(workspace: Option<Owner>, is_root: bool) -> io::Result<Owner> {
    if !is_root {
        return Ok(Owner { uid: geteuid().as_raw(), gid: getegid().as_raw() });
    }
    let not_root = |id: u32, map: &str| match id {
        0 => unused_id(&fs::read_to_string(map)?).ok_or(io::ErrorKind::PermissionDenied.into()),
        id => io::Result::Ok(id),
    };
    let owner = workspace.unwrap_or(Owner { uid: 0, gid: 0 });
    Ok(Owner {
        uid: not_root(owner.uid, "/proc/self/uid_map")?,
        gid: not_root(owner.gid, "/proc/self/gid_map")?,
    })
}

/// A number that no user has: [`UNUSED_UID`], or where Gantry is in a user namespace without that number, the last one of
/// it.
fn unused_id(map: &str) -> Option<u32> {
    let ranges = || {
        map.lines().filter_map(|line| {
            let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u32>().ok());
            let (first, _, count) = (numbers.next()??, numbers.next(), numbers.next()??);
            Some((first, first.checked_add(count.checked_sub(1)?)?))
        })
    };
    if ranges().any(|(first, last)| (first..=last).contains(&UNUSED_UID)) {
        return Some(UNUSED_UID);
    }
    ranges().map(|(_, last)| last).max().filter(|last| *last != 0)
}

/// A copy of the mount that the folder is on, where what belongs to `owner` looks as if it belonged to `seen`.
fn mounted_for(folder: &OwnedFd, owner: Owner, seen: Owner) -> Result<OwnedFd, JailError> {
    let namespace = user_namespace(owner, seen)?;
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let tree = open_tree(folder, "", flags).at(Step::IdMap, "")?;
    sys::jail::map_owners(&tree, namespace).at(Step::IdMap, "")?;
    Ok(tree)
}

/// A user namespace in which `inside` is `outside` on the machine. Only root can make it without entering it.
fn user_namespace(inside: Owner, outside: Owner) -> Result<OwnedFd, JailError> {
    let (ours, theirs) = protocol::pair().at(Step::Namespaces, "socket")?;
    let Some(child) = sys::fork().at(Step::Namespaces, "fork")? else {
        drop(ours);
        hold_namespace(&theirs);
        sys::jail::exit(0)
    };
    drop(theirs);
    let folder = format!("/proc/{}", child.as_raw_nonzero());
    let open = || {
        match protocol::receive(&ours).at(Step::Namespaces, "user")? {
            Some((0, _)) => {}
            failed => {
                let errno = failed.map_or(libc::EPIPE, |(errno, _)| errno);
                return Err(io::Error::from_raw_os_error(errno)).at(Step::Namespaces, "user");
            }
        }
        write_maps(&folder, inside, outside)?;
        fs::File::open(format!("{folder}/ns/user")).map(OwnedFd::from).at(Step::UserMap, "namespace")
    };
    let namespace = open();
    // It ends with the socket. That it cannot be waited for does not matter.
    drop(ours);
    waitpid(Some(child), WaitOptions::empty()).ok();
    namespace
}

/// Makes a user namespace, says so, and keeps it until the other end of the socket is closed.
fn hold_namespace(parent: &OwnedFd) {
    let made = sys::jail::unshare(UnshareFlags::NEWUSER);
    let errno = made.err().map_or(0, |error| error.raw_os_error().unwrap_or(libc::EPERM));
    if protocol::send(parent, &errno, &[]).is_ok() {
        protocol::receive::<()>(parent).ok();
    }
}

fn write_maps(process: &str, inside: Owner, outside: Owner) -> Result<(), JailError> {
    let maps = [("uid_map", inside.uid, outside.uid), ("gid_map", inside.gid, outside.gid)];
    for (map, inside, outside) in maps {
        fs::write(format!("{process}/{map}"), format!("{inside} {outside} 1\n")).at(Step::UserMap, map)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_unused_only_if_the_namespace_has_it() {
        assert_eq!(unused_id("         0          0 4294967295\n"), Some(UNUSED_UID));
        assert_eq!(unused_id("0 1000 1\n1 100000 65536\n"), Some(65536));
        assert_eq!(unused_id("0 1000 1\n"), None);
        assert_eq!(unused_id("nonsense\n"), None);
    }
}
