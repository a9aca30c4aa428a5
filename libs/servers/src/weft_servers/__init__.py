"""Real NATS and Postgres from wheels, under a supervisor, and the keys and tokens of the mesh.

Import the module that you need: this one stays empty because the supervisor and the registry pay for what it
imports.
"""
