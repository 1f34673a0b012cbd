//! Batches: arrays of messages, which one revision has.

use super::{Method, Revision};
use crate::rpc::{Incoming, Message, RpcError};

/// Whether these messages may come together in `revision` (negotiated, declared or assumed). An
/// error refuses all of them: status 400, and a JSON-RPC error without an id.
pub fn check_batch(incoming: &Incoming<'_>, revision: Revision) -> Result<(), RpcError> {
    let Incoming::Batch(entries) = incoming else { return Ok(()) };
    if entries.is_empty() {
        return Err(RpcError::invalid_request("an empty batch has nothing to answer"));
    }
    if revision != Revision::V20250326 {
        return Err(RpcError::invalid_request(
            "batches exist in protocol revision 2025-03-26 only; send one message a request",
        ));
    }
    if entries.iter().any(initializes) && !entries.iter().all(initializes) {
        return Err(RpcError::invalid_request(
            "`initialize` comes alone, or in a batch of initializations only",
        ));
    }
    Ok(())
}

fn initializes(entry: &Result<Message<'_>, RpcError>) -> bool {
    match entry {
        Ok(Message::Request { method, .. }) => method == Method::Initialize.name(),
        _ => false,
    }
}
