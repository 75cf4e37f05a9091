//! The file system that a job sees: the machine's programs to read, a few devices, and folders of its own.
//!
//! Everything that comes from the machine is copied as a mount of its own while its paths can still be found. Then this
//! process leaves the machine's file system, and puts the mounts together in an empty one.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use super::HelperJob;
use super::mounts;
use super::proc::Proc;
use super::userns::{Folder, Folders};
use crate::jail::error::{At as _, JailError, Step};
use crate::jail::protocol::JobSpec;
use crate::jail::{Access, BUILDS, FILES, HOME, STORE, WORKSPACE};
use crate::protected::FileId;
use crate::sys::jail::set_mount_attributes;

/// Programs and libraries: a link is copied, all else is shown.
pub(in crate::jail) const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache", "/etc/ld.so.conf"];

/// Settings of programs, wherever a link leads. Certificates, but no keys.
pub(in crate::jail) const SETTINGS: [&str; 17] = [
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/crypto-policies",
    "/etc/ca-certificates",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/protocols",
    "/etc/services",
    "/etc/os-release",
];

/// Harmless devices, and the device that is shown there. Memory that a job maps from the real `/dev/zero` is not counted;
/// the full device is as good a source of zeros, and cannot be mapped.
pub(in crate::jail) const DEVICES: [(&str, &str); 5] = [
    ("/dev/null", "/dev/null"),
    ("/dev/zero", "/dev/full"),
    ("/dev/full", "/dev/full"),
    ("/dev/random", "/dev/random"),
    ("/dev/urandom", "/dev/urandom"),
];

/// Where no toolchain may be: the machine's secrets and devices, and the jail's own folders.
const NO_TOOLCHAIN: [&str; 9] = ["/proc", "/sys", "/dev", "/run", "/etc", WORKSPACE, STORE, BUILDS, "/boot"];

/// Files that describe the jail.
pub(in crate::jail) const TEXTS: [(&str, &str); 5] = [
    (
        "/etc/passwd",
        "root:x:0:0:root:/:/usr/sbin/nologin\ngantry:x:1000:1000:gantry:/home/gantry:/bin/sh\n\
         nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    ),
    ("/etc/group", "root:x:0:\ngantry:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/hosts", "127.0.0.1 localhost gantry\n::1 localhost\n"),
    ("/etc/hostname", "gantry\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"),
];

/// Folders in memory: path, bytes, number of files, and mode.
pub(in crate::jail) const IN_MEMORY: [(&str, u64, u64, u32); 3] = [
    ("/tmp", 256 << 20, 65536, 0o1777),
    ("/dev/shm", 64 << 20, 4096, 0o1777),
    (HOME, 64 << 20, 16384, 0o755),
];

/// Limit: bytes and number of files of the root: links, mount points, and a few short files.
const ROOT_SIZE: u64 = 4 << 20;
const ROOT_FILES: u64 = 8192;

/// Something of the machine, ready to be shown in the jail.
#[derive(Debug)]
struct Source {
    at: PathBuf,
    what: What,
}

#[derive(Debug)]
enum What {
    Link(PathBuf),
    Mount(OwnedFd),
}

/// Everything of the machine that is to be shown in the jail.
#[derive(Debug)]
pub(super) struct Sources {
    machine: Vec<Source>,
    workspace: Option<OwnedFd>,
    /// Each with its place.
    stores: Vec<(PathBuf, OwnedFd)>,
}

/// Copies the mounts of what is to be shown. The user still is that of the machine, so only what that one may see is found.
pub(super) fn gather(spec: &JobSpec, folders: Folders) -> Result<Sources, JailError> {
    // Later mounts on the machine do not show up in the jail.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).at(Step::Rootfs, "/")?;
    let mut machine = Vec::new();
    for path in SYSTEM {
        machine.extend(system_part(Path::new(path)).at(Step::Rootfs, path)?);
    }
    for path in SETTINGS {
        machine.extend(shown(Path::new(path), READ).at(Step::Rootfs, path)?);
    }
    for (path, device) in DEVICES {
        let source = shown(Path::new(device), DEVICE).at(Step::Rootfs, path)?;
        machine.extend(source.map(|source| Source { at: path.into(), ..source }));
    }
    for path in &spec.job.toolchains {
        check_toolchain(path).at(Step::Rootfs, path.display())?;
        // It is shown already.
        if !path.starts_with("/usr") {
            machine.extend(shown(path, READ).at(Step::Rootfs, path.display())?);
        }
    }
    let workspace = folders.workspace.map(|folder| placed(folder, spec.job.access));
    let stores = folders.stores.into_iter().zip(&spec.job.stores);
    let stores = stores.map(|(folder, store)| Ok((store.at.clone(), placed(folder, store.access)?)));
    Ok(Sources {
        machine,
        workspace: workspace.transpose().at(Step::Rootfs, "the workspace")?,
        stores: stores.collect::<io::Result<_>>().at(Step::Rootfs, "a store")?,
    })
}

const READ: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY.union(WRITE);
const WRITE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const DEVICE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

fn system_part(path: &Path) -> io::Result<Option<Source>> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(Source { at: path.to_owned(), what: What::Link(target) })),
        Err(_) => shown(path, READ),
    }
}

