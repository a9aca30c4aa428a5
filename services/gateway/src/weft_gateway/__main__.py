"""`python -m weft_gateway`: runs the gateway until it is told to stop."""

import sys

from weft_runtime.arguments import refuse_arguments
from weft_runtime.service import serve

from weft_gateway.app import start
from weft_gateway.settings import GatewaySettings

if __name__ == "__main__":
    refuse_arguments("weft_gateway", GatewaySettings, sys.argv[1:])
    raise SystemExit(serve("gateway", GatewaySettings(), start))
