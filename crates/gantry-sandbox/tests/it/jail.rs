//! Jobs in the jail: what they get, what they cannot get at, what they may take, and how they end.

mod basics;
mod cell;
mod end;
mod levels;
mod limits;
mod memory;
mod protected;
mod races;
mod users;
mod walls;
mod yard;
