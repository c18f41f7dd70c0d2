"""Dask clusters of a campaign: an existing scheduler, or workers that the campaign starts on this or other machines."""

from __future__ import annotations

import ast
import importlib
from typing import Any

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_studies.campaign.schema import WorkersConfig

ATTACH_S = 30.0  #: wall time within which an existing scheduler must answer and provide a worker


def options_of(workers: WorkersConfig) -> dict[str, Any]:
    """Parse ``NAME=VALUE;NAME=VALUE``. Numbers, True, False and None become Python values; everything else stays
    text.
    """
    options: dict[str, Any] = {}
    for piece in filter(None, map(str.strip, workers.options.split(";"))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not name.isidentifier():
            raise ConfigError(f'<workers options="...">: invalid option "{piece}": use NAME=VALUE')
        if name in options:
            raise ConfigError(f'<workers options="...">: "{name}" appears twice')
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def check(workers: WorkersConfig) -> None:
    """Raise ConfigError for keys that workers of the configured kind would ignore, and for missing keys that they
    need.
    """
    kind, options = workers.kind, options_of(workers)
    if kind == "pool" and options:
        raise ConfigError('<workers kind="pool"> accepts no options')
    if kind == "dask":
        for name in options:
            if name != "address":
                hint = (
                    suggest_name(name, ["address"])
                    or "; its only option is `address`, the address of a running scheduler"
                )
                raise ConfigError(f"<workers kind=\"dask\"> has no option '{name}'{hint}")
        if not str(options.get("address", "tcp://")).partition("://")[1]:
            raise ConfigError(
                f"<workers>: invalid address '{options['address']}', expected PROTOCOL://HOST:PORT, such as tcp://10.0.0.1:8786"
            )
    if kind == "ssh" and not workers.hosts.split():
        raise ConfigError('<workers kind="ssh"> requires `hosts`')
    if kind != "ssh" and workers.hosts:
        raise ConfigError(f'<workers kind="{kind}"> does not accept `hosts`; use kind="ssh"')
    if workers.dashboard and (kind != "dask" or "address" in options):
        whose = "an existing scheduler has its own dashboard" if kind == "dask" else 'only kind="dask" has one'
        raise ConfigError(f'<workers kind="{kind}"> does not accept `dashboard`: {whose}')


def attached(address: str) -> Any:
    """Connect to a running scheduler. Raise WaveSimError if it does not answer or has no worker."""
    distributed: Any = importlib.import_module("distributed")
    try:
        client = distributed.Client(address, timeout=ATTACH_S)
    except (OSError, ValueError) as error:  # TimeoutError is a subclass of OSError
        raise WaveSimError(f"no dask scheduler answers at {address}: {error}") from None
    try:
        client.wait_for_workers(1, timeout=ATTACH_S)
    except Exception as error:
        client.close()
        raise WaveSimError(f"the dask scheduler at {address} has no workers ({type(error).__name__})") from None
    return client


def made(workers: WorkersConfig, count: int) -> Any:
    """Start a cluster of the kind that the campaign configures. The user must have installed the package for this kind."""
    options = options_of(workers)
    page = ":0" if workers.dashboard else None
    try:
        if workers.kind == "dask":
            return importlib.import_module("distributed").LocalCluster(
                n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address=page
            )
        if workers.kind == "ssh":
            hosts = workers.hosts.split()
            each = {"nthreads": 1, "n_workers": -(-count // len(hosts))}
            distributed = importlib.import_module("distributed")
            return distributed.SSHCluster([hosts[0], *hosts], worker_options=each, **options)
        if workers.kind == "slurm":
            cluster = importlib.import_module("dask_jobqueue").SLURMCluster(cores=1, processes=1, **options)
        else:
            cluster = importlib.import_module("dask_kubernetes.operator").KubeCluster(**options)
        cluster.scale(count)
        return cluster
    except TypeError as error:  # an option that the cluster class does not accept
        raise ConfigError(f'<workers kind="{workers.kind}">: {error}') from None
    except ImportError as error:
        raise WaveSimError(f'<workers kind="{workers.kind}"> requires the {error.name} package') from None
