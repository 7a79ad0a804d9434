//! A key of a curve as its file has it: one text for all places, or a list with one for each.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use toml::Spanned;

/// One text for all places of a curve, or one for each. A whole number is a text, too.
#[derive(Clone, Debug)]
pub(super) enum Texts {
    All(String),
    Each(Vec<Spanned<Text>>),
}

/// A text, or a whole number as one.
#[derive(Clone, Debug)]
pub(super) struct Text(pub String);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a whole number or a list of these")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts::All(text.into()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Texts, E> {
                Ok(Texts::All(number.to_string()))
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Texts, S::Error> {
                let mut each = Vec::new();
                while let Some(one) = list.next_element()? {
                    each.push(one);
                }
                Ok(Texts::Each(each))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.into()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Text, E> {
                Ok(Text(number.to_string()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}
