//! The network of a jail: a loopback device that leads nowhere, and for some jobs a listener that Gantry answers at.

use super::HelperJob;
use super::proc::Proc;
use crate::jail::JailError;
use crate::jail::PROXY;
use crate::jail::error::{At as _, Step};
use crate::jail::protocol::{self, Report};
use crate::sys;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use std::net::TcpListener;
use std::os::fd::AsFd as _;

/// The least, the usual and the most bytes that wait in a connection: the most is what a socket counts as memory.
const BUFFER: &str = "4096 65536 262144";

/// Makes the network, and hands the listener to Gantry if the job has one. No process in the jail keeps it.
pub(super) fn make(job: &HelperJob, proc: &Proc) -> Result<(), JailError> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).at(Step::Network, "socket")?;
    match sys::jail::loopback_up(&any) {
        Ok(()) => {}
        // bubblewrap has brought it up.
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {}
        Err(error) => return Err(error).at(Step::Network, "loopback"),
    }
    for path in ["sys/net/ipv4/tcp_rmem", "sys/net/ipv4/tcp_wmem"] {
        // Where it is forbidden, as in many containers, the system bounds what all connections hold together.
        proc.set(path, BUFFER).ok();
    }
    if !job.spec.job.network {
        return Ok(());
    }
    let listener = TcpListener::bind(PROXY).at(Step::Network, PROXY)?;
    protocol::send(&job.control, &Report::Listening, &[listener.as_fd()]).at(Step::Network, "handing it over")
}
