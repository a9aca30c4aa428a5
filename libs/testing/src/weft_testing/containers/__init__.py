"""Real containers in tests: podman with settings of its own, bases made by mmdebstrap, and this tree's images."""
