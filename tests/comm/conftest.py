"""Its place on the import path gives the tests of all backends the helper modules beside it."""
