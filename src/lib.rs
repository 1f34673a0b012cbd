//! Ringway: HTTP and SOAP APIs, and upstream MCP servers, as governed tools for AI clients, over MCP.
//!
//! The rooms, from the floor up. Imports point down only; `tests/layers.rs` enforces it.
//!
//! ```text
//! cli                                           commands, one file each
//! server                                        cores, accept, connection loop, pipeline, routes
//! downstream                                    calling outside: rest, soap, upstream MCP, builtin; pools
//! mcp sessions streams identity governance      protocols and rules            (sans-IO)
//! import                                        API descriptions become entities (sans-IO)
//! catalog mapping                               entities, snapshot, views; schemas, translation
//! store audit telemetry settings                sled; audit log; metrics and logs; ringway.toml
//! rt http json rpc xml                          monoio, sockets, TLS; framing, raw JSON, JSON-RPC, XML
//! ```

pub mod audit;
pub mod catalog;
pub mod cli;
pub mod downstream;
pub mod governance;
pub mod http;
pub mod identity;
pub mod import;
pub mod json;
pub mod mapping;
pub mod mcp;
pub mod rpc;
pub mod rt;
#[cfg(test)]
mod scratch;
pub mod server;
pub mod sessions;
pub mod settings;
pub mod store;
pub mod streams;
pub mod telemetry;
pub mod xml;
