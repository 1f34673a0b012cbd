//! Event streams (WHATWG HTML, section 9.2), both ways.

mod parser;
mod writer;

pub use parser::{Event, Parser, ParserError};
pub use writer::{comment, event};
