//! End-to-end tests: the built program, as a process, through its doors. One binary; modules by surface.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start processes, and a test that cannot go on has to fail loudly"
)]

mod agents;
mod approvals;
mod cli;
mod code;
mod config;
mod config_commands;
mod crash;
mod data_folder;
mod develop;
mod docs;
mod doors;
mod eras;
mod git;
mod http_front;
mod load;
mod mcp_sdks;
mod mcp_wire;
mod names;
mod page;
mod passthrough;
mod pipeline;
mod policy;
mod policy_tools;
mod projects;
mod queues;
mod real_servers;
mod reload;
mod rest;
mod results;
mod search;
mod servers_config;
mod specs;
mod switching;
mod toolsets;
mod upstream;
mod web;
mod workspace;
