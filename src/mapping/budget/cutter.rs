//! Writes as much of a document as fits, and notes the rest.

use super::document::{Cursor, Document, PathStep, Paths, Piece, PieceKind, ROOT, Value};
use super::{MISSING_NAMED_MAX, Missing, MissingKind, MissingPlace, Sizes, text};

/// What is kept of each member before the members behind it are left out.
const MEMBER_BYTES: usize = 48;
/// What an entry of a part needs besides its place.
const ENTRY_BYTES: usize = 96;

pub(super) struct Cutter<'a> {
    document: &'a Document,
    sizes: Sizes,
    paths: Paths,
    out: Vec<u8>,
    /// The place above `steps`.
    base: u32,
    /// From there to the value that is written; each with its node once that is needed.
    steps: Vec<(PathStep, Option<u32>)>,
    missing: Missing,
    pieces: Vec<Piece>,
}

pub(super) struct Done {
    pub(super) json: Vec<u8>,
    pub(super) missing: Missing,
    pub(super) pieces: Vec<Piece>,
    pub(super) paths: Paths,
}

struct Member {
    key: Value,
    value: Value,
    /// Bytes of the value when only its long strings, and rows over the budget, are cut.
    cost: usize,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(document: &'a Document, sizes: Sizes, paths: Paths) -> Self {
        let (out, steps, pieces) = (Vec::new(), Vec::new(), Vec::new());
        let missing = Missing::default();
        Self { document, sizes, paths, out, base: ROOT, steps, missing, pieces }
    }

    pub(super) fn finish(self) -> Done {
        let Self { out: json, missing, pieces, paths, .. } = self;
        Done { json, missing, pieces, paths }
    }

    /// The first part.
    pub(super) fn whole(&mut self) {
        self.put(self.document.root(), self.sizes.bytes, true);
    }

    /// Whether another entry fits into a part.
    pub(super) fn has_room(&self, piece: Piece, written: usize) -> bool {
        let place = self.paths.pointer(self.document, piece.node).len();
        written.saturating_add(place + ENTRY_BYTES) < self.sizes.bytes
    }

    /// Writes an entry of a part, at least something of it. `true` when nothing is left of it.
    pub(super) fn piece(&mut self, piece: Piece, json: &mut Vec<u8>) -> bool {
        self.base = piece.node;
        self.steps.clear();
        self.out = std::mem::take(json);
        self.out.extend_from_slice(b"{\"at\":");
        self.paths.write(self.document, piece.node, &mut self.out);
        let from = piece.from;
        let key = match piece.kind {
            PieceKind::Rows => format!(",\"from\":{from},\"rows\":"),
            PieceKind::Members => ",\"members\":".to_owned(),
            PieceKind::Text | PieceKind::NextText => format!(",\"from\":{from},\"text\":"),
        };
        self.out.extend_from_slice(key.as_bytes());
        // The brackets behind it.
        let room = self.sizes.bytes.saturating_sub(self.out.len() + 4);
        let cursor = Cursor { at: piece.at as usize, number: piece.number as usize };
        let is_done = match piece.kind {
            PieceKind::Rows => {
                self.rows(cursor, from as usize, self.sizes.rows, room, Some(piece.left))
            }
            PieceKind::Members => self.some_members(cursor, room, Some(piece.left)),
            PieceKind::Text | PieceKind::NextText => self.rest_of_text(piece, room),
        };
        self.out.push(b'}');
        *json = std::mem::take(&mut self.out);
        is_done
    }

    /// Writes a value into as many bytes as there are. `is_top`: no array is around it.
    fn put(&mut self, value: Value, limit: usize, is_top: bool) {
        match self.document.kind(value) {
            b'"' => self.string(value, limit),
            b'[' if is_top || self.document.cost(value) > limit => {
                let rows = if is_top { self.sizes.rows } else { usize::MAX };
                self.rows(Document::inside(value), 0, rows, limit, None);
            }
            b'{' if is_top || self.document.cost(value) > limit => {
                self.object(value, limit, is_top);
            }
            _ => self.all(value),
        }
    }

