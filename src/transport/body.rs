//! What is inside a message.

use std::fmt;
use std::ops::Deref;

use bytes::Bytes;

use crate::error::{Error, Result};

/// The most bytes that need no memory of their own: what fits into the room of a [`Bytes`].
pub const SHORT: usize = 23;

/// The bytes inside a message. Most control messages are a number or two; these lie in the body itself.
#[derive(Clone)]
pub enum Body {
    Short { length: u8, bytes: [u8; SHORT] },
    Shared(Bytes),
}

/// What a message is sent with: its body, in two parts. The second part of a long message is sent from where it lies, without a copy;
/// who receives it sees one body.
#[derive(Clone, Debug)]
pub struct Freight {
    pub front: Body,
    /// Empty in most messages.
    pub rest: Bytes,
}

impl Freight {
    /// Number of bytes of both parts.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.front.len() + self.rest.len()
    }

    /// Both parts as one.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn into_body(self) -> Result<Body> {
        match (self.front.is_empty(), self.rest.is_empty()) {
            (_, true) => Ok(self.front),
            (true, false) => Ok(self.rest.into()),
            (false, false) => {
                let mut both = buffer(self.len())?;
                both.extend_from_slice(&self.front);
                both.extend_from_slice(&self.rest);
                Ok(Bytes::from(both).into())
            }
        }
    }
}

/// An empty buffer with room for a message of so many bytes.
///
/// # Errors
/// If there is no memory for it.
pub fn buffer(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    match buffer.try_reserve_exact(bytes) {
        Ok(()) => Ok(buffer),
        Err(_) => Err(Error::Failed(format!("there is no memory for a message of {bytes} bytes"))),
    }
}

impl<T: Into<Body>> From<T> for Freight {
    fn from(body: T) -> Freight {
        Freight { front: body.into(), rest: Bytes::new() }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Body::Short { length, bytes } => &bytes[..SHORT.min(usize::from(*length))],
            Body::Shared(bytes) => bytes,
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Shared(bytes)
    }
}

impl From<Body> for Bytes {
    fn from(body: Body) -> Bytes {
        match body {
            Body::Short { .. } => Bytes::copy_from_slice(&body),
            Body::Shared(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Body {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Body {}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}
