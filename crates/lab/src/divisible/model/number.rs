//! The numbers of the closed forms: floating point in the program, exact fractions in the tests.

use std::ops::{Add, Div, Mul};

/// A number that can be added, multiplied and divided. Nothing is ever subtracted in the closed forms, so that no digits are lost.
pub trait Arithmetic: Clone + Add<Output = Self> + Mul<Output = Self> + Div<Output = Self> {
    /// A whole number.
    fn whole(number: u32) -> Self;
}

impl Arithmetic for f64 {
    fn whole(number: u32) -> f64 {
        f64::from(number)
    }
}

#[cfg(test)]
impl Arithmetic for num_rational::BigRational {
    fn whole(number: u32) -> Self {
        Self::from_integer(number.into())
    }
}
