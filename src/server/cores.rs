//! The life of a core: its tasks from start to stop.

use std::{rc::Rc, sync::atomic::Ordering, time::Duration};

use super::{
    connection::{self, Plane},
    connections::handshakes,
    core::Core,
    housekeeping,
    message::CoreMessage,
    note,
    upstreams::{self, Round},
    write_behind,
};
use crate::{
    rpc::{RpcError, code},
    rt::{self, BoundListener, InboxReceiver, ListenAddress, ServerTls},
};

/// The sockets a core serves.
pub(crate) struct Sockets {
    pub(crate) runtime: BoundListener,
    pub(crate) admin: Vec<BoundListener>,
    pub(crate) tls: Option<ServerTls>,
}

/// How long the tasks left over after the grace time may take to go.
const END_WITHIN: Duration = Duration::from_secs(1);
/// How long upstream servers have, all together, to let their sessions go when the process ends.
const GOODBYES_WITHIN: Duration = Duration::from_secs(2);

/// Runs a core until it is told to stop and has finished what it could in the grace time.
pub(crate) async fn run(core: Rc<Core>, sockets: Sockets, inbox: InboxReceiver<CoreMessage>) {
    core.shared.core_runs(rt::driver_name());
    answer_lost_calls(&core);
    rt::spawn(write_behind::run(core.clone()));
    rt::spawn(housekeeping::run(core.clone()));
    if core.index == 0 {
        rt::spawn(housekeeping::sweep_stored(core.clone()));
        rt::spawn(upstreams::run(Round::of(&core, Rc::new(core.upstreams.clone()))));
    }
    rt::spawn(read_inbox(core.clone(), inbox));
    for admin in sockets.admin {
        let plane = match admin.local_address() {
            ListenAddress::Unix(_) => Plane::Admin { user: None },
            ListenAddress::Tcp(_) => Plane::AdminAddress,
        };
        rt::spawn(listen(core.clone(), plane, admin, None));
    }
    rt::spawn(listen(core.clone(), Plane::Runtime, sockets.runtime, sockets.tls));
    core.stop.stopped().await;
    let grace = Duration::from_millis(core.shared.settings.runtime.shutdown_grace_ms);
    let finished = async {
        core.connections.all_closed().await;
        core.all_calls_over().await;
    };
    if rt::timeout(grace, finished).await.is_err() {
        let open = core.connections.open();
        tracing::warn!(core = core.index, open, "not all was finished in the grace time");
    }
    core.write_behind.flush(&core);
    if core.shared.core_is_done()
        && rt::timeout(GOODBYES_WITHIN, core.upstreams.end_all()).await.is_err()
    {
        tracing::info!("upstream servers were not all told in time that their sessions are over");
    }
    rt::end_tasks(END_WITHIN).await;
    core.write_behind.flush(&core);
}

async fn listen(core: Rc<Core>, plane: Plane, listener: BoundListener, tls: Option<ServerTls>) {
    let (stop, serving) = (core.stop.clone(), core.clone());
    let served = listener
        .serve_within(handshakes(core.shared.connections_max), tls, stop, move |accepted| {
            connection::serve(serving.clone(), plane, accepted)
        })
        .await;
    if let Err(error) = served {
        tracing::error!(core = core.index, %error, "a listener failed; the core stops accepting");
        core.shared.deaf.store(true, Ordering::Relaxed);
    }
}

pub(super) async fn read_inbox(core: Rc<Core>, mut inbox: InboxReceiver<CoreMessage>) {
    let mut messages = Vec::new();
    while inbox.drain(&mut messages).await {
        for message in messages.drain(..) {
            core.handle(message);
        }
    }
}

/// Calls the last process did not finish are answered with an error on their streams, so that a
/// client that resumes learns what became of them.
fn answer_lost_calls(core: &Rc<Core>) {
    let lost: Vec<_> = {
        let streams = core.streams.borrow();
        streams.unfinished().map(|stream| (stream.id, stream.note.to_vec())).collect()
    };
    for (stream, note) in lost {
        let error = RpcError {
            code: code::INTERNAL_ERROR,
            message: "The server was restarted while this call ran. It is not known whether the \
                      call took effect."
                .into(),
            data: None,
        };
        if let Some(payload) = note::refusal(&note, &error) {
            core.publish(stream, payload);
        }
        core.finish_stream_here(stream);
    }
}
