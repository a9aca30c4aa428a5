"""What a hub has of a repository, asked by its real client, and where its files may be asked for."""

import re
from typing import Any, Final, NoReturn, cast
from urllib.parse import quote

from weft_contracts.facts.machine import MOST_LICENCE
from weft_contracts.facts.source import HfSource, SourceFile
from weft_contracts.shown import public, shown
from weft_files.address import Address
from weft_files.faults import Cut

from weft_sources.found import MOST_FOUND, Found, FoundFile
from weft_sources.refused import SourceAway, SourceRefused
from weft_sources.settings import SourceSettings

COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def find_in_hub(source: HfSource, settings: SourceSettings) -> Found:
    """All files of a repository at its revision, which is answered as a commit.

    Two requests for a gated repository, one for others. Raises SourceRefused.
    """
    import httpx2
    from huggingface_hub import errors

    from weft_sources.hub_client import hub_api

    try:
        with hub_api(settings) as api:
            info = api.model_info(source.repository, revision=source.revision or None, files_metadata=True)
            found = _found(source, info)
            if found.gated:
                api.auth_check(source.repository)
            return found
    except (httpx2.HTTPError, Cut) as error:
        _refuse(source, settings, error)
    except errors.HFValidationError:
        raise SourceRefused(f"{source.repository} can't be a hub's repository: want owner/name") from None
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
        raise SourceRefused(f"{public(settings.hub)} answers with no description of {source.repository}") from None


def hub_address(source: HfSource, file: SourceFile, settings: SourceSettings) -> Address:
    """A file at its commit, with the token for the hub alone."""
    hub, revision = settings.hub.rstrip("/"), quote(source.revision or "main", safe="")
    headers = {"authorization": f"Bearer {settings.hub_token}"} if settings.hub_token else {}
    return Address(
        f"{hub}/{source.repository}/resolve/{revision}/{quote(file.name)}",
        headers,
        redirects="hub",
        said=f"{source.repository}/{file.name} at {public(settings.hub)}",
    )


def _found(source: HfSource, info: Any) -> Found:
    commit = str(info.sha or "")
    siblings = cast("list[Any]", info.siblings or [])
    if COMMIT.fullmatch(commit) is None:
        raise ValueError("no commit")
    if len(siblings) > MOST_FOUND:
        raise SourceRefused(f"{source.repository} has {len(siblings)} files: at most {MOST_FOUND} are looked at")
    return Found(
        source.model_copy(update={"revision": commit}),
        tuple(FoundFile(str(each.rfilename), each.size, _checksum(each)) for each in siblings),
        _licence(info),
        bool(info.gated),
    )


def _checksum(sibling: Any) -> str:
    if sibling.lfs is not None and _SHA256.fullmatch(str(sibling.lfs.sha256)):
        return f"sha256:{sibling.lfs.sha256}"
    if sibling.lfs is None and COMMIT.fullmatch(str(sibling.blob_id)):
        return f"git:{sibling.blob_id}"
    return ""


def _licence(info: Any) -> str:
    """As the card says it; `other` has a name of its own."""
    card = info.card_data
    said = card.get("license") if card is not None else None
    named = card.get("license_name") if card is not None else None
    if said == "other" and isinstance(named, str):
        said = named
    if not isinstance(said, str):
        tags = [str(tag) for tag in cast("list[Any]", info.tags or [])]
        said = next((tag.removeprefix("license:") for tag in tags if tag.startswith("license:")), "")
    return shown(said)[:MOST_LICENCE]


def _refuse(source: HfSource, settings: SourceSettings, error: Exception) -> NoReturn:
    import httpx2
    from huggingface_hub import errors

    from weft_sources.hub_client import AnswerTooLarge, NotAsked

    hub, what = public(settings.hub), source.repository
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else 0
    said = error.response.headers.get("x-error-message", "") if isinstance(error, errors.HfHubHTTPError) else ""
    refused: SourceRefused
    match error:
        case errors.GatedRepoError():
            refused = SourceRefused(
                f"{what} is gated: accept its terms on the hub, and give the workers a token of that account (HF_TOKEN)"
                f", or name a secret that holds one (--source-secret)"
            )
        case _ if status in (401, 403) and settings.hub_token and "credentials" in said.lower():
            remedy = f"set the secret {source.secret} anew" if source.secret else "give them a valid one (HF_TOKEN)"
            refused = SourceRefused(f"{hub} does not take the workers' token: {remedy}")
        case errors.RevisionNotFoundError():
            refused = SourceRefused(
                f"{what} has no revision {shown(source.revision)}: name a branch, a tag or a commit of it"
            )
        case _ if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 404):
            remedy = (
                "see that the token may read it"
                if settings.hub_token
                else "if it is private, give the workers a token (HF_TOKEN), or name a secret that holds one"
            )
            refused = SourceRefused(f"{what} is not on {hub}: check the name; {remedy}")
        case errors.DisabledRepoError():
            refused = SourceRefused(f"{what} was disabled on {hub}: name another repository")
        case NotAsked():
            refused = SourceRefused(f"{hub} {error}")
        case AnswerTooLarge():
            refused = SourceRefused(f"{hub} answers for {what} with what can't be taken: {error}")
        case httpx2.TooManyRedirects():
            refused = SourceRefused(f"{hub} leads on too often for {what}: see that it is the hub's address")
        case httpx2.TimeoutException():
            refused = SourceAway(f"{hub} did not answer within {settings.timeout_s:g} s: try again when it is back")
        case _ if status:
            refused = SourceAway(f"{hub} answers {status} for {what}: try again later")
        case _:
            refused = SourceAway(f"{hub} can't be reached ({shown(str(error))}): try again when it is back")
    raise refused from None
