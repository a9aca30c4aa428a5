"""The values of the secrets that a replica's arguments name, which come to its host by a private way."""


class SecretMissing(Exception):
    """A value that this host was not given; the message is a sentence that names the secret alone."""


def resolved(name: str) -> str:
    """The value of a secret. Raises SecretMissing."""
    raise SecretMissing(f"the secret {name} is not there: this worker hands no secrets to its engines")
