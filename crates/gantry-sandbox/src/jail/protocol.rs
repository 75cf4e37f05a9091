//! The messages between Gantry and the helper that builds a jail, as JSON over a socket that keeps messages apart
//! (`SOCK_SEQPACKET`): several processes report on one socket, and each can be killed at any moment.
//!
//! The first message starts the job: whether a control group, which counts all kinds of memory, bounds it. Its descriptors
//! are the job, which may be larger than a message and is in a file in memory, the job's standard input, and the workspace
//! and the stores if it has them. The helper answers with [`Report`]s.

use super::probe::Backend;
use super::workspace::ProtectedMount;
use super::{ExitReason, JailError, Job};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IoSlice, IoSliceMut, Seek as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

/// Limit: bytes of one message; a report of a failure holds a path.
const MESSAGE_LIMIT: usize = 64 << 10;

/// The most descriptors of one message: the job, its standard input, the workspace and two stores.
const DESCRIPTORS: usize = 5;

/// What the helper needs to know of a job.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct JobSpec {
    pub(crate) backend: Backend,
    pub(crate) job: Job,
    /// The user and group that the workspace belongs to. None: it is empty.
    pub(crate) workspace: Option<Owner>,
    /// Those that the stores belong to, in their order.
    pub(crate) stores: Vec<Owner>,
    /// The mounts over protected paths of the workspace, in their order.
    pub(crate) mounts: Vec<ProtectedMount>,
    /// Paths of the workspace that must not come to exist.
    pub(crate) absent: Vec<PathBuf>,
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
    /// The listener at the proxy's address in the jail is attached.
    Listening,
    /// The program is about to be executed. If no other report follows, it counts as run. The descriptor is the first
    /// process of the jail, which ends after all others.
    Executing,
    /// The program is executed. What this jail lacks, for people.
    Started {
        notes: Vec<String>,
    },
    Failed(JailError),
    Ended {
        end: ExitReason,
        duration: Duration,
    },
    /// The program was executed, but can no longer be supervised: the whole job is ended.
    Broken {
        reason: String,
    },
}

pub(crate) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

pub(crate) fn send(
    socket: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors in a message"));
    }
    let parts = [IoSlice::new(&text)];
    retry_on_intr(|| sendmsg(socket.as_fd(), &parts, &mut ancillary, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message with its descriptors. None: the other end is closed.
pub(crate) fn receive<T: DeserializeOwned>(socket: impl AsFd) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
    let mut buffer = vec![0; MESSAGE_LIMIT];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = retry_on_intr(|| recvmsg(socket.as_fd(), &mut parts, &mut ancillary, flags))?;
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(Errno::MSGSIZE.into());
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    buffer.truncate(received.bytes);
    Ok(Some((serde_json::from_slice(&buffer)?, descriptors)))
}

/// Writes a job to a file in memory.
pub(crate) fn write_job(spec: &JobSpec) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create("job", MemfdFlags::CLOEXEC)?);
    let mut writer = BufWriter::new(file);
    serde_json::to_writer(&mut writer, spec)?;
    writer.rewind()?;
    Ok(writer.into_inner()?)
}

pub(crate) fn read_job(file: File) -> io::Result<JobSpec> {
    Ok(serde_json::from_reader(BufReader::new(file))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_one_message_so_that_no_death_can_tear_it() {
        let (ours, theirs) = pair().unwrap();
        for reason in ["one", "two"] {
            send(&ours, &Report::Broken { reason: reason.to_owned() }, &[theirs.as_fd()]).unwrap();
        }
        drop(ours);
        for expected in ["one", "two"] {
            let (report, descriptors) = receive::<Report>(&theirs).unwrap().unwrap();
            assert_eq!(descriptors.len(), 1);
            assert!(matches!(report, Report::Broken { reason } if reason == expected));
        }
        assert!(receive::<Report>(&theirs).unwrap().is_none());
    }

    #[test]
    fn a_message_that_is_too_long_is_refused() {
        let (ours, theirs) = pair().unwrap();
        send(&ours, &"x".repeat(MESSAGE_LIMIT), &[]).unwrap();
        receive::<String>(&theirs).unwrap_err();
    }

    #[test]
    fn a_long_job_arrives_whole() {
        let long = "x\n\u{1}".repeat(1 << 20);
        let job = Job { files: vec![("one".to_owned(), long.clone())], ..Job::probe() };
        let spec = JobSpec {
            backend: Backend::Native,
            job,
            workspace: None,
            stores: Vec::new(),
            mounts: Vec::new(),
            absent: Vec::new(),
        };
        let read = read_job(write_job(&spec).unwrap()).unwrap();
        assert_eq!(read.job.files, [("one".to_owned(), long)]);
    }
}
