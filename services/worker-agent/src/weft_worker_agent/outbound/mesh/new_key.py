"""`python -m weft_worker_agent.outbound.mesh.new_key`: a new key on the curve P-256 on stdout, and behind a zero
byte its public half (DER). A program of its own, run once in a node's life: what makes keys would stay in the
agent's memory for ever.
"""

import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def main() -> None:
    """Write both halves."""
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    sys.stdout.buffer.write(private + b"\0" + public)


if __name__ == "__main__":
    main()
