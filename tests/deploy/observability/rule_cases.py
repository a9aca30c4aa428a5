"""For each alert: what a Prometheus that fires has seen, and what one that keeps quiet has.

Series are promtool's: `0x9` is ten samples of 0, one in each minute; `_` is no sample.
"""

from dataclasses import dataclass, field

JOB = 'job="weft-scheduler", instance="scheduler:9100"'
WORKER = 'job="weft-workers", instance="10.0.0.7:7000"'
ANSWERED = "gen_ai_server_request_duration_seconds_count"
FIRST = "gen_ai_server_time_to_first_token_seconds_bucket"
BETWEEN = "gen_ai_server_time_per_output_token_seconds_bucket"
MODEL = {"gen_ai_request_model": "tiny"}
OF_JOB = {"job": "weft-scheduler"}
OF_INSTANCE = OF_JOB | {"instance": "scheduler:9100"}
OF_WORKER = {"job": "weft-workers", "instance": "10.0.0.7:7000"}

Series = dict[str, str]


@dataclass(frozen=True)
class Case:
    """One alert's two cases, both looked at after `at` minutes."""

    alert: str
    at: int
    fires: Series
    quiet: Series
    summary: str
    """As it is told when it fires."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    """Besides its name and severity."""
    description: str | None = None
    """As it is told, where it has figures of its own."""
    every: int = 1
    """Minutes between two samples, and between two looks."""


def first_tokens(seconds: str, after: str = "+Inf") -> Series:
    """A first token in each second, within so many seconds."""
    model = 'gen_ai_request_model="tiny"'
    return {
        f'{FIRST}{{{model}, le="5.12"}}': "0+60x30" if seconds == "5.12" else "0x30",
        f'{FIRST}{{{model}, le="20.48"}}': "0+60x30",
        f'{FIRST}{{{model}, le="{after}"}}': "0+60x30",
    }


def tokens(seconds: str) -> Series:
    """A stream ends in each second, whose tokens came within so many seconds of one another."""
    model = 'gen_ai_request_model="tiny"'
    return {
        f'{BETWEEN}{{{model}, le="0.5"}}': "0+60x30" if seconds == "0.5" else "0x30",
        f'{BETWEEN}{{{model}, le="1"}}': "0+60x30",
        f'{BETWEEN}{{{model}, le="+Inf"}}': "0+60x30",
    }


SERVICES = (
    Case(
        "WeftServiceDown",
        5,
        fires={f"up{{{JOB}}}": "1 0x9"},
        quiet={f"up{{{JOB}}}": "1 0 1x9", f"up{{{WORKER}}}": "0x9"},
        labels=OF_INSTANCE,
        summary="weft-scheduler at scheduler:9100 can't be asked",
    ),
    Case(
        "WeftMeshUnseen",
        9,
        fires={'weft_nodes{state="healthy"}': "3x9"},
        quiet={'weft_nodes{state="healthy"}': "0x9", "weft_models": "0x9"},
        summary="Nobody tells how the mesh is",
    ),
    Case(
        "WeftServiceUnwell",
        3,
        fires={f'weft_service_problems{{{JOB}, whose="own"}}': "1x9"},
        quiet={f'weft_service_problems{{{JOB}, whose="own"}}': "1 0x9", 'weft_service_problems{whose="mesh"}': "1x9"},
        labels=OF_INSTANCE | {"whose": "own"},
        summary="weft-scheduler at scheduler:9100 says that it is not well",
    ),
    Case(
        "WeftServiceSeesProblems",
        12,
        fires={f'weft_service_problems{{{JOB}, whose="mesh"}}': "2x20"},
        quiet={
            f'weft_service_problems{{{JOB}, whose="mesh"}}': "1x5 0x20",
            'weft_service_problems{whose="own"}': "1x9",
        },
        labels=OF_JOB,
        summary="weft-scheduler sees a problem of the mesh",
    ),
    Case(
        "WeftServiceNotReady",
        7,
        fires={f"weft_service_ready{{{JOB}}}": "0x9"},
        quiet={f"weft_service_ready{{{JOB}}}": "0x3 1x9"},
        labels=OF_INSTANCE,
        summary="weft-scheduler at scheduler:9100 does not get ready",
    ),
    Case(
        "WeftNoLeader",
        3,
        fires={f"weft_service_leads{{{JOB}}}": "0x9", 'weft_service_leads{job="weft-scheduler", instance="b"}': "0x9"},
        quiet={f"weft_service_leads{{{JOB}}}": "0x9", 'weft_service_leads{job="weft-scheduler", instance="b"}': "1x9"},
        labels=OF_JOB,
        summary="No instance of weft-scheduler decides",
    ),
    Case(
        "WeftServiceRestarts",
        10,
        fires={f"process_start_time_seconds{{{JOB}}}": "0 0 100 100 200 200 300 300 400 400 400"},
        quiet={f"process_start_time_seconds{{{JOB}}}": "0 0 100 100 100 100 300 300 300 300 300"},
        labels=OF_INSTANCE,
        summary="weft-scheduler at scheduler:9100 starts again and again",
        description="It was started 4 times within 15 minutes.",
    ),
    Case(
        "WeftVersionsMixed",
        1500,
        every=30,
        fires={
            'weft_service_info{service="gateway", version="0.2.0"}': "1x50",
            'weft_service_info{service="worker-agent", version="0.1.0"}': "1x50",
        },
        quiet={
            'weft_service_info{service="gateway", version="0.2.0"}': "1x50",
            'weft_service_info{service="worker-agent", version="0.1.0"}': "1x20 _x30",
            'weft_service_info{service="registry", version="0.2.0"}': "1x50",
        },
        summary="2 releases of Weft have run side by side for a day",
    ),
)
LOG = (
    Case(
        "WeftLogAway",
        2,
        fires={f"weft_log_connected{{{JOB}}}": "0x9"},
        quiet={f"weft_log_connected{{{JOB}}}": "0x9", 'weft_log_connected{job="weft-scheduler", instance="b"}': "1x9"},
        labels=OF_JOB,
        summary="No instance of weft-scheduler reaches the log",
    ),
    Case(
        "WeftLogNearlyFull",
        12,
        fires={"weft_log_limit_bytes": "3221225472x20", "weft_log_bytes": "2684354560x20"},
        quiet={"weft_log_limit_bytes": "3221225472x20", "weft_log_bytes": "1073741824x20"},
        summary="The log has room for 512MiB more",
    ),
    Case(
        "WeftLogFull",
        6,
        fires={f"weft_log_refused_total{{{JOB}}}": "0+1x9"},
        quiet={
            f"weft_log_refused_total{{{JOB}}}": "7x9",
            "weft_log_limit_bytes": "3221225472x9",
            "weft_log_bytes": "1073741824x9",
        },
        summary="The log is full: it takes nothing more",
    ),
    Case(
        "WeftLogCopiesMissing",
        7,
        fires={"weft_log_copies": "2x9", "weft_log_copies_wanted": "3x9"},
        quiet={"weft_log_copies": "2 2 3x9", "weft_log_copies_wanted": "3x9"},
        summary="2 of the log's copies are up to date",
    ),
    Case(
        "WeftFoldBehind",
        4,
        fires={
            f'weft_fold_position{{{JOB}, fold="scheduler"}}': "400x9",
            'weft_fold_position{fold="registry"}': "5400x9",
        },
        quiet={
            f'weft_fold_position{{{JOB}, fold="scheduler"}}': "400+4000x1 9000x9",
            'weft_fold_position{fold="registry"}': "9000x9",
            f'weft_fold_behind{{{JOB}, fold="scheduler"}}': "9000 100x9",
        },
        labels=OF_INSTANCE | {"fold": "scheduler"},
        summary="weft-scheduler at scheduler:9100 is far behind the log",
        description="Its fold scheduler lacks more than 1,000 commits, so that it decides or answers from what was.",
    ),
    Case(
        "WeftFoldHalted",
        1,
        fires={f'weft_fold_halted{{{JOB}, fold="scheduler"}}': "0 1x9"},
        quiet={f'weft_fold_halted{{{JOB}, fold="scheduler"}}': "0x9"},
        labels=OF_INSTANCE | {"fold": "scheduler"},
        summary="weft-scheduler at scheduler:9100 decides nothing from its fold scheduler any more",
    ),
    Case(
        "WeftSuspects",
        7,
        fires={f'weft_fold_suspects{{{JOB}, fold="scheduler"}}': "2x9"},
        quiet={f'weft_fold_suspects{{{JOB}, fold="scheduler"}}': "2 0x9"},
        labels={"fold": "scheduler"},
        summary="2 aggregates are set aside by scheduler",
    ),
    Case(
        "WeftDecisionsLost",
        25,
        fires={f"weft_decisions_lost_total{{{JOB}}}": "0+60x30"},
        quiet={f"weft_decisions_lost_total{{{JOB}}}": "0+1x30"},
        labels=OF_JOB,
        summary="weft-scheduler loses many decisions to another writer",
    ),
)
NODES = (
    Case(
        "WeftBrakeSet",
        1,
        fires={"weft_brake": "0 1x9"},
        quiet={"weft_brake": "0x9"},
        summary="The brake is set: nothing is replaced",
    ),
    Case(
        "WeftNodesAway",
        7,
        fires={'weft_nodes{state="offline"}': "2x9", 'weft_nodes{state="unhealthy"}': "1x9"},
        quiet={'weft_nodes{state="offline"}': "0x9", 'weft_nodes{state="unhealthy"}': "1 0x9"},
        summary="3 nodes are silent",
    ),
    Case(
        "WeftNodeCutOff",
        1,
        fires={'weft_nodes{state="cut_off"}': "0 1x9"},
        quiet={'weft_nodes{state="cut_off"}': "0x9", 'weft_nodes{state="offline"}': "1x9"},
        summary="1 nodes are cut off",
    ),
    Case(
        "WeftNodeWaits",
        17,
        fires={"weft_nodes_to_approve": "1x20"},
        quiet={"weft_nodes_to_approve": "1x10 0x10"},
        summary="1 nodes wait for approval",
    ),
    Case(
        "WeftCredentialEnds",
        12,
        fires={f"weft_node_credential_left_seconds{{{WORKER}}}": "7200x20"},
        quiet={f"weft_node_credential_left_seconds{{{WORKER}}}": "43200-60x20"},
        labels=OF_WORKER,
        summary="The worker at 10.0.0.7:7000 has 2h 0m 0s until its credential ends",
    ),
    Case(
        "WeftDevicePressure",
        17,
        fires={
            f'weft_node_device_pressure_bytes{{{WORKER}, device="0"}}': "40x20",
            f'weft_node_device_memory_bytes{{{WORKER}, device="0"}}': "80x20",
            f'weft_node_device_claimed_bytes{{{WORKER}, device="0"}}': "30x20",
        },
        quiet={
            f'weft_node_device_pressure_bytes{{{WORKER}, device="0"}}': "40x20",
            f'weft_node_device_memory_bytes{{{WORKER}, device="0"}}': "80x20",
            f'weft_node_device_claimed_bytes{{{WORKER}, device="0"}}': "0x20",
        },
        labels=OF_WORKER | {"device": "0"},
        summary="Others use 50% of device 0 at 10.0.0.7:7000",
    ),
    Case(
        "WeftDevicesExhausted",
        35,
        fires={
            'weft_devices_free_bytes{vendor="nvidia"}': "1x40",
            'weft_devices_memory_bytes{vendor="nvidia"}': "80x40",
        },
        quiet={
            'weft_devices_free_bytes{vendor="nvidia"}': "8x40",
            'weft_devices_memory_bytes{vendor="nvidia"}': "80x40",
        },
        labels={"vendor": "nvidia"},
        summary="Less than 5 % of the nvidia devices' memory can be claimed",
    ),
    Case(
        "WeftNodeDiskNearlyFull",
        12,
        fires={f"weft_files_free_bytes{{{WORKER}}}": "5368709120x20"},
        quiet={f"weft_files_free_bytes{{{WORKER}}}": "53687091200x20"},
        labels=OF_WORKER,
        summary="The worker at 10.0.0.7:7000 has room for 5GiB of models",
    ),
    Case(
        "WeftFetchesFail",
        30,
        fires={f'weft_files_fetches_total{{{WORKER}, outcome="failed"}}': "0x9 4x30"},
        quiet={
            f'weft_files_fetches_total{{{WORKER}, outcome="failed"}}': "0x9 1x30",
            f'weft_files_fetches_total{{{WORKER}, outcome="ended"}}': "0+5x40",
        },
        labels=OF_WORKER | {"outcome": "failed"},
        summary="The worker at 10.0.0.7:7000 can't fetch models",
        description="About 4 fetches failed within 30 minutes; they are tried again, ever more seldom.",
    ),
)
MODELS = (
    Case(
        "WeftModelDown",
        4,
        fires={'weft_model_replicas_ready{model="tiny"}': "1 0x9", 'weft_model_replicas_wanted{model="tiny"}': "2x9"},
        quiet={'weft_model_replicas_ready{model="tiny"}': "0x9", 'weft_model_replicas_wanted{model="tiny"}': "0x9"},
        labels={"model": "tiny"},
        summary="No replica of tiny answers",
    ),
    Case(
        "WeftModelShort",
        17,
        fires={'weft_model_replicas_ready{model="tiny"}': "1x20", 'weft_model_replicas_wanted{model="tiny"}': "2x20"},
        quiet={
            'weft_model_replicas_ready{model="tiny"}': "1x9 2x9",
            'weft_model_replicas_wanted{model="tiny"}': "2x20",
        },
        labels={"model": "tiny"},
        summary="tiny has 1 replicas and should have more",
    ),
    Case(
        "WeftReplicasHomeless",
        12,
        fires={"weft_replicas_waiting": "3x20"},
        quiet={"weft_replicas_waiting": "3x5 0x20"},
        summary="3 replicas have no place",
    ),
    Case(
        "WeftReplicasLeave",
        32,
        fires={"weft_replicas_leaving": "1x40"},
        quiet={"weft_replicas_leaving": "1x20 0x20"},
        summary="1 replicas were retired half an hour ago and still hold memory",
    ),
    Case(
        "WeftRequestsFail",
        15,
        fires={
            f'{ANSWERED}{{gen_ai_request_model="tiny", error_type=""}}': "0+54x20",
            f'{ANSWERED}{{gen_ai_request_model="tiny", error_type="503"}}': "0+6x20",
        },
        quiet={
            f'{ANSWERED}{{gen_ai_request_model="tiny", error_type=""}}': "0+54x20",
            f'{ANSWERED}{{gen_ai_request_model="tiny", error_type="client_gone"}}': "0+6x20",
            f'{ANSWERED}{{gen_ai_request_model="tiny", error_type="503"}}': "0+1x20",
        },
        labels=MODEL,
        summary="10% of the requests to tiny fail",
    ),
    Case(
        "WeftRequestsGoElsewhere",
        20,
        fires={'weft_gateway_went_elsewhere_total{how="resumed"}': "0+30x30"},
        quiet={'weft_gateway_went_elsewhere_total{how="resumed"}': "0+1x30"},
        summary="Replicas fail 0.5 requests a second",
    ),
    Case(
        "WeftModelBusy",
        12,
        fires={'weft_gateway_model_waiting{gen_ai_request_model="tiny", why="busy"}': "4x20"},
        quiet={
            'weft_gateway_model_waiting{gen_ai_request_model="tiny", why="busy"}': "4x5 0 4x20",
            'weft_gateway_model_waiting{gen_ai_request_model="tiny", why="loading"}': "4x20",
        },
        labels=MODEL,
        summary="Requests have waited for room at tiny for 10 minutes",
    ),
    Case(
        "WeftFirstTokenSlow",
        20,
        fires=first_tokens("20.48"),
        quiet=first_tokens("5.12"),
        labels=MODEL,
        summary="Of tiny, one request in twenty waits 19.71s or more for its first token",
    ),
    Case(
        "WeftTokensSlow",
        20,
        fires=tokens("1"),
        quiet=tokens("0.5"),
        labels=MODEL,
        summary="Of tiny, one stream in twenty waits 975ms or more for each token",
    ),
)
CASES = (*SERVICES, *LOG, *NODES, *MODELS)
