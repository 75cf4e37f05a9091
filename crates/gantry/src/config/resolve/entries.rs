//! Resolves MCP servers, REST tools, APIs, and what agents say of all of them.

use super::Resolver;
use crate::config::accepted::objection;
use crate::config::find::absolute;
use crate::config::schema::{Api, ApiId, McpServer, Project, RestTool, RestToolName};
use crate::config::watch::FileSnapshot;
use gantry_core::pattern::Pattern;
use gantry_core::toolset::ToolSelector;
use gantry_provider::options::{Secret, is_url};
use gantry_rest::{NAMESPACE, SpecPlace, StreamMode, Streaming, provider_id};
use gantry_upstream::options::{HealthKind, ServerOptions, TransportType};
use std::collections::BTreeMap;
use std::path::Path;

/// The spellings of two keys of a server.
const URL_KEYS: [&str; 4] = ["url", "endpoint", "serverUrl", "httpUrl"];
const TYPE_KEYS: [&str; 3] = ["type", "transport", "transportType"];

impl Resolver<'_> {
    pub(in crate::config) fn server(&mut self, project: &str, entry: [&str; 2], server: &mut McpServer) {
        // Editors call the section so.
        let entry = if self.documents.has(project, &entry) { entry } else { ["servers", entry[1]] };
        self.check_queues(project, &entry, &server.tools);
        let options = &mut server.options;
        if server.missing.is_empty() {
            self.check_transport(project, &entry, options);
        } else {
            self.check_known_transport(project, &entry, options);
        }
        if options.health_check.kind != HealthKind::Jsonrpc {
            let message = "has no effect; it is asked over the connection (jsonrpc)";
            self.warn(project, &[&entry[..], &["healthCheck", "kind"]].concat(), message);
        }
        // Only a process has a folder.
        let written = options.cwd.take().filter(|_| options.transport() == TransportType::Stdio);
        options.cwd = written.map(|folder| absolute(&self.base.folder, folder));
    }

    /// One way to reach the server, and all that this way needs.
    fn check_transport(&mut self, project: &str, entry: &[&str], options: &ServerOptions) {
        let transport = options.transport();
        if let Some((key, message)) = transport_problem(options) {
            return self.transport_problem(project, entry, key, &message);
        }
        for key in without_effect(transport, options) {
            let message = format!("has no effect with type {}", transport.as_str());
            self.warn(project, &[entry, &[key]].concat(), &message);
        }
    }

    /// The same for what does not need the variables that are not set.
    fn check_known_transport(&mut self, project: &str, entry: &[&str], options: &ServerOptions) {
        let is_said = |key: &&str| self.documents.has(project, &[entry, &[*key]].concat());
        let is_type_known = options.transport.is_some() || !TYPE_KEYS.iter().any(&is_said);
        let mut known = options.clone();
        if known.command.is_none() && is_said(&"command") {
            known.command = Some("unknown".to_owned());
        }
        // Something that is right in place of what is not known.
        let address = match options.transport {
            Some(TransportType::WebSocket) => "ws://unknown/",
            Some(TransportType::Tcp) => "tcp://unknown:1",
            Some(TransportType::Stdio | TransportType::Http | TransportType::Sse) | None => "http://unknown/",
        };
        if known.url.is_none() && URL_KEYS.iter().any(&is_said) {
            known.url = Some(address.into());
        }
        if known.urls.is_empty() && is_said(&"urls") {
            known.urls.push(address.into());
        }
        if known.address.is_none() && is_said(&"address") {
            known.address = Some("unknown:1".into());
        }
        // Which addresses and keys are right depends on the type.
        let problem = transport_problem(&known).filter(|(key, _)| is_type_known || key.is_empty());
        if let Some((key, message)) = problem {
            self.transport_problem(project, entry, key, &message);
        }
    }

    fn transport_problem(&mut self, project: &str, entry: &[&str], key: &str, message: &str) {
        let mut spellings = URL_KEYS.into_iter().filter(|_| key == "url");
        let written = spellings.find(|key| self.documents.has(project, &[entry, &[*key]].concat()));
        let key = written.unwrap_or(key);
        let keys = if key.is_empty() { entry.to_vec() } else { [entry, &[key]].concat() };
        self.problem(project, &keys, message);
    }

    pub(super) fn rest_tools(&mut self, project: &str, tools: &mut BTreeMap<RestToolName, RestTool>) {
        for (name, RestTool { tool, run, missing }) in tools {
            let keys = ["restTools", &**name];
            if let Some(queue) = &run.queue {
                self.check_queue(project, &[&keys[..], &["queue"]].concat(), queue);
            }
            self.warn_switched_off(project, &keys, run.enabled, missing);
            if let Some(tool) = tool {
                tool.name = name.to_string();
                tool.streaming.iter().for_each(|streaming| self.check_streaming(project, &keys, streaming));
            }
        }
    }

    /// Warns of keys for one way to read a stream where another one is chosen.
    fn check_streaming(&mut self, project: &str, keys: &[&str], streaming: &Streaming) {
        let mode = match streaming.mode {
            StreamMode::JsonStream => return,
            StreamMode::Ndjson => "ndjson",
            StreamMode::Sse => "sse",
        };
        for (key, value) in [
            ("linePrefix", &streaming.line_prefix),
            ("discriminatorField", &streaming.discriminator_field),
            ("doneValue", &streaming.done_value),
            ("answerField", &streaming.answer_field),
            ("tokenValue", &streaming.token_value),
            ("tokenField", &streaming.token_field),
        ] {
            if value.is_some() {
                let keys = [keys, &["streaming", key]].concat();
                self.warn(project, &keys, &format!("has no effect with mode {mode}"));
            }
        }
    }

    pub(super) fn apis(&mut self, project: &str, apis: &mut BTreeMap<ApiId, Api>) {
        for (id, api) in apis {
            let keys = ["openapiSpecs", &**id];
            self.check_queues(project, &keys, &api.tools);
            if let Some(options) = &mut api.options {
                options.id = id.to_string();
                if let SpecPlace::File(file) = &mut options.spec {
                    *file = absolute(&self.base.folder, &*file);
                }
                api.documents = FileSnapshot::of_document(&options.spec);
                let mut files: Vec<_> = api.documents.paths().filter(|file| file.is_file()).collect();
                if let Some(file) = files.iter().find(|file| self.base.leaves_out(file)) {
                    api.missing = objection(&format!("{} is left out", file.display()));
                }
                options.files = Some(files.drain(..).cloned().collect());
            }
            self.warn_switched_off(project, &keys, api.tools.enabled, &api.missing);
        }
    }

    fn warn_switched_off(&mut self, project: &str, keys: &[&str], is_enabled: bool, missing: &str) {
        // A service that is switched off anyway needs no variables.
        if is_enabled && !missing.is_empty() {
            self.warn(project, keys, &format!("is switched off: {missing}"));
        }
    }

    /// Tells ids of providers from patterns in the tools that agents have, and reports APIs that do not exist.
    pub(super) fn select_providers(&mut self, project: &mut Project) {
        let ids: Vec<String> = project.apis.keys().map(|id| provider_id(id)).collect();
        let mut agents = std::mem::take(&mut project.agents);
        for (name, agent) in &mut agents {
            for (n, selector) in std::mem::take(&mut agent.selection.include).into_iter().enumerate() {
                let selected = select(&selector, project, &ids);
                if selected.is_empty() {
                    self.report_unknown_api(&project.places.name, [name, &n.to_string()], &selector, &ids);
                }
                agent.selection.include.extend(selected);
            }
        }
        project.agents = agents;
    }

    fn report_unknown_api(
        &mut self,
        project: &str,
        [agent, n]: [&str; 2],
        selector: &ToolSelector,
        apis: &[String],
    ) {
        let advice = match apis {
            [] => "no API is configured; add it under \"openapiSpecs\"".to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        let (list, group) = (["agents", agent, "tools", n], ["agents", agent, "tools", "use", n]);
        let keys = if self.documents.has(project, &list) { &list[..] } else { &group[..] };
        self.problem(project, keys, &format!(": there is no API {:?}; {advice}", selector.as_str()));
    }
}

