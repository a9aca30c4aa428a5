"""`python -m weft_gateway`: runs the gateway until it is told to stop."""

from weft_runtime.service import serve

from weft_gateway.app import start
from weft_gateway.settings import GatewaySettings

if __name__ == "__main__":
    raise SystemExit(serve("gateway", GatewaySettings(), start))
