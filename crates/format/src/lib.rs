//! Plans carried out.
