//! From the description of an API to the entities of a catalog.
//!
//! This room does no I/O: documents come in as bytes, and what is still wanted comes out.
