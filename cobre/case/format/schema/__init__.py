"""pydantic models of the JSON files: shape, types and limits of single fields."""
