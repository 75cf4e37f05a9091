//! A document as programs read it.

use super::Subject;
use super::look::{Look, Shown};
use super::show::{place_word, servers, warnings};
use gantry_openapi::{Operation, Scheme};
use serde_json::{Map, Value, json};

/// All of it, or only what is skipped.
pub(super) fn report(subject: &Subject, look: &Look, only_skipped: bool) -> Value {
    let import = &look.import;
    let counts = json!({
        "operations": import.total,
        "tools": import.operations.len(),
        "filtered": import.filtered,
        "skipped": look.skipped(),
    });
    let skipped: Vec<Value> = import
        .skipped
        .iter()
        .map(|it| json!({ "method": it.method, "path": it.path, "reason": it.reason }))
        .collect();
    if only_skipped {
        return json!({ "counts": counts, "skipped": skipped });
    }
    let (listing, without) = look.tokens();
    let schemes: Map<String, Value> = import
        .schemes
        .iter()
        .map(|(name, it)| (name.clone(), scheme(it, subject.options.credentials.contains_key(name))))
        .collect();
    json!({
        "title": import.title,
        "version": import.api_version,
        "openapi": import.openapi,
        "servers": servers(look),
        "schemes": schemes,
        "counts": counts,
        "tokens": { "listing": listing, "withoutOutputSchemas": without },
        "stats": {
            "elapsedMs": u64::try_from(look.elapsed.as_millis()).unwrap_or(u64::MAX),
            "bytes": look.bytes,
            "peakMemoryBytes": peak_memory(),
        },
        "tools": look.tools().map(|(operation, shown)| tool(operation, shown)).collect::<Vec<_>>(),
        "skipped": skipped,
        "warnings": warnings(look),
    })
}

/// One tool.
pub(super) fn tool(operation: &Operation, shown: &Shown) -> Value {
    json!({
        "name": shown.name,
        "method": operation.method.to_string(),
        "path": operation.path,
        "operationId": operation.id,
        "tags": operation.tags,
        "effect": shown.effect.as_str(),
        "description": operation.description,
        "inputSchema": operation.input_schema,
        "outputSchema": operation.output_schema,
        "tokens": shown.tokens,
        "quarantined": shown.trouble,
    })
}

fn scheme(scheme: &Scheme, configured: bool) -> Value {
    let mut told = match scheme {
        Scheme::ApiKey { place, name } => json!({ "type": "apiKey", "in": place_word(*place), "name": name }),
        Scheme::Basic => json!({ "type": "basic" }),
        Scheme::Bearer => json!({ "type": "bearer" }),
        Scheme::ClientCredentials { token_url, scopes } => {
            json!({ "type": "clientCredentials", "tokenUrl": token_url.as_str(), "scopes": scopes })
        }
        Scheme::Unsupported(why) => json!({ "type": "unsupported", "reason": why }),
    };
    if let Some(told) = told.as_object_mut() {
        told.insert("configured".into(), configured.into());
    }
    told
}

/// The most memory that this process has had, where the system says so.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status).map(|kilobytes| kilobytes.saturating_mul(1024))
}

fn kilobytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_memory_is_read_where_it_is_told() {
        assert_eq!(kilobytes("Name:\tx\nVmHWM:\t   5120 kB\nVmRSS:\t 1 kB\n"), Some(5120));
        assert_eq!(kilobytes("Name:\tx\n"), None);
    }

    #[test]
    fn a_scheme_says_whether_there_is_something_to_show() {
        assert_eq!(scheme(&Scheme::Bearer, true), json!({ "type": "bearer", "configured": true }));
    }
}
