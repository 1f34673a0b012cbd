//! How many files and sockets this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The number of file descriptors this process may have, after raising it as far as it may be
/// raised without rights.
pub fn descriptors_max() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let now = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!("the limit of open files stays as it is: {error}");
            limit.current
        }
    };
    now.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_once_and_stays() {
        let raised = descriptors_max();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(descriptors_max(), raised);
    }
}
