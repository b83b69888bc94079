"""What ranks agree on, share and are started with."""