/// What a selector of an agent stands for. `apis` are the ids of the providers of APIs; none of them is an error.
fn select(selector: &ToolSelector, project: &Project, apis: &[String]) -> Vec<ToolSelector> {
    let text = selector.as_str();
    if text.starts_with(&provider_id("")) {
        let pattern = Pattern::parse(text).ok();
        let is_selected = |id: &&String| pattern.as_ref().is_some_and(|pattern| pattern.matches(id));
        let found = apis.iter().filter(is_selected);
        return found.map(|id| ToolSelector::Provider(id.as_str().into())).collect();
    }
    let is_provider = ["workspace", NAMESPACE].contains(&text)
        || project.mcp_servers.contains_key(text)
        || project.builtin.contains_key(text);
    if is_provider && matches!(selector, ToolSelector::ProviderOrTools(_)) {
        return vec![ToolSelector::Provider(text.into())];
    }
    vec![selector.clone()]
}

/// Why an entry does not say one way to reach its server: the key, which is empty for the entry itself, and the words.
fn transport_problem(options: &ServerOptions) -> Option<(&'static str, String)> {
    use TransportType::{Stdio, Tcp};
    let transport = options.transport();
    let is_stdio = transport == Stdio;
    let addresses =
        [("url", options.url.as_slice()), ("urls", &options.urls), ("address", options.address.as_slice())];
    let given: Vec<_> = addresses.into_iter().filter(|(_, addresses)| !addresses.is_empty()).collect();
    let word = transport.as_str();
    Some(match (options.transport, &options.command, given.as_slice()) {
        (None, None, []) => {
            ("", "needs \"command\", the program to start, or \"url\", where it listens".to_owned())
        }
        (None, Some(_), [_, ..]) => {
            ("", "has both a command and an address; keep one, or make it two servers".to_owned())
        }
        (Some(Stdio), _, [(key, _), ..]) => (key, "is not for type stdio; keep one of the two".to_owned()),
        (Some(Stdio), None, []) => ("", "needs the key \"command\"".to_owned()),
        (Some(_), Some(_), _) if !is_stdio => {
            ("command", format!("is for type stdio, and this is {word}; keep one of the two"))
        }
        (Some(_), _, []) if !is_stdio => ("", "needs the key \"url\"".to_owned()),
        (_, _, [(one, _), (two, _), ..]) => ("", format!("has {one:?} and {two:?}; keep one")),
        (_, Some(command), []) if command.trim().is_empty() => {
            ("command", "must be the program to start, found \"\"".to_owned())
        }
        (_, _, [("address", _)]) if transport != Tcp => {
            ("address", "is for type tcp; use \"url\"".to_owned())
        }
        // An address may hold a key, so it is not quoted.
        (_, _, [(key, addresses)]) if addresses.iter().any(|it| !takes(transport, it.expose())) => {
            (key, format!("must be {}", address_noun(transport)))
        }
        _ => return None,
    })
}

