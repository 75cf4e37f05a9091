//! Limits of documents, which are untrusted.

/// Bytes of one document. The largest public ones have some 50 MB, and 80 MB with every reference written out.
pub(crate) const DOCUMENT_BYTES: usize = 80 << 20;
/// Bytes of all documents of one bundle.
pub(crate) const BUNDLE_BYTES: usize = 96 << 20;
/// Documents of one bundle.
pub(crate) const DOCUMENTS: usize = 200;
/// Values in all documents of one bundle. The largest public ones have 1.5 million; each takes up to 250 bytes.
pub(crate) const BUNDLE_NODES: usize = 3_000_000;
/// Levels that YAML may be nested. JSON has about the same limit in its reader.
pub(crate) const DEPTH: usize = 128;
/// Addresses of other documents that are read in one document, wanted or refused.
pub(crate) const ADDRESSES: usize = 10_000;
/// What the aliases of one YAML document may copy: about 200,000 values.
pub(crate) const COPIED_MIB: usize = 12;
/// References that lead to references before a value is found.
pub(crate) const HOPS: usize = 32;
/// Operations of one document that become tools. The largest public ones have 22,000.
pub(crate) const OPERATIONS: usize = 25_000;
/// Parameters of one operation.
pub(crate) const PARAMETERS: usize = 1000;
/// Skipped operations that are listed; the rest is counted.
pub(crate) const SKIPPED_SHOWN: usize = 10_000;
/// Characters of a tool's description.
pub(crate) const DESCRIPTION_CHARS: usize = 1024;
/// Characters of the description of a property.
pub(crate) const PROPERTY_DESCRIPTION_CHARS: usize = 300;
/// Nodes of an input schema.
pub(crate) const INPUT_NODES: usize = 5000;
/// Bytes of an input schema as text.
pub(crate) const INPUT_BYTES: usize = 128 * 1024;
/// Limits of an output schema, which helps a model less than an input schema and costs it as many tokens.
pub(crate) const OUTPUT_NODES: usize = 400;
pub(crate) const OUTPUT_BYTES: usize = 4 * 1024;
/// Bytes of a request body that is built from arguments.
pub(crate) const BODY_BYTES: usize = 16 << 20;
/// Bytes of the path and query of a request.
pub(crate) const ADDRESS_BYTES: usize = 16 * 1024;
