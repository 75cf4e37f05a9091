//! Log lines as people read them: `[VRB] tool request → …` on standard error.

use crate::cli::{Cli, Command};
use std::fmt;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Starts logging.
pub(crate) fn start(cli: &Cli) {
    let filter = EnvFilter::try_from_env("GANTRY_LOG").unwrap_or_else(|_| EnvFilter::new(level(cli)));
    // A line that cannot be written is lost. To complain about that on standard error as well would be a panic, and to
    // log the panic another one: a log on a full disk must not end the server.
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .event_format(PlainFormat);
    // A second start in one process keeps the first log.
    tracing::subscriber::set_global_default(subscriber.finish()).ok();
    // A panic is a mistake of ours; whoever runs the program gets one line of it, and the call that met it a fault.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no message");
        tracing::error!("Gantry made a mistake at {place}: {what}");
    }));
}

/// What is logged unless somebody says otherwise. A server tells what it does; a command speaks up when something is
/// wrong, and those that show what is configured also say what in the configuration has no effect.
fn level(cli: &Cli) -> &'static str {
    match (cli.verbose, &cli.command) {
        (0, Command::Serve { .. }) => "info",
        // Nobody but its client sees what it does, and only here is said why a tool is missing.
        (0, Command::Mcp { .. }) => "warn",
        // The warnings of the configuration come from there. The whole examination lists them itself.
        (0, Command::Agents { .. } | Command::Tools { .. }) => OF_THE_CONFIGURATION,
        (0, Command::Doctor(asked)) if asked.what.is_some() => OF_THE_CONFIGURATION,
        (0, _) => "error",
        (1, _) => "gantry=debug,gantry_runtime=debug,gantry_server=debug,info",
        (_, _) => "debug",
    }
}

/// The client logs the warnings of the configuration under this target.
const OF_THE_CONFIGURATION: &str = "error,gantry::config=warn";

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
    fn commands_that_show_what_is_configured_say_what_has_no_effect() {
        for arguments in [&["agents"][..], &["tools", "--json"], &["doctor", "read_file"]] {
            assert_eq!(of(arguments), OF_THE_CONFIGURATION, "{arguments:?}");
        }
        assert_eq!(of(&["doctor"]), "error", "it lists them among its findings");
        assert_eq!(of(&["call", "read_file"]), "error");
        assert_eq!(of(&["mcp"]), "warn");
        assert_eq!(of(&["serve"]), "info");
        assert!(of(&["-v", "mcp"]).contains("debug"));
    }
}
