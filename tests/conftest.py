"""Its place on the import path gives all tests the helper modules beside it."""
