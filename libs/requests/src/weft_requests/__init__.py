"""Requests for change: which of them wait for a service's answer, and how it answers."""

from weft_requests.pending import PendingRequest, PendingRequests
from weft_requests.reason import QUOTED, shortened
from weft_requests.round import Round

__all__ = ["QUOTED", "PendingRequest", "PendingRequests", "Round", "shortened"]
