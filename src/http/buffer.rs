//! The bytes of one connection, with the current message at a moving start.

/// Capacity an idle connection may keep; what a large body took goes back.
const RETAINED_BYTES_MAX: usize = 64 * 1024;

/// Bytes as they arrived. Positions handed out are relative to the current message, so they stay
/// true when the buffer is compacted.
#[derive(Debug, Default)]
pub(super) struct MessageBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl MessageBuffer {
    /// Where arriving bytes are to be appended. Consumed bytes are dropped first, so a message is
    /// moved at most once, however many came before it in the same read.
    pub(super) fn append_here(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        &mut self.bytes
    }

    /// The current message and what follows it.
    #[inline]
    pub(super) fn message(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The same, to be decoded in place.
    pub(super) fn message_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// Cuts off everything from `length` bytes into the current message.
    pub(super) fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.start + length);
    }

    /// Takes `length` bytes off the front. The last ones are cleared, not moved.
    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start >= self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            if self.bytes.capacity() > RETAINED_BYTES_MAX {
                self.bytes = Vec::new();
            }
        }
    }

    /// Whether nothing is buffered.
    pub(super) fn is_empty(&self) -> bool {
        self.message().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_follows_and_gives_back_what_was_large() {
        let mut buffer = MessageBuffer::default();
        buffer.append_here().extend_from_slice(b"firstsecond");
        buffer.consume(5);
        assert_eq!(buffer.message(), b"second");
        buffer.append_here().extend_from_slice(b"third");
        assert_eq!(buffer.message(), b"secondthird");
        buffer.consume(11);
        assert!(buffer.is_empty());
        assert!(buffer.append_here().capacity() > 0);
        buffer.append_here().resize(RETAINED_BYTES_MAX + 1, 0);
        buffer.consume(RETAINED_BYTES_MAX + 1);
        assert_eq!(buffer.append_here().capacity(), 0);
    }
}
