//! How a section of a file becomes a structure: each parameter is written once, with its type, bounds and meaning.

use crate::leaves::Leaves;
use crate::value::Quantity;
use crate::{Location, Parameter, PlatformError, Source, Value};

/// A parameter of a platform with all that its file says of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Section and name, as `Platform::with` takes them: `core.wc_buffers`, `hop.0.latency_ns`.
    pub key: String,
    /// The parameter's name, unit and bounds.
    pub parameter: Parameter,
    /// The value as a file has it; empty where there is none.
    pub value: String,
    /// Where it comes from; None for a default.
    pub source: Option<Source>,
    /// Line of the file, if the file gives the value.
    pub location: Option<Location>,
    /// Whether all platforms of its kind have it.
    pub shared: bool,
    /// Whether it counts as chosen for this platform: see [`Value::is_knob`].
    pub knob: bool,
}

/// The row of a value that has been read.
pub(crate) fn row<T: Quantity>(section: &str, parameter: &Parameter, value: &Value<T>) -> Row {
    Row {
        key: format!("{section}.{}", parameter.name),
        parameter: *parameter,
        value: value.value.to_scalar().map_or_else(String::new, |scalar| scalar.to_string()),
        source: value.source.clone(),
        location: value.location.clone(),
        shared: value.shared,
        knob: value.is_knob(),
    }
}

/// A structure that a section of a file becomes.
pub(crate) trait Section: Sized {
    /// Its parameters, in the order of the file.
    const PARAMETERS: &'static [Parameter];
    /// Takes the parameters of a section of this name and checks each.
    fn take(leaves: &mut Leaves, section: &str) -> Result<Self, PlatformError>;
    /// Adds a row for each parameter.
    fn rows(&self, section: &str, rows: &mut Vec<Row>);
}

/// Defines the structure of a section. `or` gives the default of an optional parameter.
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $( $(#[doc = $about:literal])+ $field:ident: $type:ty, $bounds:expr $(, or $default:expr)?; )+
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        pub struct $name {
            $( $(#[doc = $about])+ pub $field: crate::Value<$type>, )+
        }

        impl crate::section::Section for $name {
            const PARAMETERS: &'static [crate::Parameter] = &[
                $( crate::Parameter {
                    name: stringify!($field),
                    about: concat!($($about),+),
                    bounds: $bounds,
                    optional: section!(@is_optional $($default)?),
                }, )+
            ];

            fn take(
                leaves: &mut crate::leaves::Leaves,
                section: &str,
            ) -> Result<Self, crate::PlatformError> {
                let mut parameters = Self::PARAMETERS.iter();
                let mut next = || parameters.next().expect("there is one for each field");
                Ok($name { $( $field: leaves.take(section, next(), section!(@default $($default)?))?, )+ })
            }

            fn rows(&self, section: &str, rows: &mut Vec<crate::Row>) {
                let mut parameters = Self::PARAMETERS.iter();
                let mut next = || parameters.next().expect("there is one for each field");
                $( rows.push(crate::section::row(section, next(), &self.$field)); )+
            }
        }
    };
    (@is_optional) => { false };
    (@is_optional $default:expr) => { true };
    (@default) => { None };
    (@default $default:expr) => { Some($default) };
}

/// Defines a type whose values are words.
macro_rules! words {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident { $( $(#[doc = $about:literal])+ $variant:ident = $word:literal, )+ }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
        pub enum $name { $( $(#[doc = $about])+ #[serde(rename = $word)] $variant, )+ }

        impl $name {
            /// The words, for the bounds of a parameter.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The word of a file.
            pub const fn word(self) -> &'static str {
                match self { $( $name::$variant => $word, )+ }
            }
        }

        impl crate::value::Quantity for $name {
            fn from_scalar(scalar: &crate::Scalar) -> Option<$name> {
                match scalar {
                    crate::Scalar::Word(word) => match word.as_str() { $( $word => Some($name::$variant), )+ _ => None },
                    crate::Scalar::Number(_) => None,
                }
            }

            fn to_scalar(&self) -> Option<crate::Scalar> {
                Some(crate::Scalar::Word(self.word().to_owned()))
            }
        }
    };
}

pub(crate) use {section, words};