    /// Writes a value whole, but for its long strings.
    fn all(&mut self, value: Value) {
        if !self.document.has_long(value) {
            return self.out.extend_from_slice(self.document.slice(value.start, value.end));
        }
        let mut cursor = Document::inside(value);
        match self.document.kind(value) {
            b'[' => {
                self.out.push(b'[');
                let mut index = 0;
                while let Some((item, after)) = self.document.item(cursor) {
                    self.separate(index);
                    self.below(PathStep::Index(index as u32), |cutter| cutter.all(item));
                    (cursor, index) = (after, index + 1);
                }
                self.out.push(b']');
            }
            b'{' => {
                self.out.push(b'{');
                let mut index = 0;
                while let Some((key, member, after)) = self.document.member(cursor) {
                    self.separate(index);
                    self.member(key, |cutter| cutter.all(member));
                    (cursor, index) = (after, index + 1);
                }
                self.out.push(b'}');
            }
            _ => self.string(value, usize::MAX),
        }
    }

    fn string(&mut self, value: Value, limit: usize) {
        let (start, end) = (value.start + 1, value.end - 1);
        let room = limit.saturating_sub(2).min(self.document.string_bytes);
        let kept = text::prefix_end(self.document.text(), start, end, room);
        self.out.extend_from_slice(self.document.slice(value.start, kept));
        self.out.push(b'"');
        if kept < end {
            self.leave(PieceKind::Text, kept - start, kept, end, end - kept);
        }
    }

    fn rest_of_text(&mut self, piece: Piece, room: usize) -> bool {
        let (start, end) = (piece.at as usize, piece.number as usize);
        let room = if self.sizes.bytes == usize::MAX { self.document.string_bytes } else { room };
        let kept = text::prefix_end(self.document.text(), start, end, room);
        let kept = kept.max(text::first_end(self.document.text(), start));
        self.out.push(b'"');
        self.out.extend_from_slice(self.document.slice(start, kept));
        self.out.push(b'"');
        if kept < end {
            let from = piece.from as usize + kept - start;
            self.leave(PieceKind::NextText, from, kept, end, end - kept);
        }
        kept >= end
    }

    /// Writes items from `cursor` on, `known` of them where they were counted: then at least one.
    /// `true` when all are written.
    fn rows(
        &mut self,
        mut cursor: Cursor,
        from: usize,
        rows_max: usize,
        limit: usize,
        known: Option<u32>,
    ) -> bool {
        let before = self.out.len();
        self.out.push(b'[');
        let mut index = from;
        while let Some((item, after)) = self.document.item(cursor) {
            // The bracket behind it, and a comma where it is not the first.
            let around = self.out.len() - before + 1 + usize::from(index > from);
            let room = limit.saturating_sub(around);
            let fits = self.document.cost(item) <= room;
            // A row that is larger than everything is cut itself, so that there is something.
            let is_first =
                index == from && (known.is_some() || (room >= MEMBER_BYTES && self.can_cut(item)));
            if index - from >= rows_max || !(fits || is_first) {
                break;
            }
            self.separate(index - from);
            self.below(PathStep::Index(index as u32), |cutter| cutter.put(item, room, false));
            (cursor, index) = (after, index + 1);
            if !fits {
                break;
            }
        }
        self.out.push(b']');
        let left = left(known, index - from, cursor, |at| Some(self.document.item(at)?.1));
        if left > 0 {
            self.leave(PieceKind::Rows, index, cursor.at, cursor.number, left);
        }
        left == 0
    }

    /// Writes an object: whole, or with its largest members cut, or the first of too many.
    fn object(&mut self, value: Value, limit: usize, is_top: bool) {
        let mut members = Vec::new();
        let mut cursor = Document::inside(value);
        while let Some((key, value, after)) = self.document.member(cursor) {
            let cost = self.cost(value, is_top);
            members.push(Member { key, value, cost });
            cursor = after;
        }
        let Some(share) = self.share(&members, limit) else {
            self.some_members(Document::inside(value), limit, None);
            return;
        };
        self.out.push(b'{');
        for (index, Member { key, value, cost }) in members.into_iter().enumerate() {
            self.separate(index);
            self.member(key, |cutter| cutter.put(value, cost.min(share), is_top));
        }
        self.out.push(b'}');
    }

