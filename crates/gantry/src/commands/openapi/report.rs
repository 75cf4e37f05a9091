//! A document as programs read it.

use super::Subject;
use super::look::{Look, Shown};
use super::show::{place_word, servers, warnings};
use gantry_rest::openapi::{Operation, Scheme};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Map, Value, json};

/// All of it. It is written tool by tool: of a large API it has a hundred megabytes.
pub(super) struct Report<'a> {
    pub(super) subject: &'a Subject,
    pub(super) look: &'a Look,
}

impl Serialize for Report<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { subject, look } = self;
        let import = &look.import;
        let (listing, without) = look.tokens();
        let credentials = &subject.options.auth;
        let schemes = import.schemes.iter();
        let schemes: Map<String, Value> =
            schemes.map(|(name, it)| (name.clone(), scheme(it, credentials.contains_key(name)))).collect();
        let stats = json!({
            "elapsedMs": u64::try_from(look.elapsed.as_millis()).unwrap_or(u64::MAX),
            "bytes": look.bytes,
            "peakMemoryBytes": peak_memory(),
        });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("title", &import.title)?;
        map.serialize_entry("version", &import.api_version)?;
        map.serialize_entry("openapi", &import.openapi)?;
        map.serialize_entry("servers", &servers(look))?;
        map.serialize_entry("schemes", &schemes)?;
        map.serialize_entry("counts", &counts(look))?;
        map.serialize_entry("tokens", &json!({ "listing": listing, "withoutOutputSchemas": without }))?;
        map.serialize_entry("stats", &stats)?;
        map.serialize_entry("tools", &Tools(look))?;
        map.serialize_entry("skipped", &all_skipped(look))?;
        map.serialize_entry("warnings", &warnings(look))?;
        map.end()
    }
}

/// Each of them is made when it is written.
struct Tools<'a>(&'a Look);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.tools().map(|(operation, shown)| tool(operation, shown)))
    }
}

/// Only what is skipped.
pub(super) fn skipped(look: &Look) -> Value {
    json!({ "counts": counts(look), "skipped": all_skipped(look) })
}

fn counts(look: &Look) -> Value {
    json!({
        "operations": look.import.total,
        "tools": look.import.operations.len(),
        "filtered": look.import.filtered,
        "skipped": look.skipped(),
    })
}

fn all_skipped(look: &Look) -> Vec<Value> {
    let skipped = look.import.skipped.iter();
    skipped.map(|it| json!({ "method": it.method, "path": it.path, "reason": it.reason })).collect()
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
    let mut report = match scheme {
        Scheme::ApiKey { place, name } => json!({ "type": "apiKey", "in": place_word(*place), "name": name }),
        Scheme::Basic => json!({ "type": "basic" }),
        Scheme::Bearer => json!({ "type": "bearer" }),
        Scheme::ClientCredentials { token_url, scopes } => {
            json!({ "type": "clientCredentials", "tokenUrl": token_url.as_str(), "scopes": scopes })
        }
        Scheme::Unsupported(why) => json!({ "type": "unsupported", "reason": why }),
    };
    if let Some(report) = report.as_object_mut() {
        report.insert("configured".into(), configured.into());
    }
    report
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
