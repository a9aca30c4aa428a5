"""Settings of the relay."""

import ssl
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, model_validator
from weft_runtime.settings import HTTP_URL, BadSetting

from weft_observer.settings import ObserverSettings
from weft_observer.webhook.signature import BadSecret, Signer

_HERE = ("localhost", "127.0.0.1", "::1")


class WebhookSettings(ObserverSettings):
    """Where facts are posted to, and by which secret they are signed."""

    webhook_url: Annotated[str, Field(pattern=HTTP_URL)]
    """An `https` URL; `http` on this machine only, unless `webhook_plain`."""
    webhook_secret_file: Path
    """`whsec_` and 24 to 64 bytes in base64 on a line; with two lines, as while it is changed, both sign."""
    webhook_authority: Path | None = None
    """Certificates of who vouches for the receiver. None: this machine's."""
    webhook_plain: bool = False
    """Whether what is posted may be read on its way: `http` to other machines."""
    webhook_timeout: Annotated[float, Field(ge=0.1, le=120)] = 15.0
    """Seconds that one post may take, its answer included."""

    @model_validator(mode="after")
    def _is_private(self) -> "WebhookSettings":
        url = urlsplit(self.webhook_url)
        if url.scheme == "http" and url.hostname not in _HERE and not self.webhook_plain:
            raise ValueError("WEFT_WEBHOOK_URL: use https, or say WEFT_WEBHOOK_PLAIN=true where nobody listens between")
        return self

    def signer(self) -> Signer:
        """Raises BadSetting."""
        try:
            return Signer(self.webhook_secret_file.read_text().split())
        except OSError as error:
            raise BadSetting(f"WEFT_WEBHOOK_SECRET_FILE can't be read: {error.strerror}") from None
        except (BadSecret, UnicodeDecodeError) as error:
            raise BadSetting(f"WEFT_WEBHOOK_SECRET_FILE: {error}") from None

    def verify(self) -> ssl.SSLContext:
        """By whom the receiver is known. Raises BadSetting."""
        try:
            return ssl.create_default_context(cafile=self.webhook_authority)
        except (OSError, ValueError) as error:
            raise BadSetting(f"WEFT_WEBHOOK_AUTHORITY can't be used: {error}") from None
