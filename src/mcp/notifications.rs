//! Messages the server sends on its own: finished, since they have no parameters.

/// The tools a client sees are others now.
pub const TOOLS_LIST_CHANGED: &[u8] =
    br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
