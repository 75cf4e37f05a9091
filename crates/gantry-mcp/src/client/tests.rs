//! The client side against servers that are played here, line by line and request by request.

mod duplex;
mod eras;
mod fake;
mod http;
mod lists;
mod questions;
mod rounds;
