//! REST services as tools: what really arrives at a service, for tools that the configuration spells out and for those of
//! OpenAPI documents. What is expected was written from the specifications, not from what Gantry does.

#![cfg(test)]

mod answers;
mod bodies;
mod changes;
mod chosen;
mod encoded;
mod hostile;
mod inline;
mod kept;
mod limits;
mod places;
mod references;
mod retries;
mod same;
mod schemas;
mod secrets;
mod security;
mod streams;
mod wire;

use crate::passthrough::{Door, Talk};
use gantry_testkit::{CommandOutput, Echo, Server, TestDir, failed, with};
use serde_json::{Value, json};

/// A Gantry that serves, and a service on this machine that it may reach.
struct Rig {
    echo: Echo,
    server: Server,
    home: TestDir,
}

impl Rig {
    /// With the configuration that is made for the service.
    fn of(config: impl FnOnce(&Echo) -> Value) -> Self {
        let echo = Echo::start();
        let home = home(&config(&echo));
        Self::at(echo, home)
    }

    /// In a home that is there already.
    fn at(echo: Echo, home: TestDir) -> Self {
        let server = home.serve();
        let rig = Self { echo, server, home };
        rig.settled();
        rig
    }

    /// With these tools spelled out.
    fn inline(tools: impl FnOnce(&Echo) -> Value) -> Self {
        Self::of(|echo| json!({ "restTools": tools(echo) }))
    }

    /// With the API `api` of this document. The document need not say where that is.
    fn api(document: &Value) -> Self {
        Self::api_with(document, &json!({}))
    }

    /// The same with more keys in its entry.
    fn api_with(document: &Value, more: &Value) -> Self {
        let echo = Echo::start();
        let mut document = document.clone();
        if document.get("swagger").is_none() && document.get("servers").is_none() {
            document["servers"] = json!([{ "url": echo.url("") }]);
        }
        let home = home(&json!({ "openapiSpecs": { "api": with(json!({ "spec": "api.json" }), more) } }));
        home.write("api.json", &document.to_string());
        Self::at(echo, home)
    }

    /// Waits until every document has been read.
    fn settled(&self) {
        // A client that connects waits for the pool.
        Talk::legacy(self.door()).tools();
    }

    fn door(&self) -> Door<'_> {
        Door::Http(&self.server, "/mcp")
    }

    /// The reply of a call.
    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.server.call(tool, arguments).json()
    }

    /// What a call that works answers.
    #[track_caller]
    fn result(&self, tool: &str, arguments: &Value) -> Value {
        let mut reply = self.call(tool, arguments);
        assert_eq!(reply["ok"], true, "{tool} {arguments}: {reply}");
        reply["result"].take()
    }

    /// What the service received from a call that works.
    #[track_caller]
    fn sent(&self, tool: &str, arguments: &Value) -> Value {
        let before = self.echo.requests().len();
        self.result(tool, arguments);
        assert_eq!(self.echo.requests().len(), before + 1, "{tool} {arguments}: one call is one request");
        self.echo.last()
    }

    /// The code and the message of a call that fails.
    #[track_caller]
    fn failed(&self, tool: &str, arguments: &Value) -> (String, String) {
        failed(&self.call(tool, arguments))
    }

    /// That a call is refused with this code, names this, and sends nothing.
    #[track_caller]
    fn refused(&self, tool: &str, arguments: &Value, code: &str, words: &str) {
        let before = self.echo.requests().len();
        let (found, message) = self.failed(tool, arguments);
        assert!(found == code && message.contains(words), "{tool} {arguments}: {found}: {message}");
        assert_eq!(self.echo.requests().len(), before, "{tool} {arguments}: nothing is sent");
    }

    /// The names of the tools of REST services, in order.
    #[track_caller]
    fn tools(&self) -> Vec<String> {
        rest_tools(&self.server.get("/api/v1/tools").json()["items"])
    }
}

/// A home with this configuration, which may reach this machine.
fn home(config: &Value) -> TestDir {
    let private = json!({ "web": { "allowPrivate": ["127.0.0.1/32"] } });
    TestDir::new().config(&with(private, config).to_string())
}

/// The names of the tools of REST services in a listing, in order.
fn rest_tools(listing: &Value) -> Vec<String> {
    let names = listing.as_array().expect("tools").iter().map(|tool| tool["name"].as_str().expect("a name"));
    let mut names: Vec<String> = names.filter(|name| name.starts_with("rest__")).map(str::to_owned).collect();
    names.sort();
    names
}

/// A document of version 3.1 with these paths.
fn document(paths: &Value) -> Value {
    json!({ "openapi": "3.1.0", "info": { "title": "Test", "version": "1" }, "paths": paths })
}

/// A document with one `POST` at each path, whose body has this media type and this schema: path, type, schema.
fn with_bodies(bodies: &[(&str, &str, Value)]) -> Value {
    let mut paths = json!({});
    for (name, media, schema) in bodies {
        paths[format!("/{name}")] = json!({ "post": {
            "operationId": name,
            "requestBody": { "content": { *media: { "schema": schema } } },
            "responses": { "200": { "description": "done" } },
        } });
    }
    document(&paths)
}

/// An operation without parameters.
fn operation(id: &str) -> Value {
    json!({ "operationId": id, "responses": { "200": { "description": "done" } } })
}

/// `gantry openapi inspect` on a file of the home, with more arguments.
fn inspect_with(home: &TestDir, file: &str, more: &[&str]) -> CommandOutput {
    let args = ["openapi", "inspect", file, "--json"];
    home.run(args.iter().chain(more))
}

/// The report on a file of the home that can be used.
#[track_caller]
fn inspect(home: &TestDir, file: &str) -> Value {
    let ran = inspect_with(home, file, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    ran.json()
}

/// The one tool of that method and path in a report.
#[track_caller]
fn tool_at(report: &Value, method: &str, path: &str) -> Value {
    let mut tools = report["tools"].as_array().expect("tools").iter();
    let found = tools.find(|tool| {
        tool["path"] == path && tool["method"].as_str().is_some_and(|m| m.eq_ignore_ascii_case(method))
    });
    found.cloned().unwrap_or_else(|| panic!("no {method} {path} in {report}"))
}
