//! Arguments of tools as a person gives them: as JSON, from a file, or on standard input.

use crate::exit::UsageError;
use anyhow::Context as _;
use serde_json::value::RawValue;
use std::io::Read as _;

/// Reads arguments exactly as they were typed; `@FILE` names a file, `-` means standard input.
pub(super) fn read(given: &str) -> anyhow::Result<Box<RawValue>> {
    let text = match given {
        "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read the arguments from standard input")?;
            text
        }
        other => match other.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| UsageError(format!("cannot read {file}: {error}")))?,
            None => other.to_owned(),
        },
    };
    Ok(parse(&text)?)
}

/// Arguments from text that is checked, but not changed.
pub(super) fn parse(text: &str) -> Result<Box<RawValue>, UsageError> {
    let arguments = RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        UsageError(format!("the arguments are not JSON: {error}. Write them like '{{\"path\": \"a.txt\"}}'"))
    })?;
    gantry_core::json::check(arguments.get())
        .map_err(|error| UsageError(format!("the arguments are unusable: {error}")))?;
    Ok(arguments)
}
