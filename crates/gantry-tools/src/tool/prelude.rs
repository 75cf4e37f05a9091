//! What every file that implements a [`Tool`] uses: the trait and its types, what arguments and results are derived
//! with, and the failures.

pub(crate) use super::{CHANGES, READS, Tool, default_path};
pub(crate) use crate::failure::{self, Result};
pub(crate) use crate::toolbox::PermittedCall;
pub(crate) use gantry_core::CallFailure;
pub(crate) use gantry_core::policy::Preflight;
pub(crate) use gantry_core::tool::{Annotations, ApprovalRule};
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use std::sync::Arc;
