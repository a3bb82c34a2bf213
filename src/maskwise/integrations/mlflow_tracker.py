"""MLflow (extra `track`): the server of MLFLOW_TRACKING_URI, or files below the folder of the run."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric, Param

from maskwise.integrations.tracked_run import PROJECT, flatten, run_id

RUN_TAG = "maskwise_run"
"""Names the folder and stage of a run, so that a continued one is found again."""

MAX_VALUE = 500
"""Characters of a parameter: older servers refuse longer ones."""

FORBIDDEN = re.compile(r"[^\w\-. :/]")
"""What MLflow does not accept in names: `p@0.5` becomes `p_0.5`."""

BATCH = 100
"""Parameters or metrics in a request: more are refused."""


class MlflowTracker:
    """One run of MLflow per stage, in the experiment MLFLOW_EXPERIMENT_NAME or `maskwise`."""

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        folder = folder.absolute()
        address = os.environ.get("MLFLOW_TRACKING_URI")
        if address is None:
            address = (folder / "mlruns").as_uri()
            # mlflow-skinny has no database, and MLflow wants to be told that files are meant.
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        self.client = MlflowClient(address)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        experiment = self.client.get_experiment_by_name(name)
        if experiment is None:
            experiment_id = self.client.create_experiment(name)
        else:
            experiment_id = experiment.experiment_id
        id = run_id(folder, stage)
        earlier = self.client.search_runs([experiment_id], f"tags.{RUN_TAG} = '{id}'")
        if earlier:
            self.run_id = earlier[0].info.run_id
            return
        created = self.client.create_run(
            experiment_id, tags={RUN_TAG: id}, run_name=f"{folder.name}/{stage}"
        )
        self.run_id = created.info.run_id
        params = [
            Param(FORBIDDEN.sub("_", key), str(value)[:MAX_VALUE])
            for key, value in flatten(config).items()
        ]
        for first in range(0, len(params), BATCH):
            batch = params[first : first + BATCH]
            self.client.log_batch(self.run_id, params=batch)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values."""
        now = int(1000 * time.time())
        metrics = [
            Metric(FORBIDDEN.sub("_", name), value, now, step)
            for name, value in values.items()
        ]
        for first in range(0, len(metrics), BATCH):
            self.client.log_batch(self.run_id, metrics=metrics[first : first + BATCH])

    def close(self) -> None:
        """Say that the run is finished."""
        self.client.set_terminated(self.run_id)
