//! Bodies of messages.

pub(crate) mod row;

use std::cell::OnceCell;
use std::fmt;
use std::num::NonZeroU8;
use std::ops::Deref;
use std::rc::Rc;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::memory;
use row::Row;

/// Maximum number of bytes that are stored inline. A body is thereby three words long, and a message with its envelope one less than a line
/// of a processor's cache.
pub const SHORT: usize = 23;

/// The bytes inside a message. Most control messages are a number or two; these lie in the body itself.
#[derive(Clone)]
pub struct Body(Form);

#[derive(Clone)]
enum Form {
    Short { length_and_one: NonZeroU8, bytes: [u8; SHORT] },
    Long(Rc<Long>),
}

enum Long {
    Bytes(Bytes),
    Row(Written),
}

/// A row with the number of its values in front. The bytes are put together when they are first read.
struct Written {
    row: Row,
    flat: OnceCell<Vec<u8>>,
}

/// Bytes of the number in front of a row.
const COUNT: usize = size_of::<u64>();

impl Body {
    /// A body of the first `length` of these bytes; `None` if it is too long for the short form.
    pub fn short(bytes: [u8; SHORT], length: usize) -> Option<Body> {
        let length_and_one = NonZeroU8::new(u8::try_from(length + 1).ok()?).filter(|_| length <= SHORT)?;
        Some(Body(Form::Short { length_and_one, bytes }))
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Short { length_and_one, .. } => usize::from(length_and_one.get() - 1),
            Form::Long(long) => match &**long {
                Long::Bytes(bytes) => bytes.len(),
                Long::Row(written) => COUNT + written.row.bytes(),
            },
        }
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row that this body was made from, while it is in the process where it was made.
    pub fn row(&self) -> Option<&Row> {
        match &self.0 {
            Form::Long(long) => match &**long {
                Long::Row(written) => Some(&written.row),
                Long::Bytes(_) => None,
            },
            Form::Short { .. } => None,
        }
    }
}

/// The body of a message to be sent, in two parts. The second part of a long message is sent from where it lies, without a copy; its receiver
/// sees one body.
#[derive(Clone, Debug)]
pub struct OutgoingBody {
    /// The first part; the whole body of most messages.
    pub front: Body,
    /// Empty in most messages.
    pub rest: Bytes,
}

impl OutgoingBody {
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

/// Returns an empty buffer with room for a message of `bytes` bytes.
///
/// # Errors
/// If there is no memory for it.
pub fn buffer(bytes: usize) -> Result<Vec<u8>> {
    let mut buffer = Vec::new();
    match memory::reserve(&mut buffer, bytes) {
        true => Ok(buffer),
        false => Err(Error::Failed(format!("there is no memory for a message of {bytes} bytes"))),
    }
}

impl<T: Into<Body>> From<T> for OutgoingBody {
    fn from(body: T) -> OutgoingBody {
        OutgoingBody { front: body.into(), rest: Bytes::new() }
    }
}

impl Deref for Body {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short { length_and_one, bytes } => &bytes[..SHORT.min(usize::from(length_and_one.get() - 1))],
            Form::Long(long) => match &**long {
                Long::Bytes(bytes) => bytes,
                Long::Row(written) => written.flat.get_or_init(|| {
                    let mut flat = Vec::with_capacity(COUNT + written.row.bytes());
                    flat.extend_from_slice(&u64::from(written.row.values()).to_le_bytes());
                    written.row.append_to(&mut flat);
                    flat
                }),
            },
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body(Form::Long(Rc::new(Long::Bytes(bytes))))
    }
}

/// Encodes a row as control messages encode a list: the number of values, and the values.
impl From<Row> for Body {
    fn from(row: Row) -> Body {
        Body(Form::Long(Rc::new(Long::Row(Written { row, flat: OnceCell::new() }))))
    }
}

impl From<Body> for Bytes {
    fn from(body: Body) -> Bytes {
        match body.0 {
            Form::Long(long) => match Rc::try_unwrap(long) {
                Ok(Long::Bytes(bytes)) => bytes,
                Ok(Long::Row(written)) => Bytes::copy_from_slice(&Body::from(written.row)),
                Err(shared) => match &*shared {
                    Long::Bytes(bytes) => bytes.clone(),
                    Long::Row(written) => Bytes::copy_from_slice(&Body::from(written.row.clone())),
                },
            },
            Form::Short { .. } => Bytes::copy_from_slice(&body),
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
