//! What crosses the control socket of a jail: the plan on the way in, reports on the way out.
//!
//! Either way it is frames: the length of a JSON text (four bytes, little endian), with any descriptors attached to
//! its first byte, then the text. After the plan's frame come the contents of [`Plan::files`], one after the other.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::ground::Cover;
use super::{Access, End, Limits};

/// The longest frame. Arguments and variables make up a plan, and no system takes more than a few MiB of those.
pub(crate) const FRAME_LIMIT: usize = 64 << 20;

/// The most that [`Plan::files`] may hold together.
pub(crate) const FILES_LIMIT: u64 = 64 << 20;

/// The most descriptors that one frame carries: standard input, the workspace and the store.
const DESCRIPTORS: usize = 3;

/// Everything that the helper needs to know. The first descriptor is the job's standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) walls: Walls,
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Complete: nothing is added in the jail.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Beneath the workspace.
    pub(crate) folder: PathBuf,
    pub(crate) access: Access,
    pub(crate) network: bool,
    /// Plain names, and how long the contents are that follow.
    pub(crate) files: Vec<(String, u64)>,
    pub(crate) limits: Limits,
    /// Whether something outside the jail, which sees all kinds of it, bounds the memory.
    pub(crate) memory_is_bounded: bool,
}

/// Who builds the walls.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Walls {
    /// The helper.
    Native(View),
    /// They stand: the helper is the first process of a process namespace and sees the jail as its root, with these
    /// covers over the workspace.
    Given { covers: Vec<Cover> },
}

/// What is to be seen in a jail besides what is in every one.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct View {
    /// The user and group that the workspace belongs to; its descriptor follows standard input. None: it is empty.
    pub(crate) workspace: Option<Owner>,
    /// The same for the store, whose descriptor is the last.
    pub(crate) store: Option<Owner>,
    pub(crate) toolchains: Vec<PathBuf>,
    pub(crate) covers: Vec<Cover>,
}

/// A user and a group, by their numbers outside the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// From the helper to Gantry.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The job's only partner in the network; the listener is attached.
    Listening,
    /// The program is about to be executed: whoever hears nothing more has to take it for run.
    Executing,
    /// The program is executed. What is missing in this jail, for people.
    Started { notes: Vec<String> },
    /// It is not, and will not be.
    Failed(Failure),
    /// It was, and has ended.
    Ended { end: End, duration: Duration },
    /// It was, but cannot be watched any more, so everything is ended.
    Broken { reason: String },
}

/// Why a jail was not built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) step: Step,
    /// What it was about, such as a path; may be empty.
    pub(crate) detail: String,
    /// The number of the system's error.
    pub(crate) errno: i32,
}

/// The steps of building a jail, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Reading the plan.
    Plan,
    /// Making the namespaces.
    Namespaces,
    /// Saying which user of the machine the user of the jail is.
    UserMap,
    /// Mounting a folder such that root's files look like the jail's user's.
    IdMap,
    /// Making the view of the file system.
    View,
    /// Laying covers over the workspace.
    Covers,
    /// Making the network.
    Network,
    /// Setting limits.
    Limits,
    /// Giving up rights.
    Confine,
    /// Entering the working folder.
    Folder,
    /// Finding the program.
    Find,
    /// Executing it.
    Execute,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plan => "reading the plan",
            Self::Namespaces => "making namespaces",
            Self::UserMap => "mapping the user",
            Self::IdMap => "mounting a folder of root's for another user",
            Self::View => "making the view of the file system",
            Self::Covers => "covering protected paths",
            Self::Network => "making the network",
            Self::Limits => "setting limits",
            Self::Confine => "giving up rights",
            Self::Folder => "entering the working folder",
            Self::Find => "finding the program",
            Self::Execute => "executing the program",
        })
    }
}

impl Failure {
    /// The system's words for it.
    pub(crate) fn error(&self) -> io::Error {
        io::Error::from_raw_os_error(self.errno)
    }
}

/// Says at which step something failed.
pub(crate) trait At<T> {
    fn at(self, step: Step, detail: impl fmt::Display) -> Result<T, Failure>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, step: Step, detail: impl fmt::Display) -> Result<T, Failure> {
        self.map_err(|error| Failure {
            step,
            detail: detail.to_string(),
            errno: error.into().raw_os_error().unwrap_or(libc::EINVAL),
        })
    }
}

/// Sends a frame, all at once unless it is long: several processes report on one socket, and each can be killed at any
/// moment.
pub(crate) fn send(
    mut control: &UnixStream,
    frame: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(frame)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors in a frame"));
    }
    let parts = [IoSlice::new(&length), IoSlice::new(&text)];
    let send = || rustix::net::sendmsg(control, &parts, &mut ancillary, SendFlags::NOSIGNAL);
    let sent = rustix::io::retry_on_intr(send)?;
    // The descriptors went with the first byte; what is left goes without.
    control.write_all(length.get(sent..).unwrap_or_default())?;
    control.write_all(text.get(sent.saturating_sub(length.len())..).unwrap_or_default())
}

/// Receives what is there, at most as much as the buffer takes, with its descriptors.
pub(crate) fn receive_some(
    control: impl std::os::fd::AsFd,
    buffer: &mut [u8],
    descriptors: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let received = rustix::net::recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(received.bytes)
}

/// Receives a frame with its descriptors.
pub(crate) fn receive<T: DeserializeOwned>(mut control: &UnixStream) -> io::Result<(T, Vec<OwnedFd>)> {
    let mut descriptors = Vec::new();
    let mut length = [0; 4];
    let first = receive_some(control, &mut length, &mut descriptors)?;
    control.read_exact(length.get_mut(first..).unwrap_or_default())?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_LIMIT {
        return Err(io::Error::other("a frame is too long"));
    }
    let mut text = vec![0; length];
    control.read_exact(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::os::fd::AsFd as _;

    #[test]
    fn a_report_is_sent_at_once_so_that_no_death_can_tear_it() {
        // This kind of socket keeps apart what was sent apart.
        let packets = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(packets.0, packets.1, packets.2, None).unwrap();
        let report = Report::Broken { reason: "something".to_owned() };
        send(&ours.into(), &report, &[theirs.as_fd()]).unwrap();
        let (mut packet, mut descriptors) = ([0; 256], Vec::new());
        let length = receive_some(&theirs, &mut packet, &mut descriptors).unwrap();
        assert_eq!(descriptors.len(), 1);
        let (announced, text) = packet[..length].split_first_chunk::<4>().unwrap();
        assert_eq!(u32::from_le_bytes(*announced) as usize, text.len());
        assert!(
            matches!(serde_json::from_slice(text), Ok(Report::Broken { reason }) if reason == "something")
        );
    }

    #[test]
    fn a_long_frame_arrives_whole() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let long = "x".repeat(4 << 20);
        std::thread::scope(|scope| {
            scope.spawn(|| send(&ours, &long, &[theirs.as_fd()]).unwrap());
            let (text, descriptors) = receive::<String>(&theirs).unwrap();
            assert!(text == long);
            assert_eq!(descriptors.len(), 1);
        });
    }
}
