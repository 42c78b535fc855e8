//! The commands' part that tests use, too: [`packages`], the programs of the system.

pub mod packages;
