//! An MCP client in plain messages, by any entry point: it sees every byte that Gantry sends it.

use super::doors::{Door, Way};
use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

/// How long anything may take to come.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";

/// A connected client.
pub(crate) struct Talk {
    pub(crate) way: Way,
    /// What came while something else was awaited, oldest first.
    kept: VecDeque<String>,
    /// The capabilities that every request of the newer era names; nothing for a client of the older one.
    capabilities: Option<Value>,
    /// More members of `_meta` for the requests that follow, as JSON text.
    pub(crate) meta: String,
    n_requests: u64,
}

impl Talk {
    /// A client of the older era after its handshake, which can be asked everything.
    #[track_caller]
    pub(crate) fn legacy(door: Door<'_>) -> Self {
        Self::legacy_with(door, &json!({ "elicitation": {}, "sampling": {}, "roots": {} }))
    }

    /// The same with these capabilities.
    #[track_caller]
    pub(crate) fn legacy_with(door: Door<'_>, capabilities: &Value) -> Self {
        let mut talk = Self::silent(door);
        let client = json!({ "name": "talk", "version": "1" });
        let hello = json!({ "protocolVersion": LEGACY, "capabilities": capabilities, "clientInfo": client });
        let answer = talk.ask("initialize", &hello);
        assert_eq!(answer["result"]["protocolVersion"], LEGACY, "{answer}");
        talk.tell("notifications/initialized", &json!({}));
        talk.way.listen();
        talk
    }

