"""A communicator over files in a directory that all ranks can write to."""
