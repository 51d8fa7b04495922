//! A value of a parameter, and the bounds that it must keep.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::{Location, Source};

/// A parameter's value, where it comes from and where it stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Value<T> {
    /// The value, in the unit of the parameter's name.
    pub value: T,
    /// Source of the value. None: the file does not give it, and this is the default.
    pub source: Option<Source>,
    /// Line of the file. None for defaults.
    #[serde(skip)]
    pub location: Option<Location>,
    /// Whether it stands in a part, so that all platforms of its kind have it.
    pub shared: bool,
}

impl<T> Value<T> {
    /// Whether it was chosen for this platform alone, or so that a figure comes out: fitted, or assumed and not shared.
    pub fn is_knob(&self) -> bool {
        match &self.source {
            Some(Source::Fitted(_)) => true,
            Some(Source::Assumed(_)) => !self.shared,
            Some(Source::Cited(_) | Source::Arithmetic(_)) | None => false,
        }
    }
}

/// A time, in whole picoseconds. Files give nanoseconds with decimals, rounded to the nearest picosecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    picoseconds: u64,
}

impl Time {
    /// No time at all.
    pub const ZERO: Time = Time { picoseconds: 0 };

    /// Makes a time from the unit that it is kept in.
    pub const fn from_picoseconds(picoseconds: u64) -> Time {
        Time { picoseconds }
    }

    /// Whole picoseconds, for a calendar in virtual time.
    pub const fn picoseconds(self) -> u64 {
        self.picoseconds
    }

    /// Nanoseconds, for people.
    pub fn nanoseconds(self) -> f64 {
        self.picoseconds as f64 / 1000.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nanoseconds().fmt(f)
    }
}

impl Serialize for Time {
    /// Nanoseconds, as a file has them.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.nanoseconds())
    }
}

/// What a file can say of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer or a number with decimals.
    Number(f64),
    Word(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Number(number) => number.fmt(f),
            Scalar::Word(word) => write!(f, "{word:?}"),
        }
    }
}

/// Values that a parameter may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// A number from the first to the last, both included.
    Between(f64, f64),
    /// 0, which stands for none or no limit, or a number from the first to the last, both included.
    ZeroOr(f64, f64),
    /// A whole number from the first to the last, both included.
    Whole(u32, u32),
    OneOf(&'static [u32]),
    Words(&'static [&'static str]),
}

impl Bounds {
    /// Whether a value keeps them.
    pub fn allow(&self, value: &Scalar) -> bool {
        match (self, value) {
            (Bounds::Between(least, most), Scalar::Number(number)) => (*least..=*most).contains(number),
            (Bounds::ZeroOr(least, most), Scalar::Number(number)) => {
                *number == 0.0 || (*least..=*most).contains(number)
            }
            (Bounds::Whole(least, most), Scalar::Number(number)) => {
                number.fract() == 0.0 && (f64::from(*least)..=f64::from(*most)).contains(number)
            }
            (Bounds::OneOf(numbers), Scalar::Number(number)) => {
                numbers.iter().any(|one| f64::from(*one) == *number)
            }
            (Bounds::Words(words), Scalar::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bounds::Between(least, most) => write!(f, "a number from {least} to {most}"),
            Bounds::ZeroOr(least, most) => write!(f, "0 or a number from {least} to {most}"),
            Bounds::Whole(least, most) => write!(f, "a whole number from {least} to {most}"),
            Bounds::OneOf(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                write!(f, "one of {}", numbers.join(", "))
            }
            Bounds::Words(words) => write!(f, "one of \"{}\"", words.join("\", \"")),
        }
    }
}

/// A type that a parameter may have.
pub(crate) trait Quantity: Sized {
    /// The value, of a scalar that keeps the parameter's bounds; None if the bounds do not fit the type.
    fn from_scalar(scalar: &Scalar) -> Option<Self>;
    /// The scalar that gives it again; None where a file leaves it out.
    fn to_scalar(&self) -> Option<Scalar>;
}

impl Quantity for Time {
    fn from_scalar(scalar: &Scalar) -> Option<Time> {
        match scalar {
            // Bounds keep it far below what 64 bits hold.
            Scalar::Number(ns) if *ns >= 0.0 => Some(Time { picoseconds: (ns * 1000.0).round() as u64 }),
            _ => None,
        }
    }

    fn to_scalar(&self) -> Option<Scalar> {
        Some(Scalar::Number(self.nanoseconds()))
    }
}

impl Quantity for Option<Time> {
    fn from_scalar(scalar: &Scalar) -> Option<Option<Time>> {
        Time::from_scalar(scalar).map(Some)
    }

    fn to_scalar(&self) -> Option<Scalar> {
        self.and_then(|time| time.to_scalar())
    }
}

impl Quantity for u32 {
    fn from_scalar(scalar: &Scalar) -> Option<u32> {
        match scalar {
            Scalar::Number(number)
                if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number) =>
            {
                Some(*number as u32)
            }
            _ => None,
        }
    }

    fn to_scalar(&self) -> Option<Scalar> {
        Some(Scalar::Number(f64::from(*self)))
    }
}

impl Quantity for f64 {
    fn from_scalar(scalar: &Scalar) -> Option<f64> {
        match scalar {
            Scalar::Number(number) => Some(*number),
            Scalar::Word(_) => None,
        }
    }

    fn to_scalar(&self) -> Option<Scalar> {
        Some(Scalar::Number(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_whole_picoseconds() {
        let time = Time::from_scalar(&Scalar::Number(4.2667)).unwrap();
        assert_eq!((time.picoseconds(), time.to_string().as_str()), (4267, "4.267"));
        assert_eq!(Time::from_scalar(&Scalar::Number(-1.0)), None);
    }

    #[test]
    fn bounds_include_their_ends() {
        let between = Bounds::Between(0.5, 2.0);
        for (number, allowed) in [(0.5, true), (2.0, true), (0.499, false), (2.001, false), (f64::NAN, false)]
        {
            assert_eq!(between.allow(&Scalar::Number(number)), allowed, "{number}");
        }
        let rate = Bounds::ZeroOr(0.5, 2.0);
        for (number, allowed) in
            [(0.0, true), (0.5, true), (2.0, true), (1e-9, false), (-0.1, false), (2.1, false)]
        {
            assert_eq!(rate.allow(&Scalar::Number(number)), allowed, "{number}");
        }
        assert!(!Bounds::Whole(1, 9).allow(&Scalar::Number(1.5)));
        assert!(!Bounds::OneOf(&[64, 128]).allow(&Scalar::Number(96.0)));
        assert!(!Bounds::Words(&["fifo"]).allow(&Scalar::Word("lifo".into())));
        assert!(!Bounds::Words(&["fifo"]).allow(&Scalar::Number(0.0)));
    }
}
