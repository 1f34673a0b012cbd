//! Whom a session belongs to.

/// Most bytes of each part. Ids of the catalog are shorter; a caller's name may be long.
const PART_BYTES_MAX: usize = 255;

/// Tenant, client application and caller: all three must be those that opened the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Owner<'a> {
    tenant: &'a str,
    client_application: &'a str,
    caller: &'a str,
}

/// A part of an owner is longer than a record can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a part of a session's owner has {bytes} bytes; at most 255 can be kept")]
pub struct OwnerTooLong {
    /// How long it is.
    pub bytes: usize,
}

impl<'a> Owner<'a> {
    /// The owner with these parts. `caller` is the caller's stable name (such as its key's id), not
    /// its secret.
    pub fn new(
        tenant: &'a str,
        client_application: &'a str,
        caller: &'a str,
    ) -> Result<Self, OwnerTooLong> {
        let bytes = tenant.len().max(client_application.len()).max(caller.len());
        if bytes > PART_BYTES_MAX {
            return Err(OwnerTooLong { bytes });
        }
        Ok(Self { tenant, client_application, caller })
    }

    /// The tenant.
    pub fn tenant(&self) -> &'a str {
        self.tenant
    }

    /// The client application of the tenant.
    pub fn client_application(&self) -> &'a str {
        self.client_application
    }

    /// The caller's stable name.
    pub fn caller(&self) -> &'a str {
        self.caller
    }

    /// The owner a record was made with, whose parts are bounded already.
    pub(super) fn of_record([tenant, client_application, caller]: [&'a str; 3]) -> Self {
        Self { tenant, client_application, caller }
    }

    pub(super) fn parts(&self) -> [&'a str; 3] {
        [self.tenant, self.client_application, self.caller]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_bounded() {
        let long = "x".repeat(255);
        let owner = Owner::new("t", "c", &long).unwrap();
        assert_eq!(owner.parts(), ["t", "c", &long]);
        let longer = "x".repeat(256);
        for [tenant, client, caller] in
            [[&*longer, "c", "k"], ["t", &longer, "k"], ["t", "c", &longer]]
        {
            let error = Owner::new(tenant, client, caller).unwrap_err();
            assert_eq!(error, OwnerTooLong { bytes: 256 });
        }
    }
}
