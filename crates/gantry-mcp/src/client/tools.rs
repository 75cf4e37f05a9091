//! What the definitions of tools say about calling them: arguments that are repeated in headers, and required tasks.

use crate::headers::{self, HeaderParam};
use crate::{lock, raw};
use http::{HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolHints {
    header_params: Vec<HeaderParam>,
    /// It can only be called as a task (2025-11-25).
    pub(super) task: bool,
}

/// The tools that are not called in the plain way, by name.
#[derive(Debug, Default)]
pub(super) struct ToolCallHints(Mutex<HashMap<String, Arc<ToolHints>>>);

impl ToolCallHints {
    /// Replaces all hints by those of a new list. Returns the tools that can be offered, in their order.
    pub(super) fn update(&self, server: &str, modern: bool, tools: Vec<Box<str>>) -> Vec<Box<str>> {
        // Limit: the list is bounded.
        let mut known = HashMap::new();
        let mut offered = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = raw::string_member(&tool, "name").unwrap_or_default();
            match hints(&tool, modern) {
                Ok(hints) => {
                    if hints != ToolHints::default() {
                        known.insert(name.into_owned(), Arc::new(hints));
                    }
                    offered.push(tool);
                }
                Err(reason) => tracing::warn!(server, tool = %name, reason, "a tool is left out"),
            }
        }
        *lock(&self.0) = known;
        offered
    }

    pub(super) fn get(&self, params: &str) -> Option<Arc<ToolHints>> {
        let known = lock(&self.0);
        if known.is_empty() {
            return None;
        }
        known.get(&*raw::string_member(params, "name")?).cloned()
    }
}

fn hints(tool: &str, modern: bool) -> Result<ToolHints, String> {
    let support =
        raw::member(tool, "execution").and_then(|execution| raw::string_member(execution, "taskSupport"));
    let task = !modern && support.as_deref() == Some("required");
    // Most schemas do not have the annotation; a look at the text spares reading those.
    let schema = raw::member(tool, "inputSchema").filter(|schema| modern && schema.contains("x-mcp-header"));
    let header_params = match schema.map(serde_json::from_str) {
        Some(Ok(schema)) => headers::header_params(&schema)?,
        Some(Err(error)) => return Err(error.to_string()),
        None => Vec::new(),
    };
    Ok(ToolHints { header_params, task })
}

/// The headers that repeat a modern request.
pub(super) fn headers(method: &str, params: &str, hints: Option<&ToolHints>) -> HeaderMap {
    let mut map = HeaderMap::new();
    let mut set = |name: &str, value: &str| {
        let value = headers::encode_value(value);
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(&*value)) {
            map.insert(name, value);
        }
    };
    set("mcp-method", method);
    let named_by = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ if method.starts_with("tasks/") => Some("taskId"),
        _ => None,
    };
    if let Some(name) = named_by.and_then(|member| raw::string_member(params, member)) {
        set("mcp-name", &name);
    }
    let arguments = raw::member(params, "arguments").unwrap_or("{}");
    for param in hints.map(|hints| &*hints.header_params).unwrap_or_default() {
        if let Some(value) = param.value(arguments) {
            set(&param.header, &value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_with_annotations_that_cannot_be_followed_is_left_out_alone() {
        let tools = [
            r#"{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}"#,
            r#"{"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"a b"}}}}"#,
            r#"{"name":"c","inputSchema":{"type":"object"}}"#,
        ];
        let hints = ToolCallHints::default();
        let offered = hints.update("s", true, tools.map(Into::into).to_vec());
        assert_eq!(offered.len(), 2);
        let params = r#"{"name":"a","arguments":{"r":"Zürich"}}"#;
        let map = headers("tools/call", params, hints.get(params).as_deref());
        assert_eq!(map["mcp-method"], "tools/call");
        assert_eq!(map["mcp-name"], "a");
        assert_eq!(map["mcp-param-region"], "=?base64?WsO8cmljaA==?=");
        assert!(hints.get(r#"{"name":"c"}"#).is_none());
        // A legacy server knows no such annotation.
        assert_eq!(hints.update("s", false, tools.map(Into::into).to_vec()).len(), 3);
    }

    #[test]
    fn headers_name_what_a_request_is_about() {
        for (method, params, name) in [
            ("prompts/get", r#"{"name":"p"}"#, Some("p")),
            ("resources/read", r#"{"uri":"f:///a"}"#, Some("f:///a")),
            ("tasks/get", r#"{"taskId":"t1"}"#, Some("t1")),
            ("tools/list", r#"{"name":"p"}"#, None),
        ] {
            let map = headers(method, params, None);
            assert_eq!(map.get("mcp-name").map(|value| value.to_str().unwrap()), name, "{method}");
        }
    }
}
