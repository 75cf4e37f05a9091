//! Arguments of calls on the command line: JSON text, `@FILE`, or `-` for standard input.

use crate::exit::UsageError;
use anyhow::Context as _;
use serde_json::value::RawValue;

/// Reads arguments and checks them; the text stays as it was written.
pub(super) fn read(given: &str) -> anyhow::Result<Box<RawValue>> {
    let text = match (given, given.strip_prefix('@')) {
        ("-", _) => std::io::read_to_string(std::io::stdin())
            .context("cannot read the arguments from standard input")?,
        (_, Some(file)) => std::fs::read_to_string(file)
            .map_err(|error| UsageError(format!("cannot read {file}: {error}")))?,
        (text, None) => text.to_owned(),
    };
    Ok(parse(&text)?)
}

/// Checks that a text is JSON that means one thing.
pub(super) fn parse(text: &str) -> Result<Box<RawValue>, UsageError> {
    let arguments = RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        UsageError(format!("the arguments are not JSON: {error}. Write them like '{{\"path\": \"a.txt\"}}'"))
    })?;
    gantry_core::json::check(arguments.get())
        .map_err(|error| UsageError(format!("the arguments are unusable: {error}")))?;
    Ok(arguments)
}
