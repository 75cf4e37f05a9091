//! The network of a jail: a loopback device that leads nowhere, and for some jobs a listener that Gantry answers at.

use std::net::TcpListener;
use std::os::fd::AsFd as _;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};

use super::Order;
use super::proc::Proc;
use crate::jail::PROXY;
use crate::jail::plan::{self, At as _, Failure, Report, Step};
use crate::sys;

/// The least, the usual and the most bytes that wait in a connection: the most is what [`Usage`](super::usage::Usage)
/// takes a socket to hold.
const BUFFER: &str = "4096 65536 262144";

/// Makes the network, and hands the listener to Gantry if the job has one. Nothing in the jail keeps it.
pub(super) fn make(order: &Order, proc: &Proc) -> Result<(), Failure> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).at(Step::Network, "socket")?;
    match sys::jail::loopback_up(&any) {
        Ok(()) => {}
        // Somebody else has built the walls, and brought it up.
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {}
        Err(error) => return Err(error).at(Step::Network, "loopback"),
    }
    for path in ["sys/net/ipv4/tcp_rmem", "sys/net/ipv4/tcp_wmem"] {
        // Where it is forbidden, as in many containers, the system bounds what all connections hold together.
        proc.set(path, BUFFER).ok();
    }
    if !order.plan.network {
        return Ok(());
    }
    let listener = TcpListener::bind(PROXY).at(Step::Network, PROXY)?;
    plan::send(&order.control, &Report::Listening, &[listener.as_fd()]).at(Step::Network, "handing it over")
}
