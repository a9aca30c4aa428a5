"""What a NATS server is told so that accounts and users are known by signed tokens."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperatorMode:
    """Accounts by token: the operator's token, the system account, and key → token of the accounts."""

    operator_token: str
    system_account: str
    account_tokens: Mapping[str, str]
