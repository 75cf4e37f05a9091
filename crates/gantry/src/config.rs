//! The configuration: finding it, reading it, refusing it with every problem at its line.
//!
//! A file is parsed into a tree that knows its lines (`document`). A serde `Deserializer` over the tree (`de`) reads it into
//! the option structs of the crates that use them, composed in `schema`; what no type says is checked in `resolve`. Nothing
//! is ignored: an unknown key, a key of a later version, an unset variable are errors, because what was ignored may have been
//! a rule. Agents and tools may have files of their own beside it (`definition_files`).

mod accepted;
mod compose;
mod de;
mod definition_files;
mod document;
mod documents;
mod dotenv;
mod error;
mod expand;
mod find;
mod key_path;
mod launch;
mod ledger;
mod load;
mod resolve;
mod review;
mod schema;
mod shapes;
mod show;
mod suggest;
#[cfg(test)]
mod tests;
mod watch;

pub use accepted::Accepted;
pub use dotenv::Env;
pub use error::{Error, Location, Problem};
pub use find::Source;
pub use load::Loaded;
pub use schema::{Api, ApiId, Builtin, Config, MAIN_PROJECT, McpServer, Places, Project, RestTool};
pub use shapes::{json_schema, unused_keys};
pub use show::{Setting, settings};
pub use watch::FileSnapshot;

/// A file that uses every key of this version.
pub const EXAMPLE: &str = include_str!("config/example.yaml");
