"""Tables of types of entities that are modules of their own; a module that is put here is found by itself."""
