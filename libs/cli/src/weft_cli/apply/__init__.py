"""A file that says what a mesh is to serve, and what it takes to get there."""
