//! Finding the operations of a document.

use crate::openapi::document::NodeRef;
use crate::openapi::import::Import;
use crate::openapi::import::names::Origin;
use crate::openapi::operation::Method;
use serde_json::Value;

// Limit: operations that are found. All of them get names, so this is more than may become tools.
const FOUND: usize = 100_000;
// Limit: steps to find them. Many paths may refer to the same path item.
const STEPS: u64 = 20_000_000;
// Limit: bytes of an `operationId`, a tag or a name in `x-mcp`. A longer one is ignored.
const NAME_BYTES: usize = 1000;
// Limit: tags of one operation.
const TAGS: usize = 100;

#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationRef<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) item: NodeRef<'a>,
    pub(crate) node: NodeRef<'a>,
}

/// Finds the operations of a document, in its order; `webhooks` and callbacks are requests of the API and not among them.
/// Adds skipped operations, warnings and the total to the import. Returns also how many operations are beyond the limit.
pub(crate) fn find<'a>(root: NodeRef<'a>, out: &mut Import) -> (Vec<OperationRef<'a>>, usize) {
    let mut found = Vec::new();
    let mut left_out = 0;
    root.bundle.set_steps(STEPS);
    match root.get("paths").map(NodeRef::resolved) {
        None => out.warnings.push("there are no paths in the document, and so no operations".to_owned()),
        Some(Err(reason)) => out.warnings.push(format!("the paths of the document cannot be read: {reason}")),
        Some(Ok(paths)) if !paths.value.is_object() => out
            .warnings
            .push("the paths of the document are no object, and so there are no operations".to_owned()),
        Some(Ok(paths)) => {
            for (path, item) in paths.members().filter(|(path, _)| !path.starts_with("x-")) {
                left_out += of_path(path, item, &mut found, out);
            }
        }
    }
    if root.bundle.is_exhausted() {
        out.warnings
            .push("the paths of the document take too many steps to read; some are left out".to_owned());
    }
    root.bundle.set_steps(u64::MAX);
    out.total += found.len() + left_out;
    (found, left_out)
}

/// Finds the operations of a path. Returns how many of them are beyond the limit.
fn of_path<'a>(
    path: &'a str,
    item: NodeRef<'a>,
    found: &mut Vec<OperationRef<'a>>,
    out: &mut Import,
) -> usize {
    let mut left_out = 0;
    let mut skip = |method: String, reason: &str| {
        out.total += 1;
        out.skip(method, path, reason);
    };
    let item = item
        .resolved()
        .and_then(|item| if item.value.is_object() { Ok(item) } else { Err("it is no object".to_owned()) });
    let item = match item {
        Ok(item) => item,
        Err(reason) => {
            skip("*".to_owned(), &format!("the path cannot be read: {reason}"));
            return 0;
        }
    };
    let of_3_2 = "the method is one of OpenAPI 3.2, which is not supported";
    let mut seen: Vec<Method> = Vec::new();
    for (key, node) in item.members() {
        match Method::parse(key) {
            None if key.eq_ignore_ascii_case("query") => skip("QUERY".to_owned(), of_3_2),
            None if key == "additionalOperations" => node.members().for_each(|(method, _)| {
                skip(method.chars().filter(char::is_ascii_graphic).take(20).collect(), of_3_2);
            }),
            None => {}
            Some(_) if node.value.is_null() => {}
            Some(method) if seen.contains(&method) => {
                skip(method.to_string(), "the path has this method twice; only one of them is read");
            }
            Some(_) if found.len() == FOUND => left_out += 1,
            Some(method) => {
                seen.push(method);
                found.push(OperationRef { method, path, item, node });
            }
        }
    }
    left_out
}

impl<'a> OperationRef<'a> {
    pub(crate) fn tags(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let tags = self.node.get("tags").into_iter().flat_map(NodeRef::elements);
        tags.take(TAGS).filter_map(|tag| tag.value.as_str()).filter(|tag| tag.len() <= NAME_BYTES)
    }

    pub(crate) fn id(&self) -> Option<&'a str> {
        self.node.text("operationId").filter(|id| id.len() <= NAME_BYTES)
    }

    /// The extension about the tool.
    pub(crate) fn extension(&self) -> Option<NodeRef<'a>> {
        self.extensions().next()
    }

    /// Whether the document says that this is to be no tool.
    pub(crate) fn is_disabled(&self) -> bool {
        self.extensions()
            .any(|extension| *extension.value == Value::Bool(false) || extension.flag("disabled"))
    }

    pub(crate) fn origin(&self) -> Origin<'a> {
        let given = self.extensions().find_map(|extension| extension.text("name"));
        Origin {
            method: self.method,
            path: self.path,
            given: given.filter(|name| name.len() <= NAME_BYTES),
            id: self.id(),
        }
    }

    fn extensions(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let node = self.node;
        ["x-mcp", "x-speakeasy-mcp"].into_iter().filter_map(move |key| node.get(key))
    }
}
