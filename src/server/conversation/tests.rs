//! Both sides of what is said, with a client made of outlets and a server made of this file.

use std::{rc::Rc, sync::Arc, time::Duration};

use super::*;
use crate::{
    downstream::Client as _,
    identity::Caller,
    json::OwnedRaw,
    mcp::{AskMethod, Envelope},
    rpc::{Reply, ResultBody, RpcError},
    server::{
        fixture::{Cores, Request, on_cores, on_cores_with},
        outlet::{OpenOutlet, Purpose},
        running::{Answered, Single},
        session,
    },
    settings::Settings,
    streams::StreamKind,
};

mod asked;
mod suspended;
mod told;

type Can = ClientCapabilities;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",
    "arguments":{"x":1},"_meta":{"progressToken":"t"}}}"#;

fn raw(text: &str) -> OwnedRaw {
    OwnedRaw::parse(text.as_bytes()).unwrap()
}

fn elicitation() -> Ask {
    Ask { method: AskMethod::Elicitation, params: raw(r#"{"message":"Sure?"}"#) }
}

fn roots() -> Ask {
    Ask { method: AskMethod::Roots, params: raw("{}") }
}

fn progress(progress: &str) -> Told {
    Told::Progress(raw(&format!(r#"{{"progress":{progress}}}"#)))
}

fn log(level: LogLevel) -> Told {
    Told::Message(level, raw(&format!(r#"{{"level":"{}","data":1}}"#, level.name())))
}

/// What a client got, message by message.
fn got(outlet: &OpenOutlet) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(frame) = outlet.pop() {
        let text = String::from_utf8_lossy(&frame).into_owned();
        all.extend(text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned));
    }
    all
}

/// Lets everything happen that waits for nothing.
async fn settle() {
    for _ in 0..5 {
        rt::sleep(Duration::from_millis(2)).await;
    }
}

/// A conversation of a session, and its way.
fn legacy(core: &Rc<Core>, session: &Arc<Session>) -> (Rc<Conversation>, Rc<Way>) {
    let request = Request {
        tenant: session.tenant(),
        caller: Caller::Open,
        revision: session.revision(),
        session: Some(session),
        envelope: None,
        text: CALL,
    };
    request.on(core, |asking, message| (Conversation::of(asking, message), Rc::clone(asking.way())))
}

fn open_outlet(core: &Rc<Core>, way: &Way) -> OpenOutlet {
    let outlet = core.outlets.open(Purpose::Answer);
    way.open(Sink::Outlet(Rc::clone(&outlet)));
    outlet
}

/// Runs both to their ends.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    match rt::race(&mut first, &mut second).await {
        rt::Either::Left(one) => (one, second.await),
        rt::Either::Right(other) => (first.await, other),
    }
}
