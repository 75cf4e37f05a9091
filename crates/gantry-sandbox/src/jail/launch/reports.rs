//! The reports of a helper, read from the control socket as they come.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;

use super::{Refused, Started, broken};
use crate::jail::plan::{self, Report};
use crate::jail::{End, JailError};

/// The longest report; one that fails has a path in it.
const REPORT_LIMIT: usize = 64 << 10;

/// Gantry's end of the control socket.
#[derive(Debug)]
pub(super) struct Reports {
    control: UnixStream,
    received: Vec<u8>,
    descriptors: Vec<OwnedFd>,
    /// Whether the program has run, for all that is known.
    pub(super) may_run: bool,
}

impl Reports {
    pub(super) fn new(control: StdUnixStream) -> io::Result<Self> {
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        Ok(Self { control, received: Vec::new(), descriptors: Vec::new(), may_run: false })
    }

    /// Waits until the program is executed.
    pub(super) async fn started(&mut self) -> Started {
        let mut listener = None;
        loop {
            let report = match self.next().await {
                // It ended before it had read the plan.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
                report => report.map_err(|error| self.failed("the control socket", &error))?,
            };
            match report {
                Some(Report::Executing) => self.may_run = true,
                Some(Report::Listening) => {
                    let socket = self.descriptors.pop().map(TcpListener::from);
                    if let Some(socket) = &socket {
                        socket.set_nonblocking(true).map_err(|error| self.failed("the listener", &error))?;
                    }
                    listener = socket;
                }
                Some(Report::Started { notes }) => return Ok((listener, notes)),
                Some(Report::Failed(failure)) => return Err(Refused::Failed(failure)),
                Some(Report::Broken { reason }) => return Err(Refused::Error(JailError::Broken(reason))),
                Some(Report::Ended { .. }) | None if self.may_run => {
                    let reason = "it ended while the program was started".to_owned();
                    return Err(Refused::Error(JailError::Broken(reason)));
                }
                Some(Report::Ended { .. }) | None => return Err(Refused::Silent(String::new())),
            }
        }
    }

    /// What an error on this side means for the job.
    fn failed(&self, what: &str, error: &io::Error) -> Refused {
        match self.may_run {
            true => Refused::Error(JailError::Broken(format!("{what}: {error}"))),
            false => broken(what, error),
        }
    }

    /// Waits for the report of the program's end. None: the helper ended without.
    pub(super) async fn ended(&mut self) -> io::Result<Option<(End, Duration)>> {
        loop {
            match self.next().await? {
                Some(Report::Ended { end, duration }) => return Ok(Some((end, duration))),
                Some(Report::Listening | Report::Executing | Report::Started { .. } | Report::Failed(_)) => {}
                Some(Report::Broken { reason }) => return Err(io::Error::other(reason)),
                None => return Ok(None),
            }
        }
    }

    /// The next report. None: there will be no more.
    async fn next(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(report) = self.take()? {
                return Ok(Some(report));
            }
            let mut chunk = [0; 4096];
            let (control, descriptors) = (&self.control, &mut self.descriptors);
            let length = control
                .async_io(Interest::READABLE, || plan::receive_some(control, &mut chunk, descriptors))
                .await?;
            match chunk.get(..length) {
                None | Some([]) => return Ok(None),
                Some(more) => self.received.extend_from_slice(more),
            }
        }
    }

    /// The first report of what was received, if it is complete.
    fn take(&mut self) -> io::Result<Option<Report>> {
        let Some((length, rest)) = self.received.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > REPORT_LIMIT {
            return Err(io::Error::other("a report is too long"));
        }
        let Some(text) = rest.get(..length) else { return Ok(None) };
        let report = serde_json::from_slice(text)?;
        self.received.drain(..length + 4);
        Ok(Some(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// What becomes of a start of which this was reported, and then something that is no report.
    async fn refused(reported: &[Report]) -> JailError {
        let (ours, mut theirs) = StdUnixStream::pair().unwrap();
        for report in reported {
            plan::send(&theirs, report, &[]).unwrap();
        }
        theirs.write_all(b"\x04\0\0\0nono").unwrap();
        match Reports::new(ours).unwrap().started().await {
            Err(Refused::Error(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_job_that_may_have_run_is_never_said_not_to_have() {
        assert!(!refused(&[]).await.has_run());
        assert!(refused(&[Report::Executing]).await.has_run());
    }
}
