#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| oxmcp_fuzz::token(data));
