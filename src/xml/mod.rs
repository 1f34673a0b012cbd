//! XML read within bounds, and written.
//!
//! Only this room names `roxmltree`.
