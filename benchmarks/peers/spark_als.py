"""Alternating least squares of Spark's MLlib in local mode, for ratings. Needs Java."""
# /// script
# dependencies = ["pyspark==4.3.0", "numpy", "pandas", "pyarrow", "setuptools"]
# ///

import time
from typing import Any

import numpy as np
import pandas as pd
from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

from benchmarks.harness.exchange import serve


def fit(
    train: str, users: np.ndarray, items: np.ndarray, cores: int, settings: list[dict[str, Any]]
) -> dict[str, Any]:
    """Fit every setting to the Parquet files of a folder, once before the seconds count; what
    each predicts, and its seconds.
    """
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(2 * cores))
        .getOrCreate()
    )
    asked = spark.createDataFrame(pd.DataFrame({"user": users, "item": items}))
    found: dict[str, Any] = {}
    ALS(userCol="user", itemCol="item", ratingCol="rating").fit(spark.read.parquet(train))
    for k, options in enumerate(settings):
        start = time.perf_counter()
        learner = ALS(userCol="user", itemCol="item", ratingCol="rating", seed=0, **options)
        model = learner.fit(spark.read.parquet(train))
        found[f"seconds_{k}"] = time.perf_counter() - start
        answer = model.transform(asked).toPandas().set_index(["user", "item"])["prediction"]
        order = pd.MultiIndex.from_arrays([users, items])
        found[f"predicted_{k}"] = answer.reindex(order).to_numpy(dtype=float)
    spark.stop()
    return found


if __name__ == "__main__":
    serve(fit)
