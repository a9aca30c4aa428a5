"""What a secret's value is to a source: a hub's or a web server's token, a bucket's keys."""

from dataclasses import replace

from weft_contracts.facts.source import HfSource, HttpsSource, RemoteSource, S3Source

from weft_sources.refused import SourceRefused
from weft_sources.settings import SourceSettings


def settings_with(settings: SourceSettings, source: RemoteSource, value: str) -> SourceSettings:
    """The settings to ask a source by, with the value of the secret that it names in the place of the worker's own.

    Raises SourceRefused for what can't be one, without a word of it.
    """
    value = value.strip()
    if not value or not value.isascii() or not value.isprintable():
        raise SourceRefused(f"the secret {source.secret} holds no token: want printable letters on one line")
    match source:
        case HfSource():
            return replace(settings, hub_token=value)
        case HttpsSource():
            return replace(settings, web_token=value)
        case S3Source():
            access, _, rest = value.partition(":")
            secret, _, session = rest.partition(":")
            if not access or not secret:
                raise SourceRefused(
                    f"the secret {source.secret} holds no keys of a bucket: want <access key>:<secret key>"
                )
            return replace(settings, s3_access_key=access, s3_secret_key=secret, s3_session_token=session)
