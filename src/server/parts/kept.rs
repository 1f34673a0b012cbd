//! What is left of results that were larger than their budget, kept for a while.
//!
//! One table for all cores: who asks for the next part may come in on another one. Entries are
//! bounded in bytes, of a tenant and in all, and in age; the oldest goes first. An entry is its
//! caller's: a handle is 128 random bits, and is good only together with tenant, client application
//! and caller. Every other answer is the same as for a handle nobody was given.
//!
//! A handle names one part. Asked again it gives the same part again, so an answer that was lost on
//! the way is not; once the part after it was asked for, it is over.
//!
//! Results that are files are kept here too, whole, under handles of the same kind.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;

use crate::{
    catalog::{ClientApplicationId, TenantId, ToolName},
    identity::Caller,
    mapping::{
        ResultBudget,
        budget::{Part, Rest},
    },
    mcp::File,
    server::random_bytes,
    settings,
};

/// Random bytes of a handle.
const ID_BYTES: usize = 16;
/// And their characters.
const ID_CHARACTERS: usize = 22;
/// What an entry costs besides its document, in bytes.
const OVERHEAD_BYTES: usize = 512;

type Id = [u8; ID_BYTES];

/// Whose a result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultOwner {
    pub(crate) tenant: TenantId,
    pub(crate) client_application: ClientApplicationId,
    pub(crate) caller: Caller,
}

#[derive(Debug)]
struct Entry {
    owner: ResultOwner,
    tool: ToolName,
    content: Content,
    bytes: usize,
    made_ms: u64,
}

#[derive(Debug)]
enum Content {
    Parts { budget: ResultBudget, parts: Parts },
    File(Arc<File>),
}

/// The number of the part that was asked for last, and what was left before it; what is left after
/// it.
type Parts = [Option<(usize, Rest)>; 2];

/// The next part of a result.
#[derive(Debug)]
pub(crate) struct NextPart {
    pub(crate) part: Part,
    /// For the part after it, where there is one.
    pub(crate) handle: Option<String>,
    /// The tool whose result it is.
    pub(crate) tool: ToolName,
}

/// The table.
#[derive(Debug)]
pub(crate) struct KeptResults {
    tenant_bytes_max: usize,
    bytes_max: usize,
    age_ms_max: u64,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<Id, Entry>,
    /// All ids, the oldest first; may name entries that are gone.
    order: VecDeque<Id>,
    bytes: usize,
    tenants: HashMap<TenantId, OfTenant>,
}

#[derive(Debug, Default)]
struct OfTenant {
    /// As in the table.
    order: VecDeque<Id>,
    bytes: usize,
    count: usize,
}

impl KeptResults {
    pub(crate) fn new(settings: &settings::Results) -> Self {
        Self {
            tenant_bytes_max: settings.tenant_bytes_max,
            bytes_max: settings.bytes_max,
            age_ms_max: settings.keep_seconds.saturating_mul(1000),
            table: Mutex::default(),
        }
    }

    /// Keeps what is left of a result; the handle of its next part. `None` where there is no room
    /// for it even when all others are gone.
    pub(crate) fn keep(
        &self,
        owner: ResultOwner,
        tool: ToolName,
        budget: ResultBudget,
        rest: Rest,
        now_ms: u64,
    ) -> Option<String> {
        let bytes = rest.memory_bytes() + OVERHEAD_BYTES;
        let content = Content::Parts { budget, parts: [Some((0, rest)), None] };
        self.insert(Entry { owner, tool, content, bytes, made_ms: now_ms })
    }

    /// Keeps a file; its handle. `None` as above.
    pub(crate) fn keep_file(
        &self,
        owner: ResultOwner,
        tool: ToolName,
        file: Arc<File>,
        now_ms: u64,
    ) -> Option<String> {
        let bytes = file.bytes.len() + OVERHEAD_BYTES;
        self.insert(Entry { owner, tool, content: Content::File(file), bytes, made_ms: now_ms })
    }

    fn insert(&self, entry: Entry) -> Option<String> {
        if entry.bytes > self.tenant_bytes_max.min(self.bytes_max) {
            return None;
        }
        let now_ms = entry.made_ms;
        let mut id = [0; ID_BYTES];
        random_bytes(&mut id);
        let mut table = self.table.lock();
        table.insert(id, entry);
        self.enforce(&mut table, now_ms);
        Some(handle_of(id, 0))
    }

    /// The file a handle names, if it is this owner's, and the tool whose result it is.
    pub(crate) fn file(
        &self,
        handle: &str,
        owner: &ResultOwner,
        now_ms: u64,
    ) -> Option<(Arc<File>, ToolName)> {
        let (id, _) = parse(handle)?;
        let table = self.table.lock();
        let entry = table.entries.get(&id).filter(|entry| self.is_good(entry, owner, now_ms))?;
        let Content::File(file) = &entry.content else { return None };
        Some((file.clone(), entry.tool.clone()))
    }

