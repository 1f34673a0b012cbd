//! Results that are files: kept for a while as resources, and in the result itself where they are
//! small.
//!
//! Pictures and recordings are for a model to see and hear, so they stand in the result up to a
//! larger size than other files do.

use std::sync::Arc;

use super::{parts, trail::Trail};
use crate::{
    catalog::ViewTool,
    mcp::{File, KEPT_RESULTS, KeptAt, ToolOutcome},
};

/// Largest picture or recording that stands in a result, in bytes.
const MEDIA_BYTES_MAX: u64 = 1024 * 1024;
/// And any other file.
const OTHER_BYTES_MAX: u64 = 64 * 1024;

/// The result of a call whose tool gave a file.
pub(crate) fn within_budget(trail: &mut Trail, tool: &ViewTool, mut file: File) -> ToolOutcome {
    let is_media = file.media_type.starts_with("image/") || file.media_type.starts_with("audio/");
    let inline_max = if is_media { MEDIA_BYTES_MAX } else { OTHER_BYTES_MAX };
    // In a result it is base64, four characters for three bytes.
    let budget = tool.budget.bytes.map_or(u64::MAX, |bytes| bytes / 4 * 3);
    let is_link = file.bytes.len() as u64 > budget.min(inline_max);
    if is_media && !is_link {
        return ToolOutcome::File(Box::new(file));
    }
    let owner = parts::owner(&trail.view, trail.caller);
    let kept = &trail.core.shared.kept;
    let now_ms = trail.core.clock.now_ms();
    let handle = kept.keep_file(owner, tool.name.clone(), Arc::new(file.clone()), now_ms);
    trail.cut |= is_link;
    match handle {
        Some(handle) => {
            file.kept_at = Some(KeptAt { uri: format!("{KEPT_RESULTS}{handle}"), is_link });
            ToolOutcome::File(Box::new(file))
        }
        None if is_link => ToolOutcome::Failure {
            text: format!(
                "The call was made. Its result is a file of {} bytes ({}), which is too large to \
                 be given or kept.",
                file.bytes.len(),
                file.media_type
            ),
        },
        None => ToolOutcome::File(Box::new(file)),
    }
}
