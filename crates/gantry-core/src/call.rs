//! A call before it is judged: what was asked for, and the tool and arguments it turned out to mean.

use crate::approval::Resumed;
use crate::digest::Digest;
use crate::error::{ErrorCode, Refusal};
use crate::json::{self, Canonical};
use crate::limits::{ARGUMENT_BYTES, IDEMPOTENCY_KEY_BYTES, RECORDED_ARGUMENT_BYTES};
use crate::tool::Tool;
use crate::toolset::Toolset;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How urgent a call is where calls have to wait.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// After everything else.
    Low,
    /// The usual.
    #[default]
    Normal,
    /// Before everything else.
    High,
}

/// What a door asks for.
#[derive(Debug, Clone, Default)]
pub struct CallRequest {
    /// The tool, by any spelling.
    pub tool: String,
    /// The arguments as JSON text; nothing means `{}`.
    pub arguments: Option<Arc<str>>,
    /// How urgent it is.
    pub priority: Priority,
    /// A key under which a repetition gets the first answer.
    pub idempotency_key: Option<String>,
    /// A time limit below the configured one.
    pub timeout: Option<Duration>,
    /// The person at the keyboard who says yes to whatever this call would ask, if there is one.
    pub approver: Option<Arc<str>>,
    /// Whether the result is kept for whoever asks for it by the call's id later.
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
        if request
            .idempotency_key
            .as_ref()
            .is_some_and(|key| key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES)
        {
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

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        &self.tool
    }

    /// The arguments as they were sent.
    #[must_use]
    pub fn arguments(&self) -> &Arc<str> {
        &self.arguments
    }

    /// The digest of the canonical arguments.
    #[must_use]
    pub fn arguments_digest(&self) -> Digest {
        self.digest
    }

    /// The arguments as the log and the ledger may show them.
    #[must_use]
    pub fn recorded(&self) -> &Arc<str> {
        &self.recorded
    }

    /// The arguments in canonical form.
    #[must_use]
    pub fn canonical(&self) -> &Canonical {
        &self.canonical
    }
}
