//! MCP servers as providers.

pub(crate) mod mcp;
