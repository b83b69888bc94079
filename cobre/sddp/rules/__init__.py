"""Rules of training that read records: when to stop, which cuts to keep."""
