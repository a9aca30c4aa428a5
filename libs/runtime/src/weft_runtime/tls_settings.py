"""How a service speaks TLS, by its settings. What that needs is imported only where it does."""

from typing import TYPE_CHECKING, Any

from weft_runtime.settings import BadSetting, ServiceSettings

if TYPE_CHECKING:
    from weft_runtime.tls import TlsFolder


def tls_folder(settings: ServiceSettings) -> "TlsFolder | None":
    """The service's certificate; None where the mesh speaks plainly. Raises BadSetting."""
    if settings.tls_folder is None:
        return None
    from weft_runtime.tls import TlsFolder

    folder = TlsFolder(settings.tls_folder)
    try:
        folder.check()
    except (OSError, ValueError) as error:
        raise BadSetting(f"WEFT_TLS_FOLDER can't be used: {error}") from None
    return folder


def nats_tls(settings: ServiceSettings) -> dict[str, Any]:
    """Options of a NATS client that speaks as the service does. Raises BadSetting."""
    folder = tls_folder(settings)
    if folder is None:
        return {}
    from weft_runtime.tls import nats_options

    return nats_options(folder.client())
