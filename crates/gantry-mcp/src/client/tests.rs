//! The client side against servers that are played here, line by line and request by request.

mod abandoned;
mod answers;
mod duplex;
mod eras;
mod fake;
mod http;
mod listen;
mod lists;
mod load;
mod questions;
mod rounds;
