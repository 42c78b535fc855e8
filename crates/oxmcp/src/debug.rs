//! Debug output of types with members that do not implement `Debug`, such as handlers.

/// Implements `Debug` with the given members, and `..` for the others.
macro_rules! opaque_debug {
    (
        $([$($generic:tt)+])? $name:ident $(<$($parameter:tt),+>)?
        $(, |$it:ident| { $($field:ident: $value:expr),+ $(,)? })?
    ) => {
        impl $(<$($generic)+>)? ::std::fmt::Debug for $name $(<$($parameter),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                $(let $it = self;)?
                f.debug_struct(stringify!($name))
                    $($(.field(stringify!($field), &$value))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use opaque_debug;
