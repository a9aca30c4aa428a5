"""A service manager that started this launcher, as systemd is one: it is told when the mesh is up.

The protocol is sd_notify's: datagrams to the socket that `NOTIFY_SOCKET` names. What is printed under such a manager
ends up in the system's journal, which others may read.
"""

import os
import socket
from collections.abc import MutableMapping

VARIABLE = "NOTIFY_SOCKET"
_MOST_S = 1.0


class ServiceManager:
    """Whoever waits for this process to be ready; nobody, where it was started by hand."""

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        """Takes the socket's name out of the environment: it is not for what this process starts."""
        self._address = environ.pop(VARIABLE, "")

    @property
    def there(self) -> bool:
        return bool(self._address)

    def tell(self, **said: str) -> None:
        """Send fields such as `READY="1"`. A manager that doesn't take them keeps nothing from going on."""
        if not self._address:
            return
        text = "\n".join(f"{name}={value}" for name, value in said.items())
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_MOST_S)
                sender.sendto(text.encode(), address)
        except OSError:
            return
