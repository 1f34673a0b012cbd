//! Calls against a real API on a real socket.

mod answers;
mod api;
mod connections;
mod counting;
mod fetching;
mod price;
mod requests;
mod support;
mod tls;