    fn is_good(&self, entry: &Entry, owner: &ResultOwner, now_ms: u64) -> bool {
        entry.owner == *owner && now_ms.saturating_sub(entry.made_ms) <= self.age_ms_max
    }

    /// The part a handle names, if it is this owner's, and of this tool where one is given.
    pub(crate) fn next(
        &self,
        handle: &str,
        owner: &ResultOwner,
        tool: Option<&ToolName>,
        now_ms: u64,
    ) -> Option<NextPart> {
        let (id, number) = parse(handle)?;
        let (mut rest, budget, tool) = {
            let table = self.table.lock();
            let entry = table.entries.get(&id).filter(|entry| {
                self.is_good(entry, owner, now_ms) && tool.is_none_or(|tool| entry.tool == *tool)
            })?;
            let Content::Parts { budget, parts } = &entry.content else { return None };
            (before(parts, number)?.clone(), *budget, entry.tool.clone())
        };
        // The work is done outside the lock.
        let before = rest.clone();
        let part = rest.next(&budget)?;
        let after = (!rest.is_empty()).then_some((number + 1, rest));
        let handle = after.is_some().then(|| handle_of(id, number + 1));
        let mut table = self.table.lock();
        table.advance(id, [Some((number, before)), after]);
        self.enforce(&mut table, now_ms);
        Some(NextPart { part, handle, tool })
    }

    /// Lets go of what is too old; called once a second.
    pub(crate) fn expire(&self, now_ms: u64) {
        self.enforce(&mut self.table.lock(), now_ms);
    }

    fn enforce(&self, table: &mut Table, now_ms: u64) {
        while let Some(id) = table.order.front().copied() {
            let is_old = |entry: &Entry| now_ms.saturating_sub(entry.made_ms) > self.age_ms_max;
            match table.entries.get(&id) {
                Some(entry) if table.bytes <= self.bytes_max && !is_old(entry) => break,
                _ => table.remove(id),
            }
            table.order.pop_front();
        }
        let full: Vec<TenantId> = table
            .tenants
            .iter()
            .filter(|(_, of)| of.bytes > self.tenant_bytes_max)
            .map(|(tenant, _)| tenant.clone())
            .collect();
        for tenant in full {
            while let Some(of) = table.tenants.get_mut(&tenant)
                && of.bytes > self.tenant_bytes_max
                && let Some(id) = of.order.pop_front()
            {
                table.remove(id);
            }
        }
        table.shed();
    }
}

/// What was left before a part.
fn before(parts: &Parts, number: usize) -> Option<&Rest> {
    parts.iter().flatten().find(|(at, _)| *at == number).map(|(_, rest)| rest)
}

/// The document, which both parts share, and the longer list of pieces: half of what both take at
/// most.
fn memory_bytes(parts: &Parts) -> usize {
    let parts = parts.iter().flatten();
    OVERHEAD_BYTES + parts.map(|(_, rest)| rest.memory_bytes()).max().unwrap_or(0)
}

impl Table {
    fn insert(&mut self, id: Id, entry: Entry) {
        self.bytes += entry.bytes;
        let of = self.tenants.entry(entry.owner.tenant.clone()).or_default();
        of.bytes += entry.bytes;
        of.count += 1;
        of.order.push_back(id);
        self.order.push_back(id);
        self.entries.insert(id, entry);
    }

    /// Notes how far a result was asked for, unless somebody was further already.
    fn advance(&mut self, id: Id, parts: Parts) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let Content::Parts { parts: reached, .. } = &mut entry.content else { return };
        let number = |parts: &Parts| parts[0].as_ref().map(|(at, _)| *at);
        if number(reached) > number(&parts) {
            return;
        }
        let bytes = memory_bytes(&parts);
        *reached = parts;
        self.bytes = self.bytes - entry.bytes + bytes;
        if let Some(of) = self.tenants.get_mut(&entry.owner.tenant) {
            of.bytes = of.bytes - entry.bytes + bytes;
        }
        entry.bytes = bytes;
    }

    fn remove(&mut self, id: Id) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.bytes -= entry.bytes;
        let tenant = &entry.owner.tenant;
        let Some(of) = self.tenants.get_mut(tenant) else { return };
        of.bytes -= entry.bytes;
        of.count -= 1;
        if of.count == 0 {
            self.tenants.remove(tenant);
        }
    }

    /// Ids of entries that are gone must not gather.
    fn shed(&mut self) {
        let entries = &self.entries;
        if self.order.len() > 64 + 2 * entries.len() {
            self.order.retain(|id| entries.contains_key(id));
        }
        for of in self.tenants.values_mut() {
            if of.order.len() > 64 + 2 * of.count {
                of.order.retain(|id| entries.contains_key(id));
            }
        }
    }
}

/// The id, and which of the parts after the first.
fn handle_of(id: Id, number: usize) -> String {
    format!("{}.{number}", URL_SAFE_NO_PAD.encode(id))
}

