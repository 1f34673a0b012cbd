//! Whether a request may be made now: policy, time, trust and limits.
//!
//! ```text
//! View ──Permission──▶ decide(tool, trust, side effect, now) ──▶ Decision { allowed, Reason }
//!  └────limits───────▶ Limiter ──handles(view, caller)──▶ Handles ──take──▶ ok or Limited
//! explain: both, as an operator reads them
//! definitions: what of an upstream server is accepted, what waits
//! ```
//!
//! Invariants:
//! - what a policy says of a tool is worked out when the catalog is compiled; what is left for a
//!   call is a comparison of trust and a look at the clock;
//! - a limit is exact over all cores: never more is granted than its rate and burst (see `pace`);
//! - a request is charged at every level or at none (see `handles`);
//! - every refusal has a [`Reason`] whose code never changes;
//! - in a policy that only observes, what it would have refused is allowed and said.
//!
//! No clock: `now_ms` is Unix milliseconds, for policies; `now_ns` is a monotonic clock's
//! nanoseconds, the same one for all cores, for limits. This room decides; it does not answer.

mod decision;
pub mod definitions;
mod explain;
mod gauge;
mod handles;
mod limited;
mod limiter;
mod moment;
mod pace;
mod reason;
mod window;

pub use decision::{Decision, decide};
pub use explain::{
    Conclusion, ExplainedCall, ExplainedLimit, ExplainedTool, Explanation, Question, Step,
    UpstreamStanding, explain,
};
pub use handles::{Handles, Listening, Usage};
pub use limited::{Class, Level, Limited};
pub use limiter::{ACCOUNTS_MAX, Limiter, SweptAccounts};
pub use reason::{Blame, Reason};
