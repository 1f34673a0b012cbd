//! The catalog: what is offered to whom.

mod names;

pub use names::{
    ClientApplicationId, ConnectionId, InvalidName, NAME_BYTES_MAX, TenantId, ToolName, ToolsetId,
};
