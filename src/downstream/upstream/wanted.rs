//! What is wanted to be heard in the sessions at servers, of all cores, and which core listens.

use std::collections::BTreeSet;

use crate::rt::{
    InboxReceiver, InboxSender, OneshotReceiver, OneshotSender, Weigh, inbox, oneshot,
};

use super::Wanted;
use super::sessions::{AtServers, Key};

/// Subscriptions of one session that wait for the server to say that it heard.
const ACKNOWLEDGED_WAITING_MAX: usize = 1000;
/// Changes of what is wanted that may wait for the task of a stream.
const WANTED_WAITING_MAX: usize = 256;
const WANTED_BYTES_MAX: usize = 16 << 20;

/// What is wanted in a session, and the task that listens for it.
pub(super) struct Wish {
    said: Wanted,
    subscribed: BTreeSet<Box<str>>,
    sender: InboxSender<Wanted>,
    /// Resources that the server said it tells of, on the stream that was last opened for them.
    acknowledged: BTreeSet<Box<str>>,
    waiting: Vec<(Box<str>, OneshotSender<()>)>,
}

impl Weigh for Wanted {
    fn bytes(&self) -> usize {
        self.uris.iter().map(|uri| uri.len() + size_of::<Box<str>>()).sum::<usize>() + 16
    }
}

impl AtServers {
    /// Changes what is wanted in a session: what was said for it, and the resources its client
    /// subscribed to. A receiver for what will be wanted, where no core listens yet.
    pub(super) fn want(
        &self,
        key: &Key,
        change: impl FnOnce(&mut Wanted, &mut BTreeSet<Box<str>>),
    ) -> Option<InboxReceiver<Wanted>> {
        let mut table = self.table.lock();
        let before = table.wanted.remove(key);
        let (mut said, mut subscribed, last, acknowledged, mut waiting) = match before {
            Some(Wish { said, subscribed, sender, acknowledged, waiting }) => {
                (said, subscribed, Some(sender), acknowledged, waiting)
            }
            None => Default::default(),
        };
        change(&mut said, &mut subscribed);
        waiting.retain(|(uri, _)| subscribed.contains(uri));
        let mut all = said.clone();
        all.uris.extend(subscribed.iter().cloned());
        if all.is_nothing() {
            return None;
        }
        if let Some(sender) = last
            && sender.push(all.clone()).is_ok()
        {
            let wish = Wish { said, subscribed, sender, acknowledged, waiting };
            table.wanted.insert(key.clone(), wish);
            return None;
        }
        let (sender, receiver) = inbox(WANTED_WAITING_MAX, WANTED_BYTES_MAX);
        // There is room for the first one.
        let _ = sender.push(all);
        let acknowledged = BTreeSet::new();
        let wish = Wish { said, subscribed, sender, acknowledged, waiting };
        table.wanted.insert(key.clone(), wish);
        Some(receiver)
    }

    /// Hears when the server has said that it tells of a resource; `None` where it has, or where
    /// nobody listens.
    pub(super) fn acknowledged(&self, key: &Key, uri: &str) -> Option<OneshotReceiver<()>> {
        let mut table = self.table.lock();
        let wish = table.wanted.get_mut(key)?;
        if wish.acknowledged.contains(uri) || wish.waiting.len() >= ACKNOWLEDGED_WAITING_MAX {
            return None;
        }
        let (sender, receiver) = oneshot();
        wish.waiting.push((uri.into(), sender));
        Some(receiver)
    }

    /// The server tells of these resources now, and of no others.
    pub(super) fn note_acknowledged(&self, key: &Key, uris: &BTreeSet<Box<str>>) {
        let mut table = self.table.lock();
        let Some(wish) = table.wanted.get_mut(key) else { return };
        wish.acknowledged.clone_from(uris);
        let waiting = std::mem::take(&mut wish.waiting);
        let (heard, waiting) = waiting.into_iter().partition(|(uri, _)| uris.contains(uri));
        wish.waiting = waiting;
        drop(table);
        let heard: Vec<(Box<str>, OneshotSender<()>)> = heard;
        for (_, sender) in heard {
            let _ = sender.send(());
        }
    }
}
