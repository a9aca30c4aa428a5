"""What people may call models and nodes."""

NAME = r"[A-Za-z0-9][A-Za-z0-9._:/@-]*"
"""A regular expression, to be matched whole."""
LONGEST_MODEL_NAME = 128
LONGEST_NODE_NAME = 255

ANTI_AFFINITY = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?"
"""What replicas share that share no node."""
