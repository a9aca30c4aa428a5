"""`/api/upgrade`: which versions of facts may be written, and the end of an upgrade."""

from fastapi import APIRouter, Request
from weft_api import Format, NodeBehind, Upgrade, UpgradeFinished
from weft_contracts.facts.request import UpgradeFinishRequested
from weft_contracts.formats import READS, lacking
from weft_fleet import workers_behind

from weft_gateway.inbound.admin.asking import Asking, done
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.json_route import JSONRoute
from weft_gateway.inbound.http.openapi_document import PROBLEMS
from weft_gateway.projections.directory import Directory


class Upgrades:
    """Where an upgrade stands, from memory, and its end."""

    def __init__(self, directory: Directory, asking: Asking) -> None:
        self._directory = directory
        self._asking = asking
        self.router = APIRouter(tags=["upgrade"], responses=PROBLEMS, route_class=JSONRoute)
        add = answering(self.router)
        add("/api/upgrade", self.get, "GET")
        add("/api/upgrade/finish", self.finish, "POST")

    async def get(self) -> Answer[Upgrade]:
        """Which versions of facts may be written, and which nodes' workers can't read the newest ones.

        Services of an earlier version are named by a `finish` that they make be refused.
        """
        fleet = self._directory.fleet
        formats: list[Format] = [
            {"fact": fact, "newest": newest, "written": min(newest, fleet.formats.get(fact, 1))}
            for fact, newest in READS.items()
        ]
        behind: list[NodeBehind] = [
            {"id": node.id, "name": node.name, "state": node.state, "heard": node.hardware is not None}
            for node in workers_behind(fleet.nodes.values())
        ]
        return Answer({"finished": not lacking(fleet.formats), "formats": formats, "behind": behind})

    async def finish(self, request: Request) -> Answer[UpgradeFinished]:
        """Let facts be written in their newest versions.

        409 while a connected service, or a worker of a node that is in the mesh, can't read them; it names them.
        """
        return done(await self._asking.ask(request, UpgradeFinishRequested()))