/// A copy of the mount at this path. None: there is no such path, or the user may not see it.
fn shown(path: &Path, flags: MountAttrFlags) -> io::Result<Option<Source>> {
    let tree = match rustix::mount::open_tree(CWD, path, COPY) {
        Ok(tree) => tree,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    set_mount_attributes(&tree, flags, true)?;
    Ok(Some(Source { at: path.to_owned(), what: What::Mount(tree) }))
}

const COPY: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// Whether a toolchain may be shown at its path.
pub(in crate::jail) fn check_toolchain(path: &Path) -> io::Result<()> {
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_refused =
        NO_TOOLCHAIN.iter().any(|refused| path.starts_with(refused) || Path::new(refused).starts_with(path));
    if path.is_absolute() && is_plain && !is_refused { Ok(()) } else { Err(Errno::INVAL.into()) }
}

fn placed(folder: Folder, access: Access) -> io::Result<OwnedFd> {
    let flags = match access {
        Access::Read => READ,
        Access::Write => WRITE,
    };
    let tree = match folder {
        Folder::Mounted(tree) => tree,
        Folder::Opened(folder) => {
            let here = opened_here(&folder)?;
            rustix::mount::open_tree(&here, "", COPY | OpenTreeFlags::AT_EMPTY_PATH)?
        }
    };
    set_mount_attributes(&tree, flags, true)?;
    Ok(tree)
}

/// The same folder in this mount namespace, found by its path and known by its identity: a path that leads elsewhere by
/// now is refused.
fn opened_here(folder: &OwnedFd) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd as _;
    let path = fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let here = rustix::fs::open(&path, flags, Mode::empty())?;
    let is_same = FileId::of(&rustix::fs::fstat(folder)?) == FileId::of(&rustix::fs::fstat(&here)?);
    if is_same { Ok(here) } else { Err(Errno::STALE.into()) }
}

/// Puts the file system together, in the first process of the jail.
pub(super) fn build(job: &HelperJob, sources: Sources) -> Result<Proc, JailError> {
    // Both while the machine's is still there: the kernel mounts a new one only beside one that shows as much.
    let watched = Proc::open();
    let shown_proc = proc_for_job();
    let root = memory("root", ROOT_SIZE, ROOT_FILES, 0o755).at(Step::Rootfs, "the root folder")?;
    leave_machine(&root).at(Step::Rootfs, "pivot_root")?;
    for (path, size, files, mode) in IN_MEMORY {
        let mount = memory("memory", size, files, mode).at(Step::Rootfs, path)?;
        put_mount(Path::new(path), &mount).at(Step::Rootfs, path)?;
    }
    for source in sources.machine {
        put(&source.at, source.what).at(Step::Rootfs, source.at.display())?;
    }
    for (path, text) in TEXTS {
        write(Path::new(path), text.as_bytes(), 0o444).at(Step::Rootfs, path)?;
    }
    for (path, target) in LINKS {
        symlink(target, path).at(Step::Rootfs, path)?;
    }
    rustix::system::sethostname(b"gantry").at(Step::Rootfs, "hostname")?;
    match shown_proc {
        Ok(mount) => put_mount(Path::new("/proc"), &mount).at(Step::Rootfs, "/proc")?,
        // Containers often forbid it. Most programs get along without.
        Err(Errno::PERM) => fs::create_dir("/proc").at(Step::Rootfs, "/proc")?,
        Err(error) => return Err(error).at(Step::Rootfs, "/proc"),
    }
    put_files(job)?;
    fs::create_dir(WORKSPACE).at(Step::Rootfs, WORKSPACE)?;
    if let Some(workspace) = &sources.workspace {
        attach(workspace, WORKSPACE).at(Step::Rootfs, WORKSPACE)?;
        mounts::make(&job.spec.mounts)?;
    }
    for (at, store) in &sources.stores {
        put_mount(at, store).at(Step::Rootfs, at.display())?;
    }
    set_mount_attributes(&root, READ, false).at(Step::Rootfs, "/")?;
    watched.at(Step::Rootfs, "/proc")
}

