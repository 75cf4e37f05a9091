//! End-to-end tests: the built program, as a process, through its doors. One binary; modules by surface.

mod cli;
mod load;
