"""Ranks of an MPI job, by the library that mpi4py was built for."""
