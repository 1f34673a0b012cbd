//! Rebuilding a table from its journal.

use std::sync::Arc;

use super::ids::StreamId;
use super::journal::{Chunk, Declaration, Entry, Journal};
use super::stream::{Stream, StreamKind};
use super::table::{Place, StreamLimits, StreamTable};

impl StreamTable {
    /// Rebuilds the table from what the journal says, as of `now_ms`. Nothing is attached.
    ///
    /// Chunks may come in any order, with gaps, and from several cores (where there are fewer cores
    /// than before). New chunks get sequences above all of theirs.
    pub fn recover(
        place: Place,
        limits: StreamLimits,
        mut chunks: Vec<Chunk<'_>>,
        now_ms: u64,
    ) -> Self {
        chunks.sort_by_key(|chunk| (chunk.sequence, chunk.core));
        let highest = chunks.last().map_or(0, |chunk| chunk.sequence);
        let mut table = Self::new(place, limits, 0);
        for chunk in &chunks {
            table.apply(chunk, now_ms);
        }
        // What was found is stored already.
        table.journal = Journal::new(place.core, highest.saturating_add(1));
        table.expire(now_ms);
        // Evictions for the sake of bytes were journaled too; this is for a limit lowered since.
        table.enforce_bytes();
        table
    }

    fn apply(&mut self, chunk: &Chunk<'_>, now_ms: u64) {
        let mut declared: Vec<StreamId> = Vec::new();
        let named = |declared: &[StreamId], index: u32| declared.get(index as usize).copied();
        for entry in &chunk.entries {
            match *entry {
                Entry::Declare(declaration) => {
                    declared.push(declaration.id);
                    self.declare(&declaration, now_ms);
                }
                Entry::Publish { index, position, at_ms, frame } => {
                    if let Some(id) = named(&declared, index) {
                        self.change_window(id, |window| {
                            if window.next_position() != position {
                                window.restart(position);
                            }
                        });
                        if self.streams.contains_key(&id) {
                            self.keep(id, Arc::new(frame.to_vec()), at_ms);
                        }
                    }
                }
                Entry::Finish { index, at_ms } => {
                    if let Some(id) = named(&declared, index) {
                        self.mark_finished(id, at_ms);
                    }
                }
                Entry::End { index } => {
                    if let Some(id) = named(&declared, index) {
                        self.remove(id);
                    }
                }
                Entry::Trim { index, first_position } => {
                    if let Some(id) = named(&declared, index) {
                        self.change_window(id, |window| window.drop_before(first_position));
                    }
                }
            }
        }
    }

    fn declare(&mut self, declaration: &Declaration<'_>, now_ms: u64) {
        let Declaration { id, kind, session, next_position, finished_ms, note } = *declaration;
        if self.streams.contains_key(&id) {
            self.change_window(id, |window| {
                if window.next_position() < next_position {
                    window.restart(next_position);
                }
            });
        } else if kind != StreamKind::Legacy && self.streams.len() < self.limits.streams_max {
            let mut stream = Stream::new(kind, session, note, next_position, now_ms);
            stream.recovered = true;
            self.insert(id, stream);
        }
        if let Some(at_ms) = finished_ms {
            self.mark_finished(id, at_ms);
        }
    }

    fn mark_finished(&mut self, id: StreamId, at_ms: u64) {
        let stream = self.streams.get_mut(&id);
        if let Some(stream) = stream.filter(|stream| stream.finished_ms.is_none()) {
            stream.finished_ms = Some(at_ms);
            self.finished.push_back(id);
        }
    }
}
