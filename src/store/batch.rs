//! Trees and batches of changes.

use std::fmt;

/// One tree for each kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Tree {
    /// Catalog entities.
    Catalog,
    /// API keys.
    Keys,
    /// Session records.
    Sessions,
    /// Journal of sessions too young for a record of their own.
    RecentSessions,
    /// Replay windows of streams.
    Windows,
    /// Records about the store and its owner. Applied after all it points to, so that a pointer in
    /// it is never newer than that.
    Meta,
    /// What upstream MCP servers offer, and what of it is accepted. Nothing points here. Behind
    /// `Meta` because batches name trees by their places, and those of an older release may still
    /// wait in a tail.
    Upstreams,
}

impl Tree {
    /// Every tree, in the order in which a batch is applied to them.
    pub const ALL: [Self; 7] = [
        Self::Catalog,
        Self::Keys,
        Self::Sessions,
        Self::RecentSessions,
        Self::Windows,
        Self::Meta,
        Self::Upstreams,
    ];

    /// Its name on disk.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Keys => "keys",
            Self::Sessions => "sessions",
            Self::RecentSessions => "recent_sessions",
            Self::Windows => "windows",
            Self::Meta => "meta",
            Self::Upstreams => "upstreams",
        }
    }
}

/// Puts and removals that belong together. Within one tree they are found all or not at all
/// after a crash; the trees are applied in the order of [`Tree::ALL`]. Of two changes to one key
/// the later one holds.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Batch {
    // One allocation for however many small records: tree, kind, both lengths, key, value.
    bytes: Vec<u8>,
    count: usize,
}

/// Tree, kind, and two lengths of eight bytes.
const HEAD_BYTES: usize = 18;
const PUT: u8 = 1;
const REMOVE: u8 = 0;

/// One change of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<'a> {
    pub(super) tree: Tree,
    pub(super) key: &'a [u8],
    /// None: the key is removed.
    pub(super) value: Option<&'a [u8]>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `key` to `value`.
    pub fn put(&mut self, tree: Tree, key: &[u8], value: &[u8]) {
        self.push(tree, PUT, key, value);
    }

    /// Removes `key`; nothing happens where it is not there.
    pub fn remove(&mut self, tree: Tree, key: &[u8]) {
        self.push(tree, REMOVE, key, &[]);
    }

    /// How many changes it holds.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it holds no change.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The memory it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Itself as bytes.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.bytes
    }

    /// The batch that was [`Self::encoded`] as `bytes`; none: it was not.
    pub(super) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let mut batch = Self { bytes, count: 0 };
        let (mut count, mut whole) = (0, 0);
        for change in batch.changes() {
            count += 1;
            whole += HEAD_BYTES + change.key.len() + change.value.map_or(0, <[u8]>::len);
        }
        batch.count = count;
        (whole == batch.bytes.len()).then_some(batch)
    }

    fn push(&mut self, tree: Tree, kind: u8, key: &[u8], value: &[u8]) {
        self.bytes.reserve_exact(if self.count == 0 {
            HEAD_BYTES + key.len() + value.len()
        } else {
            0
        });
        self.bytes.push(tree as u8);
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&(key.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.count += 1;
    }

    /// Its changes in the order in which they were made.
    pub(super) fn changes(&self) -> impl Iterator<Item = Change<'_>> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_first_chunk::<HEAD_BYTES>()?;
            let tree = *Tree::ALL.get(usize::from(head[0]))?;
            let (key, behind) = behind.split_at_checked(length(&head[2..10])?)?;
            let (value, behind) = behind.split_at_checked(length(&head[10..18])?)?;
            rest = behind;
            Some(Change { tree, key, value: (head[1] == PUT).then_some(value) })
        })
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

// Records can hold what must not be seen in a log.
impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("changes", &self.count)
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn trees_are_numbered_in_their_order() {
        for (index, tree) in Tree::ALL.into_iter().enumerate() {
            assert_eq!(tree as usize, index);
        }
    }

    #[test]
    fn debug_shows_no_content() {
        let mut batch = Batch::new();
        batch.put(Tree::Keys, b"id", b"secret");
        assert_eq!(format!("{batch:?}"), "Batch { changes: 1, bytes: 26, .. }");
    }

    proptest! {
        #[test]
        fn changes_come_back_as_they_were_made(
            made in vec((0usize..Tree::ALL.len(), vec(any::<u8>(), 0..40), option::of(vec(any::<u8>(), 0..40))), 0..20)
        ) {
            let mut batch = Batch::new();
            for (tree, key, value) in &made {
                match value {
                    Some(value) => batch.put(Tree::ALL[*tree], key, value),
                    None => batch.remove(Tree::ALL[*tree], key),
                }
            }
            let back: Vec<_> = batch
                .changes()
                .map(|c| (c.tree as usize, c.key.to_vec(), c.value.map(<[u8]>::to_vec)))
                .collect();
            prop_assert_eq!(batch.len(), made.len());
            prop_assert_eq!(back, made);
            let decoded = Batch::decode(batch.encoded().to_vec());
            prop_assert_eq!(decoded.as_ref(), Some(&batch));
        }

        #[test]
        fn any_bytes_are_a_batch_or_none(mut bytes in vec(any::<u8>(), 0..60), cut in 0usize..60) {
            if let Some(batch) = Batch::decode(bytes.clone()) {
                prop_assert_eq!(batch.changes().count(), batch.len());
            }
            let mut batch = Batch::new();
            batch.put(Tree::Keys, b"key", &bytes);
            let encoded = batch.encoded();
            bytes = encoded[..cut.min(encoded.len())].to_vec();
            let is_whole = bytes.len() == encoded.len() || bytes.is_empty();
            prop_assert_eq!(Batch::decode(bytes).is_some(), is_whole);
        }
    }
}
