//! Documents of the tests: there are none. The tests of `oxmcp-redis` with servers that they start are in `it/`.
