//! Asking a server what it offers.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::{catalog::UpstreamServer, governance::definitions::Offer};

/// What a server offers, or why that is not known: a text that is fit to be shown.
pub(crate) type Discovered = Result<Offer, String>;

/// Who asks servers what they offer.
pub(crate) trait Discover {
    /// Asks one. Dropping the future ends the asking.
    fn discover<'a>(
        &'a self,
        server: &'a Arc<UpstreamServer>,
    ) -> Pin<Box<dyn Future<Output = Discovered> + 'a>>;
}
