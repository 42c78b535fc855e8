//! The part of the commands that tests use, too: [`packages`], the programs of the operating system.

pub mod packages;
