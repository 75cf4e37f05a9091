//! The client side against servers that are played here, line by line and request by request.

mod answers;
mod client_requests;
mod duplex;
mod eras;
mod fake;
mod http;
mod input_required;
mod lists;
mod load;
mod orphaned;
mod subscriptions;
