"""Units of systemd: for a first machine, a worker, a server of the log."""
