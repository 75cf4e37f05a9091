//! The log: plain lines such as `[VRB] tool request → …` on standard error.

use crate::cli::{Cli, Command};
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

pub(crate) fn start(cli: &Cli) {
    let filter = EnvFilter::try_from_env("GANTRY_LOG").unwrap_or_else(|_| EnvFilter::new(level(cli)));
    // A line that cannot be written is dropped. Reporting it on standard error would panic, and logging that panic would
    // panic again: a log on a full disk must not end the server.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .event_format(PlainFormat);
    // A second start in one process keeps the first log.
    tracing::subscriber::set_global_default(subscriber.finish()).ok();
    // A panic is a bug of Gantry: the log gets one line, and the call that met it an error.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message");
        tracing::error!("Gantry made a mistake at {place}: {what}");
    }));
}

/// The default filter. The server logs what it does, a command only errors. Commands that show the configuration also log
/// its warnings.
fn level(cli: &Cli) -> &'static str {
    match (cli.global.verbose, &cli.command) {
        (0, Command::Serve { .. }) => "info",
        // There is no other place that says why a tool is missing.
        (0, Command::Mcp { .. }) => "warn",
        (0, Command::Agents { .. } | Command::Tools { .. } | Command::Config { .. }) => CONFIG_WARNINGS,
        // Without an argument, doctor lists the warnings among its findings.
        (0, Command::Doctor(doctor)) if doctor.what.is_some() => CONFIG_WARNINGS,
        (0, _) => "error",
        (1, _) => "gantry=debug,gantry_runtime=debug,gantry_server=debug,info",
        (_, _) => "debug",
    }
}

/// `CommandContext` logs the warnings of the configuration under this target.
const CONFIG_WARNINGS: &str = "error,gantry::config=warn";

struct PlainFormat;

impl<S, N> FormatEvent<S, N> for PlainFormat
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[track_caller]
    fn of(arguments: &[&str]) -> &'static str {
        let arguments = std::iter::once("gantry").chain(arguments.iter().copied()).map(OsString::from);
        level(&crate::cli::parse(arguments.collect::<Vec<_>>()).unwrap())
    }

    #[test]
    fn commands_that_show_the_configuration_log_its_warnings() {
        for arguments in [&["agents"][..], &["tools", "--json"], &["doctor", "read_file"]] {
            assert_eq!(of(arguments), CONFIG_WARNINGS, "{arguments:?}");
        }
        assert_eq!(of(&["doctor"]), "error", "it lists them among its findings");
        assert_eq!(of(&["call", "read_file"]), "error");
        assert_eq!(of(&["mcp"]), "warn");
        assert_eq!(of(&["serve"]), "info");
        assert!(of(&["-v", "mcp"]).contains("debug"));
    }
}