    /// A client of the newer era that can be asked everything.
    #[track_caller]
    pub(crate) fn modern(door: Door<'_>) -> Self {
        let capabilities = json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} });
        Self::modern_with(door, &capabilities)
    }

    /// The same with these capabilities.
    #[track_caller]
    pub(crate) fn modern_with(door: Door<'_>, capabilities: &Value) -> Self {
        Self { capabilities: Some(capabilities.clone()), ..Self::silent(door) }
    }

    /// A client that has said nothing yet.
    #[track_caller]
    pub(crate) fn silent(door: Door<'_>) -> Self {
        Self {
            way: door.open(),
            kept: VecDeque::new(),
            capabilities: None,
            meta: String::new(),
            n_requests: 0,
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: &str) -> u64 {
        self.n_requests += 1;
        let id = self.n_requests;
        let params = self.stamped(params);
        self.way.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        id
    }

    /// Params with the `_meta` that belongs to them.
    fn stamped(&self, params: &str) -> String {
        let mut meta = self.meta.clone();
        if let Some(capabilities) = &self.capabilities {
            let comma = if meta.is_empty() { "" } else { "," };
            meta.push_str(&format!(
                r#"{comma}"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{capabilities}"#
            ));
        }
        match (meta.as_str(), params.strip_suffix('}').expect("an object")) {
            ("", _) => params.to_owned(),
            (meta, "{") => format!(r#"{{"_meta":{{{meta}}}}}"#),
            (meta, rest) => format!(r#"{rest},"_meta":{{{meta}}}}}"#),
        }
    }

    /// The text of the answer to a request.
    #[track_caller]
    pub(crate) fn end(&mut self, id: u64) -> String {
        self.wait_for(&format!("the answer to request {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        })
    }

    /// Sends a request and returns the answer as it came.
    #[track_caller]
    pub(crate) fn ask_raw(&mut self, method: &str, params: &str) -> String {
        let id = self.begin(method, params);
        self.end(id)
    }

    /// Sends a request and returns the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        parsed(&self.ask_raw(method, &params.to_string()))
    }

    /// Sends a request that has to be answered with a result.
    #[track_caller]
    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    /// Sends a request that has to be answered with an error of this code, and returns the error.
    #[track_caller]
    pub(crate) fn error(&mut self, method: &str, params: &Value, code: i64) -> Value {
        let mut answer = self.ask(method, params);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        answer["error"].take()
    }

    /// Begins a call of a tool.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.begin("tools/call", &json!({ "name": tool, "arguments": arguments }).to_string())
    }

    /// Calls a tool and returns the one text that it answers.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> String {
        let id = self.begin_call(tool, arguments);
        self.end_call(id)
    }

    /// The one text that a call answers.
    #[track_caller]
    pub(crate) fn end_call(&mut self, id: u64) -> String {
        let answer = parsed(&self.end(id));
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{answer}");
        text(result)
    }

    /// The tools that are listed, by name.
    #[track_caller]
    pub(crate) fn tools(&mut self) -> Vec<String> {
        names(&self.result("tools/list", &json!({}))["tools"])
    }

    /// Sends a notification.
    pub(crate) fn tell(&mut self, method: &str, params: &Value) {
        self.way.say(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Answers a question.
    pub(crate) fn answer(&mut self, question: &Value, result: &Value) {
        self.way.say(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result }).to_string());
    }

    /// Waits for the next notification or question of this method, and returns the whole message.
    #[track_caller]
    pub(crate) fn hear(&mut self, method: &str) -> Value {
        parsed(&self.wait_for(method, |message| message["method"] == method))
    }

    /// The messages of this method that have come by now.
    pub(crate) fn heard(&mut self, method: &str) -> Vec<Value> {
        self.kept.extend(self.way.heard.try_iter());
        let (found, others): (VecDeque<String>, _) =
            self.kept.drain(..).partition(|message| parsed(message)["method"] == method);
        self.kept = others;
        found.iter().map(|message| parsed(message)).collect()
    }

    #[track_caller]
    fn wait_for(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> String {
        if let Some(at) = self.kept.iter().position(|message| is_it(&parsed(message))) {
            return self.kept.remove(at).expect("it is there");
        }
        loop {
            let message = self.way.heard.recv_timeout(TIMEOUT).unwrap_or_else(|error| {
                panic!("waited for {what}, but {error}; what came is {:?}", self.kept)
            });
            if is_it(&parsed(&message)) {
                return message;
            }
            self.kept.push_back(message);
        }
    }
}

/// A message as a value. One with a number that no double can hold keeps what is around it.
#[track_caller]
pub(crate) fn parsed(message: &str) -> Value {
    let tame = message.replace(":1e400", ":\"1e400\""); // Not in ids, where the letters may stand by chance.
    serde_json::from_str(&tame).unwrap_or_else(|error| panic!("not JSON: {error}: {message}"))
}

/// The text of a value inside others, byte for byte.
#[track_caller]
pub(crate) fn raw<'t>(text: &'t str, path: &[&str]) -> &'t str {
    path.iter().fold(text, |text, key| {
        let members: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("no object: {error}: {text}"));
        members.get(*key).unwrap_or_else(|| panic!("no {key} in {text}")).get()
    })
}

/// The texts of the elements of an array, byte for byte.
#[track_caller]
pub(crate) fn elements(text: &str) -> Vec<&str> {
    let elements: Vec<&RawValue> =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("no array: {error}: {text}"));
    elements.into_iter().map(RawValue::get).collect()
}

/// The members of an object in their order, each with its text.
#[track_caller]
pub(crate) fn in_order(object: &str) -> Vec<(String, String)> {
    let mut reader = serde_json::Deserializer::from_str(object);
    let members = reader.deserialize_map(InOrder);
    members.unwrap_or_else(|error| panic!("no object: {error}: {object}"))
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Vec<(String, String)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((key, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            members.push((key.into_owned(), value.get().to_owned()));
        }
        Ok(members)
    }
}

/// The same without the members of these names.
pub(crate) fn without(members: &[(String, String)], names: &[&str]) -> Vec<(String, String)> {
    members.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect()
}

/// The one text of a result.
#[track_caller]
pub(crate) fn text(result: &Value) -> String {
    assert_eq!(result["content"].as_array().map(Vec::len), Some(1), "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}")).to_owned()
}

/// The names in a list.
#[track_caller]
pub(crate) fn names(list: &Value) -> Vec<String> {
    members(list, "name")
}

/// This member of everything in a list.
#[track_caller]
pub(crate) fn members(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    items.iter().map(|item| item[key].as_str().expect("a text").to_owned()).collect()
}
