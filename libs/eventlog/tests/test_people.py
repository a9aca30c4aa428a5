"""Names of people: kept by opaque ids, and gone from the disk when they are erased."""

import asyncio

from weft_eventlog.people import erase_name, get_names, put_name
from weft_testing.mesh_server import MeshServer
from weft_testing.waiting import until


def on_disk(mesh: MeshServer, text: str) -> bool:
    """Whether some file of the server holds a text."""
    files = [path for path in (mesh.folder / "nats").rglob("*") if path.is_file()]
    return any(text.encode() in path.read_bytes() for path in files)


async def test_a_name_is_kept_for_its_id_and_erased_from_the_disk_as_well(mesh_server: MeshServer) -> None:
    client = await mesh_server.service("gateway")
    await put_name(client, "k-1", "Ada Lovelace")
    await put_name(client, "k-2", "Grace Hopper")
    assert {"k-1": "Ada Lovelace", "k-2": "Grace Hopper"} == await get_names(client, ["k-1", "k-2", "k-3"])
    assert on_disk(mesh_server, "Ada Lovelace")
    await erase_name(client, "k-1")
    assert {"k-2": "Grace Hopper"} == await get_names(client, ["k-1", "k-2"])
    assert not on_disk(mesh_server, "Ada Lovelace")
    # and once more is as good as once
    await erase_name(client, "k-1")


async def test_a_bucket_of_an_older_version_frees_the_name(mesh_server: MeshServer) -> None:
    # given the bucket as it was made before
    js = (await mesh_server.root()).jetstream(timeout=30)
    config = (await js.stream_info("KV_people")).config
    await js.delete_stream("KV_people")
    config.deny_delete = True
    await js.add_stream(config)
    client = await mesh_server.service("gateway")
    await put_name(client, "k-1", "Ada")
    await erase_name(client, "k-1")
    assert {} == await get_names(client, ["k-1"])


async def test_many_names_are_read_at_once(mesh_server: MeshServer) -> None:
    client = await mesh_server.service("gateway")
    ids = [f"k-{number}" for number in range(200)]
    await asyncio.gather(*(put_name(client, id, f"name of {id}") for id in ids))
    assert {id: f"name of {id}" for id in ids} == await get_names(client, ids)


async def test_no_other_stream_is_the_gateways_to_delete_from(mesh_server: MeshServer) -> None:
    client = await mesh_server.service("gateway")
    asking = asyncio.create_task(client.jsm(timeout=60).delete_msg("KV_credentials", 1))

    async def denied() -> bool:
        return any("msg.delete.kv_credentials" in error.lower() for error in mesh_server.errors)

    await until(denied)
    # then nobody answers what was denied
    assert not asking.done()
    asking.cancel()
