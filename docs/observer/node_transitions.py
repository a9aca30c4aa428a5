"""Prints what becomes of each node: an observer of one's own, in as few lines as it takes.

`weft observers add NAME` makes its credential, and says how this is started.
"""

from weft_observer import Happened, Observer

observer = Observer()
names: dict[str, str] = {}


@observer.on("node.*")
async def tell(happened: Happened) -> None:
    """Facts come one after the other; one that this raises an error at comes again."""
    node, fact = happened.commit.aggregate.key, happened.document()["fact"]
    names[node] = fact.get("name", names.get(node, node))
    print(names[node], fact["type"], fact.get("why") or "", flush=True)


if __name__ == "__main__":
    raise SystemExit(observer.run())
