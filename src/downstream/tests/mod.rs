//! Calls against a real API on a real socket.

mod api;
mod rest;
