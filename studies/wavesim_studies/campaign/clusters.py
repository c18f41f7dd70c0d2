"""Dask's clusters, as a campaign asks for them: a scheduler that runs already, or workers of our own, here and elsewhere."""

from __future__ import annotations

import ast
import importlib
from typing import Any

from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_studies.campaign.schema import WorkersConfig

ATTACH_S = 30.0  #: wall time within which a running scheduler has to answer, and has a worker


def options_of(workers: WorkersConfig) -> dict[str, Any]:
    """NAME=VALUE with ; between: numbers, True, False and None as such, all else as text."""
    options: dict[str, Any] = {}
    for piece in filter(None, map(str.strip, workers.options.split(";"))):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals or not name.isidentifier():
            raise ConfigError(f'<workers options="...">: "{piece}" is not NAME=VALUE')
        if name in options:
            raise ConfigError(f'<workers options="...">: "{name}" stands twice')
        try:
            options[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[name] = value
    return options


def check(workers: WorkersConfig) -> None:
    """ConfigError for what workers of their kind would ignore, or cannot do without."""
    kind, options = workers.kind, options_of(workers)
    if kind == "pool" and options:
        raise ConfigError('<workers kind="pool"> has no options')
    if kind == "dask":
        for name in options:
            if name != "address":
                hint = suggest_name(name, ["address"]) or "; it has `address` alone, of a scheduler that runs already"
                raise ConfigError(f"<workers kind=\"dask\"> has no option '{name}'{hint}")
        if not str(options.get("address", "tcp://")).partition("://")[1]:
            raise ConfigError(
                f"<workers>: address={options['address']} is not PROTOCOL://HOST:PORT, such as tcp://10.0.0.1:8786"
            )
    if kind == "ssh" and not workers.hosts.split():
        raise ConfigError('<workers kind="ssh"> needs hosts')
    if kind != "ssh" and workers.hosts:
        raise ConfigError(f'<workers kind="{kind}"> has no hosts; those are of kind="ssh"')
    if workers.dashboard and (kind != "dask" or "address" in options):
        whose = "a scheduler that runs has its own" if kind == "dask" else 'it is of kind="dask"'
        raise ConfigError(f'<workers kind="{kind}"> has no dashboard: {whose}')


def attached(address: str) -> Any:
    """A client of a scheduler that runs already, and has a worker. WaveSimError if not."""
    distributed: Any = importlib.import_module("distributed")
    try:
        client = distributed.Client(address, timeout=ATTACH_S)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise WaveSimError(f"no dask scheduler answers at {address}: {error}") from None
    try:
        client.wait_for_workers(1, timeout=ATTACH_S)
    except Exception as error:
        client.close()
        raise WaveSimError(f"the dask scheduler at {address} has no workers ({type(error).__name__})") from None
    return client


def made(workers: WorkersConfig, count: int) -> Any:
    """A cluster of our own of the kind that the campaign asks for. What is heavy, or rare, is an installation of the user's."""
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
    except TypeError as error:  # an option that it does not know
        raise ConfigError(f'<workers kind="{workers.kind}">: {error}') from None
    except ImportError as error:
        raise WaveSimError(f'<workers kind="{workers.kind}"> needs the package {error.name}') from None
