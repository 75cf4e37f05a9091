//! Log lines as people read them: `[VRB] tool request → …` on standard error.

use crate::cli::{Cli, Command};
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging. A server tells what it does; a command speaks up only when something is wrong.
pub(crate) fn start(cli: &Cli) {
    let serves = matches!(cli.command, Command::Serve { .. });
    let level = match (cli.verbose, serves) {
        (0, true) => "info",
        (0, false) => "error",
        (1, _) => "gantry=debug,gantry_runtime=debug,gantry_server=debug,info",
        (_, _) => "debug",
    };
    let filter = EnvFilter::try_from_env("GANTRY_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).event_format(Words);
    // A second start in one process keeps the first log.
    tracing::subscriber::set_global_default(subscriber.finish()).ok();
    // A panic is a mistake of ours; whoever runs the program gets one line of it, and the call that met it a fault.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message");
        tracing::error!("Gantry made a mistake at {place}: {what}");
    }));
}

struct Words;

impl<S, N> FormatEvent<S, N> for Words
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, cx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let word = match *event.metadata().level() {
            Level::ERROR => "ERR",
            Level::WARN => "WRN",
            Level::INFO => "INF",
            Level::DEBUG => "VRB",
            Level::TRACE => "TRC",
        };
        write!(out, "[{word}] ")?;
        cx.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
