//! Bytes that MPI reads while they are sent.

use bytes::Bytes;

/// Bytes on their way out. Their address does not change when the value moves.
pub(super) enum Outgoing {
    Own(Vec<u8>),
    Shared(Bytes),
}

impl Outgoing {
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Outgoing::Own(vec) => vec,
            Outgoing::Shared(bytes) => bytes,
        }
    }
}
