"""`python -m weft_observer.webhook`."""

import sys

from weft_runtime.arguments import refuse_arguments

from weft_observer.observer import Observer
from weft_observer.webhook.receiver import Receiver
from weft_observer.webhook.settings import WebhookSettings


def main() -> int:
    """Relay until told to stop."""
    settings = WebhookSettings()  # pyright: ignore[reportCallIssue]  # the environment has the rest
    observer = Observer(settings)

    def start() -> None:
        receiver = Receiver(settings)
        observer.on()(receiver.post)
        observer.on_stop(receiver.close)

    return observer.run(start)


if __name__ == "__main__":
    refuse_arguments("weft_observer.webhook", WebhookSettings, sys.argv[1:])
    raise SystemExit(main())