fn parse(handle: &str) -> Option<(Id, usize)> {
    let (id, number) = handle.split_once('.')?;
    if id.len() != ID_CHARACTERS || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut bytes = [0; ID_BYTES];
    URL_SAFE_NO_PAD.decode_slice(id, &mut bytes).ok()?;
    Some((bytes, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::budget::cut;

    const BUDGET: ResultBudget = ResultBudget { rows: Some(2), string_bytes: None, bytes: None };

    fn owner(tenant: &str, caller: Caller) -> ResultOwner {
        ResultOwner {
            tenant: TenantId::new(tenant).unwrap(),
            client_application: ClientApplicationId::new("desk").unwrap(),
            caller,
        }
    }

    fn rest(rows: usize) -> Rest {
        let json = format!("[{}]", vec!["1"; rows].join(","));
        cut(json.as_bytes(), &BUDGET).unwrap().rest
    }

    fn tool() -> ToolName {
        ToolName::new("list").unwrap()
    }

    fn kept(tenant_bytes_max: usize, bytes_max: usize) -> KeptResults {
        let settings = settings::Results { keep_seconds: 10, tenant_bytes_max, bytes_max };
        KeptResults::new(&settings)
    }

    fn keep(table: &KeptResults, tenant: &str, now_ms: u64) -> Option<String> {
        table.keep(owner(tenant, Caller::Open), tool(), BUDGET, rest(7), now_ms)
    }

    #[test]
    fn parts_follow_each_other_and_come_again() {
        let table = kept(1 << 20, 1 << 20);
        let of = owner("acme", Caller::Open);
        let mut handle = keep(&table, "acme", 0);
        let mut parts = Vec::new();
        while let Some(of_part) = handle {
            let first = table.next(&of_part, &of, Some(&tool()), 1).unwrap();
            let again = table.next(&of_part, &of, None, 1).unwrap();
            assert_eq!((&first.part, &first.handle), (&again.part, &again.handle));
            parts.push(String::from_utf8(first.part.json).unwrap());
            handle = first.handle;
        }
        assert_eq!(parts.len(), 3, "{parts:?}");
        assert!(parts[2].contains("\"from\":6,\"rows\":[1]"), "{parts:?}");
    }

    #[test]
    fn a_handle_is_its_callers_and_of_its_tool() {
        let table = kept(1 << 20, 1 << 20);
        let handle = keep(&table, "acme", 0).unwrap();
        for (of, tool) in [
            (owner("other", Caller::Open), None),
            (owner("acme", Caller::Operator), None),
            (owner("acme", Caller::Open), Some(ToolName::new("other").unwrap())),
        ] {
            assert!(table.next(&handle, &of, tool.as_ref(), 1).is_none());
        }
        let of = owner("acme", Caller::Open);
        assert!(table.next(&handle, &of, None, 10_001).is_none(), "too old");
        assert!(table.next(&handle, &of, None, 1).is_some());
        for wrong in
            ["", ".0", "x.0", &handle[1..], &format!("{handle}x"), &handle.replace(".0", ".7")]
        {
            assert!(table.next(wrong, &of, None, 1).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_file_is_kept_whole_and_is_its_callers() {
        let table = kept(1 << 20, 1 << 20);
        let of = owner("acme", Caller::Open);
        let file = Arc::new(File {
            media_type: "image/png".into(),
            bytes: [1, 2, 3].into(),
            ..File::default()
        });
        let handle = table.keep_file(of.clone(), tool(), file.clone(), 0).unwrap();
        assert_eq!(table.file(&handle, &of, 1), Some((file, tool())));
        assert!(table.next(&handle, &of, None, 1).is_none());
        assert!(table.file(&handle, &owner("acme", Caller::Operator), 1).is_none());
        assert!(table.file(&handle, &of, 10_001).is_none(), "too old");
        let rest = keep(&table, "acme", 0).unwrap();
        assert!(table.file(&rest, &of, 1).is_none());
    }

    #[test]
    fn the_oldest_goes_where_there_is_no_room() {
        let one = rest(7).memory_bytes() + OVERHEAD_BYTES;
        let table = kept(2 * one, 3 * one);
        let first = keep(&table, "acme", 0).unwrap();
        let second = keep(&table, "acme", 1).unwrap();
        let third = keep(&table, "acme", 2).unwrap();
        let acme = owner("acme", Caller::Open);
        let is_there = |handle: &str, of: &ResultOwner| table.next(handle, of, None, 3).is_some();
        assert!(!is_there(&first, &acme) && is_there(&second, &acme) && is_there(&third, &acme));
        let other = keep(&table, "other", 3).unwrap();
        assert!(is_there(&other, &owner("other", Caller::Open)));
        keep(&table, "third", 4).unwrap();
        assert!(!is_there(&second, &acme) && is_there(&third, &acme));
        table.expire(20_000);
        let inner = table.table.lock();
        assert_eq!((inner.bytes, inner.entries.len(), inner.tenants.len()), (0, 0, 0));
        assert!(kept(one - 1, 1 << 20).keep(acme, tool(), BUDGET, rest(7), 0).is_none());
    }
}
