//! The server as its users meet it: the real binary, driven from outside over sockets, signals and
//! the command line. What the official clients and `tests/clients/wire.py` show is not repeated.
//!
//! Each test starts a process of its own with its own data directory and a port the system chose,
//! and waits for events (log lines, answers, closed sockets), not for time to pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::format_push_string,
    reason = "a test that cannot go on fails, and need not be fast; some of these clippy finds nowhere"
)]

mod harness;

mod announce;
mod audited;
mod budgets;
mod changes;
mod commands;
mod conversation;
mod cores;
mod correlation;
mod credentials;
mod described;
mod dialects;
mod discovery;
mod egress;
mod explain;
mod facade;
mod faults;
mod governed;
mod hostile_upstreams;
mod importing;
mod keys;
mod large;
mod lifecycle;
mod limits;
mod listening;
mod long;
mod media;
mod modern;
mod modern_hostile;
mod names;
mod operators;
mod persistence;
mod policies;
mod prompts;
mod recorded;
mod recovery;
mod rest;
mod results;
mod retired;
mod sealed;
mod searching;
mod sessions;
mod soap;
mod standing;
mod streams;
mod tls;
mod upstream;
mod upstream_asks;
mod upstream_faults;
mod upstream_pins;
mod upstream_shared;
mod upstream_slow;
mod upstreams;
mod xml_bodies;
