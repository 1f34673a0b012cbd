//! The limits of one caller in one view, found once: taking is a few atomics from then on.
//!
//! A take goes over every level that has a limit for it (tenant, client application, caller, for a
//! call the tool). It looks at all of them first, and charges them only if none refuses, so a
//! refused request uses up nothing anywhere. Between the look and the charge another core may be
//! quicker: then what was charged already is given back, and the request is refused. In that
//! instant a third may be refused though there was room; nobody is ever granted what another got,
//! unless a core stands still between the two steps for longer than the units take to earn, which
//! can grant these units once more.

use std::sync::Arc;
use std::time::Duration;

use super::gauge::{Capped, Place};
use super::limited::RATES;
use super::pace::{Account, Pace};
use super::{Class, Level, Limited};
use crate::catalog::{CompiledTool, Rate, SideEffect, View};

/// How long to wait for a stream's place to become free: nobody knows.
const STREAM_RETRY: Duration = Duration::from_secs(5);

/// One limit somebody is under.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    pub(super) account: Arc<Account>,
    pub(super) pace: Pace,
    pub(super) rate: Rate,
    pub(super) level: Level,
    pub(super) class: Class,
}

impl Meter {
    fn limited(&self, wait_ns: u64) -> Limited {
        let retry_after = Duration::from_nanos(wait_ns);
        Limited { level: self.level, class: self.class, retry_after }
    }

    fn usage(&self, now_ns: u64) -> Usage {
        Usage {
            level: self.level,
            class: self.class,
            rate: Some(self.rate),
            most: self.rate.burst(),
            remaining: self.account.remaining(self.pace, now_ns),
        }
    }
}

/// The limits of one level or several, by class.
#[derive(Debug, Default)]
pub(super) struct Meters {
    pub(super) rates: [Vec<Meter>; RATES],
    pub(super) streams: Vec<(Level, Capped)>,
}

impl Meters {
    fn of(&self, class: Class) -> std::slice::Iter<'_, Meter> {
        class.place().map_or_else(Default::default, |place| self.rates[place].iter())
    }
}

/// The limits all callers of a view share.
#[derive(Debug)]
pub(super) struct ViewMeters {
    /// Keeps the tools of `tools` where they are.
    pub(super) view: Arc<View>,
    pub(super) shared: Meters,
    /// The limits of tools that have one, by the tool's address.
    pub(super) tools: Vec<(usize, Meter)>,
}

/// A tool as a key: its address, which is its own as long as its view is held.
pub(super) fn address(tool: &CompiledTool) -> usize {
    std::ptr::from_ref(tool).addr()
}

/// The limits of one caller in one view.
///
/// Resolved by [`Limiter::handles`](super::Limiter::handles); good for as long as the view is the
/// caller's.
#[derive(Debug)]
pub struct Handles {
    pub(super) shared: Arc<ViewMeters>,
    pub(super) own: Meters,
}

impl Handles {
    /// The view they are for.
    pub fn view(&self) -> &Arc<View> {
        &self.shared.view
    }

    /// Takes `weight` units of a class at every level, or none at all.
    ///
    /// `now_ns` is the time of a monotonic clock, the same one for all cores, since any moment.
    ///
    /// # Errors
    /// The limit that holds longest.
    pub fn take(&self, class: Class, weight: u32, now_ns: u64) -> Result<(), Limited> {
        take_all(self.of(class), weight, now_ns)
    }

    /// Takes what a call of a tool costs at every level, or nothing at all: the tool's weight in
    /// `tool_calls`, in `mutations` where it changes something, and in the tool's own limit, which
    /// one that is no longer assigned does not have.
    ///
    /// # Errors
    /// The limit that holds longest.
    pub fn take_call(
        &self,
        tool: &CompiledTool,
        side_effect: SideEffect,
        now_ns: u64,
    ) -> Result<(), Limited> {
        let mutations = (side_effect != SideEffect::Read).then(|| self.of(Class::Mutations));
        let meters = self
            .of(Class::ToolCalls)
            .chain(mutations.into_iter().flatten())
            .chain(self.of_tool(tool));
        take_all(meters, tool.weight, now_ns)
    }

