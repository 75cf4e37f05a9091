//! Finding the operations of a document.

use crate::openapi::document::NodeRef;
use crate::openapi::import::names::Origin;
use crate::openapi::limits::HOPS;
use crate::openapi::operation::Method;
use serde_json::Value;
use std::collections::HashSet;

/// Operations that are looked at. Looking costs little, and names have to be given to all of them.
const FOUND: usize = 100_000;
/// Bytes of an `operationId` or a wished name. What is longer is none; a document may refer to it from every path.
const NAME_BYTES: usize = 1000;
/// Tags of one operation.
const TAGS: usize = 100;
/// Fields of one path item, and of all that are looked at: many paths may refer to the same one.
const FIELDS: usize = 1000;
const ALL_FIELDS: usize = 20_000_000;

/// An operation as it stands in the document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    /// The path item as it stands under its path, which may refer to another one: both may have parameters for it.
    pub(crate) item: NodeRef<'a>,
    /// The path item that has servers for it.
    pub(crate) at: NodeRef<'a>,
    pub(crate) node: NodeRef<'a>,
}

/// What should be an operation or a path of them, and why it is none.
#[derive(Debug)]
pub(crate) struct Broken<'a> {
    /// How many operations were found before it.
    pub(crate) before: usize,
    /// The method in capitals; `*` where not even that is known.
    pub(crate) method: String,
    pub(crate) path: &'a str,
    pub(crate) reason: String,
}

/// What a walk through a document brought.
#[derive(Debug, Default)]
pub(crate) struct Walk<'a> {
    pub(crate) found: Vec<Found<'a>>,
    /// In the order of the document.
    pub(crate) broken: Vec<Broken<'a>>,
    /// How many operations there are beyond the limit.
    pub(crate) left_out: usize,
    pub(crate) warnings: Vec<String>,
    /// Fields that were looked at.
    looked: usize,
}

/// The operations of a document, in its order. What the API itself calls (`webhooks`, callbacks) is none of them.
pub(crate) fn operations(root: NodeRef<'_>) -> Walk<'_> {
    let mut out = Walk::default();
    let nothing = match root.get("paths").map(NodeRef::resolved) {
        None => Some("there are no paths in the document, and so no operations".to_owned()),
        Some(Err(reason)) => Some(format!("the paths of the document cannot be read: {reason}")),
        Some(Ok(paths)) => {
            out.paths(paths);
            let wrong = !paths.value.is_object();
            wrong
                .then(|| "the paths of the document are no object, and so there are no operations".to_owned())
        }
    };
    out.warnings.extend(nothing);
    out
}

impl<'a> Walk<'a> {
    fn paths(&mut self, paths: NodeRef<'a>) {
        for (path, item) in paths.members().filter(|(path, _)| !path.starts_with("x-")) {
            if self.looked > ALL_FIELDS {
                self.left_out += 1;
                continue;
            }
            match layers(item) {
                Ok(layers) => self.item(path, &layers),
                Err(reason) => self.broken("*", path, format!("the path cannot be read: {reason}")),
            }
        }
    }

    /// A path item: what stands beside its reference, then where that leads to. What is beside wins, since whoever wrote it
    /// there knew what the reference brings; nothing is lost by it that anybody misses.
    fn item(&mut self, path: &'a str, layers: &[NodeRef<'a>]) {
        let Some(item) = layers.first().copied() else { return };
        let has = |node: &&NodeRef<'a>| node.get("servers").is_some_and(|servers| !servers.value.is_null());
        let at = layers.iter().find(has).copied().unwrap_or(item);
        let mut seen: Vec<Method> = Vec::new();
        let mut unknown = HashSet::new();
        for node in layers {
            let nearer = seen.len();
            let fields = node.value.as_object().map_or(0, serde_json::Map::len);
            self.looked += 1 + fields.min(FIELDS);
            if fields > FIELDS {
                self.broken("*", path, format!("the path has more than {FIELDS} fields"));
                continue;
            }
            for (key, operation) in node.members() {
                let Some(method) = Method::parse(key) else {
                    self.unknown(path, key, operation, &mut unknown);
                    continue;
                };
                // What is null is not there.
                if operation.value.is_null() || seen.iter().take(nearer).any(|other| *other == method) {
                    continue;
                }
                if seen.contains(&method) {
                    let reason = "the path has this method twice; only one of them is read".to_owned();
                    self.broken(&method.to_string(), path, reason);
                } else if self.found.len() < FOUND {
                    seen.push(method);
                    self.found.push(Found { method, path, item, at, node: operation });
                } else {
                    self.left_out += 1;
                }
            }
        }
    }

    /// What is no method here, and perhaps one that OpenAPI 3.2 has. Said once for each.
    fn unknown(&mut self, path: &'a str, key: &str, value: NodeRef<'a>, said: &mut HashSet<String>) {
        let reason = || "the method is one of OpenAPI 3.2, which is not supported".to_owned();
        if key.eq_ignore_ascii_case("query") {
            if said.insert("QUERY".to_owned()) {
                self.broken("QUERY", path, reason());
            }
        } else if key == "additionalOperations" && self.broken.len() == FOUND {
            self.left_out += value.members().count();
        } else if key == "additionalOperations" {
            for (method, _) in value.members().take(FIELDS) {
                self.looked += 1;
                // It is shown, and it may be anything.
                let method: String = method.chars().filter(char::is_ascii_graphic).take(20).collect();
                if said.insert(method.clone()) {
                    self.broken(&method, path, reason());
                }
            }
        }
    }

    fn broken(&mut self, method: &str, path: &'a str, reason: String) {
        if self.broken.len() == FOUND {
            self.left_out += 1;
            return;
        }
        self.broken.push(Broken { before: self.found.len(), method: method.to_owned(), path, reason });
    }
}

/// A path item, then those that its references lead to.
fn layers(item: NodeRef<'_>) -> Result<Vec<NodeRef<'_>>, String> {
    let mut layers = Vec::new();
    let mut node = item;
    while let Some(reference) = node.reference() {
        layers.push(node);
        if layers.len() == HOPS {
            // Refuses it, in the words that there are for it.
            return item.resolved().map(|node| vec![node]);
        }
        node = node.bundle.find(node.document, reference)?;
    }
    if !node.value.is_object() {
        return Err("it is no object".to_owned());
    }
    layers.push(node);
    Ok(layers)
}

impl<'a> Found<'a> {
    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let tags = self.node.get("tags").into_iter().flat_map(NodeRef::elements);
        tags.take(TAGS).filter_map(|tag| tag.value.as_str()).filter(|tag| tag.len() <= NAME_BYTES)
    }

    /// The `operationId`.
    pub(crate) fn id(&self) -> Option<&'a str> {
        self.node.text("operationId").filter(|id| id.len() <= NAME_BYTES)
    }

    /// What the document says of the tool itself.
    pub(crate) fn extension(&self) -> Option<NodeRef<'a>> {
        self.extensions().next()
    }

    /// Whether the document does not want it to be a tool.
    pub(crate) fn is_disabled(&self) -> bool {
        self.extensions()
            .any(|extension| *extension.value == Value::Bool(false) || extension.flag("disabled"))
    }

    pub(crate) fn origin(&self) -> Origin<'a> {
        Origin {
            method: self.method,
            path: self.path,
            wish: self
                .extensions()
                .find_map(|extension| extension.text("name"))
                .filter(|name| name.len() <= NAME_BYTES),
            id: self.id(),
        }
    }

    fn extensions(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let node = self.node;
        ["x-mcp", "x-speakeasy-mcp"].into_iter().filter_map(move |key| node.get(key))
    }
}
