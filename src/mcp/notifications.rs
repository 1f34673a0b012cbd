//! Messages the server sends on its own.

use crate::rpc;

/// A running request still runs. `progress` rises with the seconds; there is no total to tell.
/// `token` is the client's, as JSON text.
pub fn progress(token: &str, seconds: u64) -> Vec<u8> {
    let params = format!(
        r#"{{"progressToken":{token},"progress":{seconds},"message":"running for {seconds} s"}}"#
    );
    let mut payload = Vec::new();
    rpc::write_notification(&mut payload, "notifications/progress", Some(params.as_bytes()));
    payload
}
