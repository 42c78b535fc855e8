//! Empty library: the tests of `oxmcp-redis`, which start Redis servers, are in `it/`.
