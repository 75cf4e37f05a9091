//! The tools for developers through the built program: `run_tests`, `format_code`, `install_package`, with real
//! compilers, interpreters and package managers in the sandbox.

#![cfg(test)]

mod archive;
mod caches;
mod format;
mod install;
mod registry;
mod suites;
mod yard;
