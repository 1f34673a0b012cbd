//! How YAML is read: with bounds on what a few lines may grow to.

/// Most values in one document, counted after its aliases are unfolded.
const NODES_MAX: usize = 4_000_000;
/// Most values that aliases may unfold to.
const ALIASED_NODES_MAX: usize = 200_000;

/// The options of the parser, for documents of so many levels.
pub(crate) fn yaml_options(depth_max: usize) -> serde_saphyr::Options {
    serde_saphyr::options! {
        // YAML 1.1 would read a plain `no` as false.
        strict_booleans: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_depth: depth_max,
            max_documents: 1,
            max_recorded_anchor_events: ALIASED_NODES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: ALIASED_NODES_MAX,
        },
    }
}
