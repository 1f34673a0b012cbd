//! The load's event loop: one `io_uring` for all connections, at most one send and one receive in
//! flight on each. A send that goes out whole posts no completion, so a request costs one wake-up
//! at most, and all that happens in one turn goes to the kernel in one call.
//!
//! It stands apart from `ringway::rt` on purpose: the load must cost less than what it measures,
//! and a fault of the runtime must not hide by being on both sides.
#![expect(unsafe_code, reason = "submitting to the ring; the buffers are owned by it")]

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

/// The largest request or API answer that fits a connection's send buffer.
pub(crate) const SEND_BYTES_MAX: usize = 2048;

const KIND_BITS: u32 = 2;

pub(crate) enum Event {
    /// So many bytes arrived; `Ring::received` has them. 0: the peer is done.
    Received {
        slot: usize,
        bytes: usize,
    },
    /// A send or receive failed.
    Failed {
        slot: usize,
        error: io::Error,
    },
    Accepted(TcpStream),
}

/// A connection and the memory the kernel reads and writes for it. Neither buffer is moved,
/// resized or freed while the ring lives: an operation may be in flight at any time.
struct Slot {
    socket: TcpStream,
    outgoing: Box<[u8]>,
    incoming: Box<[u8]>,
}

pub(crate) struct Ring {
    kernel: IoUring,
    slots: Vec<Slot>,
    receive_bytes: usize,
    listener: Option<TcpListener>,
}

#[derive(Clone, Copy)]
enum Kind {
    Send = 0,
    Receive = 1,
    Accept = 2,
}

fn user_data(slot: usize, kind: Kind) -> u64 {
    (slot as u64) << KIND_BITS | kind as u64
}

impl Ring {
    /// For about so many connections, each with so much room to receive into.
    pub(crate) fn new(connections: usize, receive_bytes: usize) -> io::Result<Self> {
        let size = |count: usize, low: u32, high: u32| {
            u32::try_from(count).unwrap_or(high).next_power_of_two().clamp(low, high)
        };
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_coop_taskrun();
        builder.setup_cqsize(size(connections * 4, 4096, 65_536));
        let kernel = builder.build(size(connections * 2, 64, 4096))?;
        Ok(Self { kernel, slots: Vec::new(), receive_bytes, listener: None })
    }

    pub(crate) fn add(&mut self, socket: TcpStream) -> usize {
        self.slots.push(Slot {
            socket,
            outgoing: vec![0; SEND_BYTES_MAX].into(),
            incoming: vec![0; self.receive_bytes].into(),
        });
        self.slots.len() - 1
    }

    /// Accepts connections from here on; each comes as an event.
    pub(crate) fn listen(&mut self, listener: TcpListener) {
        self.listener = Some(listener);
        self.accept();
    }

    fn accept(&mut self) {
        if let Some(listener) = &self.listener {
            let descriptor = types::Fd(listener.as_raw_fd());
            let entry = opcode::Accept::new(descriptor, std::ptr::null_mut(), std::ptr::null_mut())
                .flags(libc::SOCK_CLOEXEC)
                .build()
                .user_data(user_data(0, Kind::Accept));
            self.push(&entry);
        }
    }

    /// Sends all of `bytes`, at most `SEND_BYTES_MAX`. The send before must have been answered.
    pub(crate) fn send(&mut self, slot: usize, bytes: &[u8]) {
        let Slot { socket, outgoing, .. } = &mut self.slots[slot];
        outgoing[..bytes.len()].copy_from_slice(bytes);
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        let entry = opcode::Send::new(types::Fd(socket.as_raw_fd()), outgoing.as_ptr(), length)
            .flags(libc::MSG_WAITALL | libc::MSG_NOSIGNAL)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(user_data(slot, Kind::Send));
        self.push(&entry);
    }

    pub(crate) fn receive(&mut self, slot: usize) {
        let Slot { socket, incoming, .. } = &mut self.slots[slot];
        let length = u32::try_from(incoming.len()).unwrap_or(0);
        let entry = opcode::Recv::new(types::Fd(socket.as_raw_fd()), incoming.as_mut_ptr(), length)
            .build()
            .user_data(user_data(slot, Kind::Receive));
        self.push(&entry);
    }

    /// What `Event::Received` told of, until the next `receive` on that slot.
    pub(crate) fn received(&self, slot: usize, bytes: usize) -> &[u8] {
        &self.slots[slot].incoming[..bytes]
    }

    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry points into a slot's buffers, which live as long as the ring (see
        // `Slot` and `Drop`), or holds no pointer at all.
        while unsafe { self.kernel.submission().push(entry) }.is_err() {
            if self.kernel.submit().is_err() {
                return;
            }
        }
    }

    /// Waits for something to happen, at most `patience`; gives all that has.
    pub(crate) fn wait(&mut self, patience: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        events.clear();
        let timespec = types::Timespec::from(patience);
        let arguments = types::SubmitArgs::new().timespec(&timespec);
        match self.kernel.submitter().submit_with_args(1, &arguments) {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::ETIME | libc::EINTR | libc::EBUSY)
                ) => {}
            Err(error) => return Err(error),
        }
        let mut accepted = false;
        events.extend(self.kernel.completion().filter_map(|completion: cqueue::Entry| {
            let slot = (completion.user_data() >> KIND_BITS) as usize;
            let kind = completion.user_data() & ((1 << KIND_BITS) - 1);
            let result = completion.result();
            accepted |= kind == Kind::Accept as u64;
            match usize::try_from(result) {
                Err(_) if kind == Kind::Accept as u64 => None,
                Err(_) => {
                    Some(Event::Failed { slot, error: io::Error::from_raw_os_error(-result) })
                }
                // SAFETY: the kernel has just made this descriptor for us alone.
                Ok(_) if kind == Kind::Accept as u64 => {
                    Some(Event::Accepted(unsafe { TcpStream::from_raw_fd(result) }))
                }
                // Only a short send posts a completion.
                Ok(_) if kind == Kind::Send as u64 => {
                    Some(Event::Failed { slot, error: io::ErrorKind::WriteZero.into() })
                }
                Ok(bytes) => Some(Event::Received { slot, bytes }),
            }
        }));
        if accepted {
            self.accept();
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Closing a ring cancels what is in flight, but not at once: the memory must outlive that.
        // A run makes a handful of rings, so what is left behind is bounded.
        for slot in self.slots.drain(..) {
            drop(slot.socket);
            std::mem::forget(slot.outgoing);
            std::mem::forget(slot.incoming);
        }
    }
}
