"""A gateway that reads slowly, or not at all, holds nobody up."""

import asyncio

import grpc.aio
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.gen import session_pb2_grpc as pb_grpc
from weft_dataplane import SessionClient
from weft_dataplane.limits import MAX_FRAME_BYTES, channel_options
from weft_dataplane.scripted import HELLO, Collector, Host


async def test_a_gateway_that_reads_slowly_gets_merged_steps_and_holds_nobody_up(
    client: SessionClient, host: Host
) -> None:
    async with grpc.aio.insecure_channel(host.target, options=channel_options()) as channel:
        slow = pb_grpc.EngineStub(channel).Session()
        await slow.write(pb.ClientFrame(hello=HELLO))
        await slow.read()
        await slow.write(pb.ClientFrame(submit=pb.Submit(request=1, text="slow")))
        quick_sink = Collector()
        client.submit(pb.Submit(text="quick"), quick_sink)
        await host.engine.has(2)

        # when the engine makes more than the sockets hold, and the slow one reads nothing
        for _ in range(3000):
            host.engine.step("x" * 2000)
            await asyncio.sleep(0)
        host.engine.finish_all()
        await quick_sink.end()

        # then the quick one has all, and the slow one gets all, in fewer outputs
        outputs: list[pb.Output] = []
        async with asyncio.timeout(30):
            while not outputs or not outputs[-1].finish:
                frame = await slow.read()
                assert isinstance(frame, pb.EngineFrame)
                assert frame.ByteSize() <= MAX_FRAME_BYTES
                outputs.extend(frame.step.outputs)
        assert quick_sink.text == "".join(output.text for output in outputs)
        assert sum(len(output.token_ids) for output in outputs) == 3000
        assert len(outputs) < 3000
        slow.cancel()


async def test_a_gateway_that_reads_nothing_is_given_up_when_its_backlog_outgrows_the_bound(
    host: Host,
) -> None:
    async with grpc.aio.insecure_channel(host.target, options=channel_options()) as channel:
        slow = pb_grpc.EngineStub(channel).Session()
        await slow.write(pb.ClientFrame(hello=HELLO))
        await slow.read()
        await slow.write(pb.ClientFrame(submit=pb.Submit(request=1, text="slow")))
        await host.engine.has(1)

        for _ in range(6000):
            host.engine.step("x" * 4000)
            await asyncio.sleep(0)
        await host.engine.has(0)

        assert host.engine.cancelled == [1]
        slow.cancel()
