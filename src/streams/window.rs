//! A stream's last events: a gapless run of positions, bounded in count, bytes and age.

use std::collections::VecDeque;
use std::sync::Arc;

/// What a retained event costs beside its bytes: its places in the window and in the table's
/// order, the frame's header and reference counts, and what their allocations keep free. Measured at small events.
pub(super) const EVENT_OVERHEAD_BYTES: usize = 320;

/// Bounds of one window.
#[derive(Clone, Copy, Debug)]
pub struct WindowLimits {
    /// Most events.
    pub events_max: usize,
    /// Most bytes, overhead included.
    pub bytes_max: usize,
    /// Longest time an event is kept, in milliseconds.
    pub age_ms_max: u64,
}

/// The newest events of a stream. See the room's invariants.
#[derive(Clone, Debug)]
pub struct Window {
    entries: VecDeque<Entry>,
    /// Position of the front entry, or of the next event where there is none.
    first_position: u64,
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Entry {
    at_ms: u64,
    frame: Arc<Vec<u8>>,
}

impl Window {
    /// An empty window whose next event gets `next_position`.
    pub fn new(next_position: u64) -> Self {
        Self { entries: VecDeque::new(), first_position: next_position, bytes: 0 }
    }

    /// The position the next event gets.
    pub fn next_position(&self) -> u64 {
        self.first_position.saturating_add(self.entries.len() as u64)
    }

    /// The position of the oldest event kept, or of the next one where none is.
    pub fn first_position(&self) -> u64 {
        self.first_position
    }

    /// Events kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no event is kept.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes kept, overhead included.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the next event in and lets the oldest go while a limit is exceeded. An event that is
    /// over the limit by itself leaves the window empty.
    pub fn push(&mut self, frame: Arc<Vec<u8>>, at_ms: u64, limits: &WindowLimits) {
        self.bytes += cost(&frame);
        self.entries.push_back(Entry { at_ms, frame });
        while self.entries.len() > limits.events_max || self.bytes > limits.bytes_max {
            self.pop();
        }
    }

    /// Counts an event that is not kept. Events before it go: a window has no gaps.
    pub fn pass(&mut self) {
        let next = self.next_position();
        self.restart(next.saturating_add(1));
    }

    /// Empties the window; the next event gets `next_position`.
    pub fn restart(&mut self, next_position: u64) {
        *self = Self::new(next_position);
    }

    /// Lets go of the oldest event.
    pub fn pop(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            self.bytes -= cost(&entry.frame);
            self.first_position += 1;
        }
        if self.entries.is_empty() {
            // A window that held much and holds nothing gives its memory back.
            self.entries.shrink_to(4);
        }
    }

    /// Lets go of the events older than the limit.
    pub fn drop_aged(&mut self, now_ms: u64, limits: &WindowLimits) {
        while let Some(entry) = self.entries.front()
            && now_ms.saturating_sub(entry.at_ms) > limits.age_ms_max
        {
            self.pop();
        }
    }

    /// Lets go of the events before `position`.
    pub fn drop_before(&mut self, position: u64) {
        while self.first_position < position && !self.entries.is_empty() {
            self.pop();
        }
    }

    /// The events after `position`: none where the first of them has left the window, or where
    /// the position was never given out.
    pub fn after(&self, position: u64) -> impl ExactSizeIterator<Item = &Arc<Vec<u8>>> {
        let next = position.saturating_add(1);
        let skip = if next < self.first_position || next > self.next_position() {
            self.entries.len()
        } else {
            // At most the number of entries.
            (next - self.first_position) as usize
        };
        self.entries.iter().skip(skip).map(|entry| &entry.frame)
    }
}

fn cost(frame: &Arc<Vec<u8>>) -> usize {
    frame.len() + EVENT_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: WindowLimits =
        WindowLimits { events_max: 3, bytes_max: 800 + 2 * EVENT_OVERHEAD_BYTES, age_ms_max: 100 };

    fn window(lengths: &[usize]) -> Window {
        let mut window = Window::new(1);
        for (index, length) in lengths.iter().enumerate() {
            window.push(Arc::new(vec![index as u8 + 1; *length]), index as u64 * 10, &LIMITS);
        }
        window
    }

    fn replay(window: &Window, position: u64) -> Vec<u8> {
        window.after(position).map(|frame| frame[0]).collect()
    }

    #[test]
    fn only_what_followed_is_replayed() {
        let window = window(&[1, 1, 1, 1, 1]);
        assert_eq!((window.first_position(), window.next_position(), window.len()), (3, 6, 3));
        let cases: [(u64, &[u8]); 9] = [
            (0, &[]),
            (1, &[]),
            (2, &[3, 4, 5]),
            (3, &[4, 5]),
            (4, &[5]),
            (5, &[]),
            (6, &[]),
            (7, &[]),
            (u64::MAX, &[]),
        ];
        for (position, expected) in cases {
            assert_eq!(replay(&window, position), expected, "after {position}");
        }
    }

    #[test]
    fn bytes_and_age_are_bounded() {
        let mut window = window(&[500, 300, 300]);
        assert_eq!((window.len(), window.bytes()), (2, 600 + 2 * EVENT_OVERHEAD_BYTES));
        window.drop_aged(110, &LIMITS);
        assert_eq!(window.len(), 2);
        window.drop_aged(111, &LIMITS);
        assert_eq!(replay(&window, 2), [3]);
        window.push(Arc::new(vec![9; 5000]), 120, &LIMITS);
        assert_eq!((window.len(), window.bytes(), window.next_position()), (0, 0, 5));
        window.pass();
        assert_eq!((window.first_position(), window.next_position()), (6, 6));
    }

    #[test]
    fn positions_before_are_dropped() {
        let mut window = window(&[1, 1, 1]);
        window.drop_before(3);
        assert_eq!(replay(&window, 2), [3]);
        window.drop_before(99);
        assert_eq!((window.len(), window.next_position()), (0, 4));
    }
}