fn address_noun(transport: TransportType) -> &'static str {
    match transport {
        TransportType::Stdio | TransportType::Http | TransportType::Sse => {
            "an http:// or https:// address without user and password, such as https://mcp.example.com/mcp"
        }
        TransportType::WebSocket => {
            "a ws:// or wss:// address without user and password, such as wss://mcp.example.com/ws"
        }
        TransportType::Tcp => "a host and a port, such as tcp://127.0.0.1:9000",
    }
}

fn takes(transport: TransportType, address: &str) -> bool {
    match transport {
        TransportType::Stdio => false,
        TransportType::Http | TransportType::Sse => is_url(address, &["http", "https"]),
        TransportType::WebSocket => is_url(address, &["ws", "wss"]),
        TransportType::Tcp => is_host_and_port(address),
    }
}

/// `host:port`, written with `tcp://` or without.
fn is_host_and_port(text: &str) -> bool {
    let bare = match text.strip_prefix("tcp://") {
        Some(bare) => bare.strip_suffix('/').unwrap_or(bare),
        None => text,
    };
    let Ok(authority) = bare.parse::<http::uri::Authority>() else { return false };
    let has_port = authority.port_u16().is_some_and(|port| port > 0);
    has_port && !authority.host().is_empty() && !bare.contains('@')
}

/// Keys that mean nothing to a transport. Editors write empty groups and lists into every entry.
fn without_effect(transport: TransportType, options: &ServerOptions) -> Vec<&'static str> {
    let is_stdio = transport == TransportType::Stdio;
    let sends_headers = !matches!(transport, TransportType::Stdio | TransportType::Tcp);
    let keys = [
        ("args", !options.args.is_empty(), is_stdio),
        ("env", !options.env.is_empty(), is_stdio),
        ("cwd", options.cwd.is_some(), is_stdio),
        ("replicas", options.replicas.get() > 1, is_stdio),
        ("headers", !options.headers.is_empty(), sends_headers),
    ];
    keys.into_iter().filter(|(_, is_said, is_used)| *is_said && !is_used).map(|(key, ..)| key).collect()
}

/// The arguments of a server of the catalogue: one that begins with `./` is a path from the folder of the configuration.
pub(super) fn absolute_arguments(options: &mut ServerOptions, folder: &Path) {
    for argument in options.args.iter_mut().filter(|argument| argument.expose().starts_with("./")) {
        if let Some(path) = absolute(folder, argument.expose()).to_str() {
            *argument = Secret::from(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_transport_takes_its_own_addresses() {
        for (transport, good, bad) in [
            (TransportType::Http, &["http://localhost:1/mcp"][..], &["ws://a/", "a:1"][..]),
            (TransportType::WebSocket, &["ws://a:1", "wss://a/x"], &["http://a/", "a:1"]),
            (
                TransportType::Tcp,
                &["127.0.0.1:9000", "tcp://a:1", "tcp://[::1]:1/"],
                &["a", "a:0", "a:1/", "a:70000", "tcp://a", ":1", "u@a:1", "tcp://a:1/x"],
            ),
        ] {
            good.iter().for_each(|text| assert!(takes(transport, text), "{transport:?} {text}"));
            bad.iter().for_each(|text| assert!(!takes(transport, text), "{transport:?} {text}"));
        }
    }
}