/// Links that programs expect among the devices.
pub(in crate::jail) const LINKS: [(&str, &str); 4] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// The processes of the jail, for themselves: each sees those that it could also trace.
fn proc_for_job() -> rustix::io::Result<OwnedFd> {
    new_mount("proc", &[("hidepid", "invisible")], READ | MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

fn memory(name: &str, size: u64, files: u64, mode: u32) -> rustix::io::Result<OwnedFd> {
    let (size, files, mode) = (size.to_string(), files.to_string(), format!("{mode:o}"));
    let options = [("source", name), ("size", &size), ("nr_inodes", &files), ("mode", &mode)];
    new_mount("tmpfs", &options, WRITE)
}

/// A mount of a new file system, which is nowhere yet.
pub(super) fn new_mount(
    kind: &str,
    options: &[(&str, &str)],
    attributes: MountAttrFlags,
) -> rustix::io::Result<OwnedFd> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        rustix::mount::fsconfig_set_string(context.as_fd(), *key, *value)?;
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Makes an empty file system the root of this process, and leaves the machine's.
fn leave_machine(root: &OwnedFd) -> io::Result<()> {
    attach(root, "/")?;
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

fn put(at: &Path, what: What) -> io::Result<()> {
    match what {
        What::Link(target) => {
            make_parents(at)?;
            symlink(target, at)
        }
        What::Mount(mount) => put_mount(at, &mount),
    }
}

/// Mounts at a path, where it makes a mount point.
fn put_mount(at: &Path, mount: &OwnedFd) -> io::Result<()> {
    let kind = FileType::from_raw_mode(rustix::fs::fstat(mount)?.st_mode);
    if kind == FileType::Directory {
        fs::create_dir_all(at)?;
    } else if !at.exists() {
        make_parents(at)?;
        File::create_new(at)?;
    }
    attach(mount, at)
}

fn attach(mount: &OwnedFd, at: impl AsRef<Path>) -> io::Result<()> {
    Ok(rustix::mount::move_mount(mount, "", CWD, at.as_ref(), MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

fn make_parents(of: &Path) -> io::Result<()> {
    of.parent().map_or(Ok(()), fs::create_dir_all)
}

fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    make_parents(path)?;
    fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(content)
}

/// Writes the files of the job into a file system of their own that is as large as they are.
fn put_files(job: &HelperJob) -> Result<(), JailError> {
    let files = &job.spec.job.files;
    let size = files.iter().map(|(_, content)| content.len() as u64 + 4096).sum::<u64>() + 4096;
    let mount = memory("files", size, files.len() as u64 + 8, 0o755).at(Step::Rootfs, FILES)?;
    put_mount(Path::new(FILES), &mount).at(Step::Rootfs, FILES)?;
    write_files(job)?;
    set_mount_attributes(&mount, READ, false).at(Step::Rootfs, FILES)
}

pub(super) fn write_files(job: &HelperJob) -> Result<(), JailError> {
    for (name, content) in &job.spec.job.files {
        let path = Path::new(FILES).join(name);
        write(&path, content.as_bytes(), 0o555).at(Step::Rootfs, name)?;
        // The mask of this process may have taken something away.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o555)).at(Step::Rootfs, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_is_an_absolute_path_away_from_the_machines_folders() {
        for path in ["/opt/rust", "/home/me/.cargo", "/root/.rustup/toolchains", "/tmp/x", "/nix/store"] {
            assert!(check_toolchain(Path::new(path)).is_ok(), "{path}");
        }
        for path in
            ["/", "opt", "/opt/../etc", "/proc/1", "/sys", "/dev/sda", "/run/docker.sock", "/workspace/x"]
        {
            assert!(check_toolchain(Path::new(path)).is_err(), "{path}");
        }
    }
}
