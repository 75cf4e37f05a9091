//! Programs that tools run, through the built program: `run_code`, `shell_exec`, and everything that code tries against them.

#![cfg(test)]

mod ends;
mod escapes;
mod limits;
mod network;
mod none;
mod owners;
mod privileges;
mod rules;
mod run;
mod schemas;
mod sealed;
mod shell;
mod site;
mod stops;
