"""`weft top`: what the mesh has to do now, live in a terminal."""
