//! Asking MCP servers over real sockets, each scripted by hand.

mod beginning;
mod faults;
mod hearing;
mod passing;
mod script;
mod sessions;
