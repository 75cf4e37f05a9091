//! A call before it is judged: the request, and the tool and arguments that it means.

use crate::approval::Resumed;
use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal};
use crate::json::{self, Canonical};
use crate::limits::{ARGUMENT_BYTES, IDEMPOTENCY_KEY_BYTES, RECORDED_ARGUMENT_BYTES};
use crate::tool::Tool;
use crate::toolset::Toolset;
use std::sync::Arc;
use std::time::Duration;

words! {
    #[derive(Default, PartialOrd, Ord)]
    pub enum Priority {
        Low = "low",
        #[default]
        Normal = "normal",
        High = "high",
    }
}

/// A call as an entry point receives it.
#[derive(Debug, Clone, Default)]
pub struct CallRequest {
    pub tool: String,
    /// The arguments as JSON text; none means `{}`.
    pub arguments: Option<Arc<str>>,
    pub priority: Priority,
    /// A repeated call with the same key gets the first result.
    pub idempotency_key: Option<String>,
    /// A time limit below the configured one.
    pub timeout: Option<Duration>,
    /// The person at the keyboard who approves this call in advance, if there is one.
    pub approver: Option<Arc<str>>,
    /// Whether the result is kept, so that a client can fetch it by the call's id later.
    pub keep_result: bool,
    /// The approval under which a held call goes on.
    pub resumed: Option<Arc<Resumed>>,
}

/// A call whose tool and arguments are known: the tool is in the caller's toolset, and the arguments are one JSON
/// object that every reader reads alike.
#[derive(Debug)]
pub struct ResolvedCall {
    tool: Arc<Tool>,
    arguments: Arc<str>,
    canonical: Canonical,
    digest: Digest,
    recorded: Arc<str>,
}

impl ResolvedCall {
    /// Finds the tool and reads the arguments.
    ///
    /// # Errors
    /// The tool is not in the toolset, or the arguments are not one unambiguous JSON object.
    pub fn resolve(toolset: &Toolset, request: &CallRequest) -> Result<Self, Refusal> {
        let tool = toolset.find(&request.tool)?;
        Self::of(Arc::clone(tool), request)
    }

    /// Reads the arguments for a tool that was found already.
    ///
    /// # Errors
    /// The arguments are not one unambiguous JSON object, or the idempotency key is too long.
    pub fn of(tool: Arc<Tool>, request: &CallRequest) -> Result<Self, Refusal> {
        let invalid = |message: String| Refusal::new(ErrorCode::InvalidArguments, message);
        let arguments = request.arguments.clone().unwrap_or_else(|| "{}".into());
        if arguments.len() > ARGUMENT_BYTES {
            return Err(invalid(format!(
                "the arguments have {} bytes; at most {ARGUMENT_BYTES} are taken",
                arguments.len()
            )));
        }
        let key_bytes = request.idempotency_key.as_ref().map_or(1, String::len);
        if !(1..=IDEMPOTENCY_KEY_BYTES).contains(&key_bytes) {
            return Err(invalid(format!("an idempotency key has 1 to {IDEMPOTENCY_KEY_BYTES} bytes")));
        }
        let canonical = json::canonical(&arguments)
            .map_err(|error| invalid(format!("the arguments are unusable: {error}")))?;
        if !canonical.text().starts_with('{') {
            return Err(invalid("the arguments must be a JSON object such as {\"path\": \"a.txt\"}".into()));
        }
        let recorded = crate::redact::redacted(&canonical, RECORDED_ARGUMENT_BYTES).into();
        let digest = Digest::of(canonical.text().as_bytes());
        Ok(Self { tool, arguments, canonical, digest, recorded })
    }

    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// The arguments as they were sent.
    pub fn arguments(&self) -> &Arc<str> {
        &self.arguments
    }

    /// The digest of the canonical arguments.
    pub fn arguments_digest(&self) -> Digest {
        self.digest
    }

    /// The arguments as the log and the ledger may show them.
    pub fn recorded(&self) -> &Arc<str> {
        &self.recorded
    }

    pub(crate) fn canonical(&self) -> &Canonical {
        &self.canonical
    }
}