    /// Takes a place for a stream the caller listens on, for as long as the value lives.
    ///
    /// # Errors
    /// The first level whose places are all taken.
    pub fn listen(&self) -> Result<Listening, Limited> {
        let places = self.streams().map(|(level, capped)| {
            let retry_after = STREAM_RETRY;
            let full = Limited { level: *level, class: Class::ListeningStreams, retry_after };
            capped.enter().ok_or(full)
        });
        // Places taken before one that fails are given back as they are dropped.
        Ok(Listening { _places: places.collect::<Result<_, _>>()? })
    }

    /// Every limit, with what is left of it; of the limits of tools that of `tool`.
    pub fn usage(&self, tool: Option<&CompiledTool>, now_ns: u64) -> Vec<Usage> {
        let classes = [Class::Requests, Class::ToolCalls, Class::Mutations, Class::Light];
        let tools = tool.into_iter().filter_map(|tool| self.of_tool(tool));
        let meters = classes.into_iter().flat_map(|class| self.of(class)).chain(tools);
        let mut usage: Vec<Usage> = meters.map(|meter| meter.usage(now_ns)).collect();
        usage.extend(self.streams().map(|(level, capped)| Usage {
            level: *level,
            class: Class::ListeningStreams,
            rate: None,
            most: capped.most,
            remaining: capped.most.saturating_sub(capped.gauge.open()),
        }));
        usage
    }

    fn of(&self, class: Class) -> impl Iterator<Item = &Meter> + Clone {
        self.shared.shared.of(class).chain(self.own.of(class))
    }

    fn of_tool(&self, tool: &CompiledTool) -> Option<&Meter> {
        // Most tools have none.
        tool.limit?;
        let tools = &self.shared.tools;
        let place = |tool| tools.binary_search_by_key(&address(tool), |(address, _)| *address);
        if let Ok(place) = place(tool) {
            return Some(&tools[place].1);
        }
        // One that goes on under a name it had before, and was compiled anew.
        let same = self
            .view()
            .assigned()
            .find(|same| same.toolset == tool.toolset && same.source_name == tool.source_name)?;
        place(same).ok().map(|place| &tools[place].1)
    }

    fn streams(&self) -> impl Iterator<Item = &(Level, Capped)> {
        self.shared.shared.streams.iter().chain(&self.own.streams)
    }
}

/// A place among the streams that are listened on, given back when dropped.
#[derive(Debug)]
pub struct Listening {
    _places: Vec<Place>,
}

/// A limit and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Whose limit.
    pub level: Level,
    /// What it counts.
    pub class: Class,
    /// The rate; `None` for streams, of which a number may be open.
    pub rate: Option<Rate>,
    /// Most units at once, or most streams.
    pub most: u32,
    /// How many of them are free.
    pub remaining: u32,
}

/// Looks at all, then charges all. See the module.
fn take_all<'a>(
    meters: impl Iterator<Item = &'a Meter> + Clone,
    weight: u32,
    now_ns: u64,
) -> Result<(), Limited> {
    let mut longest: Option<Limited> = None;
    for meter in meters.clone() {
        if let Err(wait_ns) = meter.account.check(meter.pace, weight, now_ns) {
            let limited = meter.limited(wait_ns);
            if longest.is_none_or(|longest| longest.retry_after < limited.retry_after) {
                longest = Some(limited);
            }
        }
    }
    if let Some(limited) = longest {
        return Err(limited);
    }
    for (charged, meter) in meters.clone().enumerate() {
        if let Err(wait_ns) = meter.account.charge(meter.pace, weight, now_ns) {
            meters.take(charged).for_each(|meter| meter.account.refund(meter.pace, weight));
            return Err(meter.limited(wait_ns));
        }
    }
    Ok(())
}
