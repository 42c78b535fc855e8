//! Open enums: sets of names that a later revision may extend; and setters.

/// Defines an enum over the names that the protocol defines, which keeps unknown names.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$doc:meta])* $variant:ident = $text:literal, )+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$doc])* $variant, )+
            /// A name that this version of the crate does not know.
            Unknown(Box<str>),
        }

        impl $name {
            /// Returns the name on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )+
                    Self::Unknown(name) => name,
                }
            }
        }

        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                match name {
                    $( $text => Self::$variant, )+
                    _ => Self::Unknown(name.into()),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                std::borrow::Cow::<str>::deserialize(deserializer).map(|name| Self::from(&*name))
            }
        }
    };
}

/// Defines methods that set an optional member and return the value, for building in one expression.
macro_rules! setters {
    ($type:ty { $( $(#[$doc:meta])* $method:ident => $field:ident: $value:ty, )+ }) => {
        impl $type {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $method(mut self, value: impl Into<$value>) -> Self {
                    self.$field = Some(value.into());
                    self
                }
            )+
        }
    };
}

pub(crate) use {open_enum, setters};