    /// How many bytes each member may have so that all together fit; `None` when they are too many.
    fn share(&self, members: &[Member], limit: usize) -> Option<usize> {
        // Brackets, and around each value its key, a colon and, but for the last, a comma.
        let around: usize =
            members.iter().map(|member| member.key.end - member.key.start + 2).sum();
        let mut room = limit.checked_sub(1 + around)?;
        let mut costs = Vec::with_capacity(members.len());
        for member in members {
            if self.can_cut(member.value) {
                costs.push(member.cost);
            } else {
                room = room.checked_sub(member.cost)?;
            }
        }
        costs.sort_unstable();
        for (index, cost) in costs.iter().enumerate() {
            let share = room / (costs.len() - index);
            if *cost > share {
                return Some(share).filter(|share| *share >= MEMBER_BYTES);
            }
            room -= cost;
        }
        Some(usize::MAX)
    }

    /// Writes members from `cursor` on, `known` of them where they were counted: then at least one,
    /// and as long as there is room for a beginning of each. `true` when all are written.
    fn some_members(&mut self, mut cursor: Cursor, limit: usize, known: Option<u32>) -> bool {
        let before = self.out.len();
        self.out.push(b'{');
        let mut index = 0;
        while let Some((key, value, after)) = self.document.member(cursor) {
            // A colon, the bracket behind it, and a comma where it is not the first.
            let around = key.end - key.start + 2 + usize::from(index > 0);
            let room = limit.saturating_sub(self.out.len() - before + around);
            let cost = self.document.cost(value);
            let is_first = known.is_some() && index == 0;
            if cost > room && !is_first {
                break;
            }
            self.separate(index);
            self.member(key, |cutter| cutter.put(value, room, false));
            (cursor, index) = (after, index + 1);
        }
        self.out.push(b'}');
        let left = left(known, index, cursor, |at| Some(self.document.member(at)?.2));
        if left > 0 {
            self.leave(PieceKind::Members, 0, cursor.at, cursor.number, left);
        }
        left == 0
    }

    /// Bytes of a value as the budget for rows and strings leaves it.
    fn cost(&self, value: Value, is_top: bool) -> usize {
        if !is_top || self.document.kind(value) != b'[' || self.sizes.rows == usize::MAX {
            return self.document.cost(value);
        }
        // Brackets, and commas between the items.
        let mut cost = 1;
        let mut cursor = Document::inside(value);
        for _ in 0..self.sizes.rows {
            let Some((item, after)) = self.document.item(cursor) else { break };
            cost += self.document.cost(item) + 1;
            cursor = after;
        }
        cost.max(2)
    }

    fn can_cut(&self, value: Value) -> bool {
        matches!(self.document.kind(value), b'"' | b'[' | b'{')
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push(b',');
        }
    }

    fn member(&mut self, key: Value, write: impl FnOnce(&mut Self)) {
        self.out.extend_from_slice(self.document.slice(key.start, key.end));
        self.out.push(b':');
        self.below(PathStep::Key(key.start as u32, key.end as u32), write);
    }

    fn below(&mut self, step: PathStep, write: impl FnOnce(&mut Self)) {
        self.steps.push((step, None));
        write(self);
        self.steps.pop();
    }

    /// Notes what is left at the place that is written.
    fn leave(&mut self, kind: PieceKind, from: usize, at: usize, number: usize, count: usize) {
        let mut node = self.base;
        for (step, known) in &mut self.steps {
            node = *known.get_or_insert_with(|| self.paths.add(node, *step));
        }
        let (from, at, number, left) = (from as u32, at as u32, number as u32, count as u32);
        self.pieces.push(Piece { kind, node, from, at, number, left });
        let count = count as u64;
        let what = match kind {
            PieceKind::Rows => MissingKind::Rows,
            PieceKind::Members => MissingKind::Members,
            PieceKind::Text | PieceKind::NextText => MissingKind::StringBytes,
        };
        *match what {
            MissingKind::Rows => &mut self.missing.rows,
            MissingKind::Members => &mut self.missing.members,
            MissingKind::StringBytes => &mut self.missing.string_bytes,
        } += count;
        if self.missing.places.len() < MISSING_NAMED_MAX {
            let at = self.paths.shown(self.document, node);
            self.missing.places.push(MissingPlace { at, what, count });
        }
    }
}

/// How many items or members are behind `cursor`: those that were counted but for the `written`
/// ones, else as many as `next` finds.
fn left(
    known: Option<u32>,
    written: usize,
    mut cursor: Cursor,
    next: impl Fn(Cursor) -> Option<Cursor>,
) -> usize {
    if let Some(known) = known {
        return (known as usize).saturating_sub(written);
    }
    let mut left = 0;
    while let Some(after) = next(cursor) {
        (cursor, left) = (after, left + 1);
    }
    left
}
