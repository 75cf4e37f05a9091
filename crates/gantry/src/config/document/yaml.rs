//! YAML into a located tree.

use gantry_core::yaml::{self, Dialect};

use super::{Entry, MAX_DEPTH, Node, Syntax, Value};

pub(in crate::config) use yaml::number;

pub(super) fn parse(text: &str) -> Result<Node, Syntax> {
    // Limit: the size of a configuration file bounds its values; copies are bounded here.
    let options =
        yaml::Options { dialect: Dialect::Strict, depth: MAX_DEPTH, values: usize::MAX, copied_mib: 1 };
    let (root, _) = yaml::parse(text, options).map_err(|error| Syntax {
        line: error.place.line,
        column: error.place.column,
        message: error.message,
    })?;
    Ok(node(root))
}

fn node(node: yaml::Node) -> Node {
    let value = match node.value {
        yaml::Value::Null => Value::Null,
        yaml::Value::Bool(flag) => Value::Flag(flag),
        yaml::Value::Number(number) => Value::Number(number),
        yaml::Value::Text(text) => Value::text(text),
        yaml::Value::List(items) => Value::List(items.into_iter().map(self::node).collect()),
        yaml::Value::Map(entries) => Value::Map(entries.into_iter().map(entry).collect()),
    };
    Node { value, line: node.place.line }
}

fn entry(entry: yaml::Entry) -> Entry {
    Entry { key: entry.key, line: entry.place.line, node: node(entry.node) }
}
