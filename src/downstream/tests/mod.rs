//! Calls against a real API on a real socket.

mod answers;
mod api;
mod connections;
mod counting;
mod credentials;
mod fetching;
mod price;
mod requests;
mod soap;
pub(super) mod support;
mod tls;
mod upstream;
