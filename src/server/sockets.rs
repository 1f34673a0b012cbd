//! The sockets that clients and operators connect to: passed by the service manager, or bound here.

use std::{io, net::SocketAddr};

use crate::{
    rt::{BoundListener, ListenAddress},
    settings::Settings,
};

/// The name of the admin socket among inherited ones (`FileDescriptorName=` of the socket unit).
const ADMIN_DESCRIPTOR_NAME: &str = "admin";

/// The sockets of both planes.
pub(super) struct Sockets {
    pub(super) runtime: Vec<BoundListener>,
    pub(super) runtime_address: SocketAddr,
    pub(super) admin: Vec<BoundListener>,
    /// The service manager made the admin socket, so it is not ours to remove.
    pub(super) admin_inherited: bool,
}

impl Sockets {
    /// Takes the service manager's sockets where it passed some, else binds. The clients' port comes
    /// first: it is the one that is most likely taken.
    ///
    /// # Errors
    /// Another process has an address, or a socket that was passed is of another kind.
    pub(super) fn bind(settings: &Settings, cores: usize) -> io::Result<Self> {
        let mut inherited = BoundListener::inherited()?;
        let admin_at = inherited.iter().position(|(name, _)| name == ADMIN_DESCRIPTOR_NAME);
        let admin = admin_at.map(|at| inherited.remove(at).1);
        let runtime = inherited.into_iter().next().map(|(_, listener)| listener);
        let (inherited, admin_inherited) = (runtime.is_some(), admin.is_some());
        let runtime = Self::runtime(settings, runtime, cores)?;
        let admin = Self::admin(settings, admin)?;
        let Some(ListenAddress::Tcp(runtime_address)) =
            runtime.first().map(BoundListener::local_address)
        else {
            let error = io::Error::other("the inherited runtime socket is not a TCP socket");
            return Err(error);
        };
        if inherited && runtime_address != settings.listen.runtime {
            tracing::warn!(
                address = %runtime_address, setting = %settings.listen.runtime,
                "the service manager made the clients' socket: its ListenStream= counts, and \
                 listen.runtime does not"
            );
        }
        Ok(Self { runtime, runtime_address, admin, admin_inherited })
    }

    /// One listener for each core: its own where this process binds, the same one where the service
    /// manager did.
    fn runtime(
        settings: &Settings,
        inherited: Option<BoundListener>,
        cores: usize,
    ) -> io::Result<Vec<BoundListener>> {
        let backlog = settings.listen.backlog;
        let mut listeners = Vec::with_capacity(cores);
        if let Some(first) = inherited {
            for _ in 1..cores {
                listeners.push(first.duplicate()?);
            }
            listeners.push(first);
            return Ok(listeners);
        }
        BoundListener::check_free(settings.listen.runtime)
            .map_err(|error| set_by(&error, "`listen.runtime`; of quickstart, `--listen`"))?;
        let first = BoundListener::bind(&ListenAddress::Tcp(settings.listen.runtime), backlog)?;
        // The port is the real one now, even where 0 was asked for.
        let address = first.local_address();
        listeners.push(first);
        for _ in 1..cores {
            listeners.push(BoundListener::bind(&address, backlog)?);
        }
        Ok(listeners)
    }

    fn admin(
        settings: &Settings,
        inherited: Option<BoundListener>,
    ) -> io::Result<Vec<BoundListener>> {
        let backlog = settings.listen.backlog;
        let socket = match inherited {
            Some(listener) => listener,
            None => BoundListener::bind(&ListenAddress::Unix(settings.admin_socket()), backlog)?,
        };
        let mut listeners = vec![socket];
        if let Some(address) = settings.listen.admin_address {
            BoundListener::check_free(address)
                .map_err(|error| set_by(&error, "`listen.admin_address`"))?;
            listeners.push(BoundListener::bind(&ListenAddress::Tcp(address), backlog)?);
        }
        Ok(listeners)
    }
}

/// An error about an address, and what sets the address.
fn set_by(error: &io::Error, setting: &str) -> io::Error {
    io::Error::new(error.kind(), format!("{error} ({setting})"))
}
