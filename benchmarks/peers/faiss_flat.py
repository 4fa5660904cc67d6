"""faiss: the exact index IndexFlatL2, in float32."""
# /// script
# dependencies = ["faiss-cpu>=1.8", "numpy"]
# ///

import time

import faiss
import numpy as np

from benchmarks.harness.exchange import serve


def nearest(X: np.ndarray, k: int, threads: int) -> dict:
    """The k nearest others of every row, and the seconds of building and searching."""
    faiss.omp_set_num_threads(threads)
    start = time.perf_counter()
    index = faiss.IndexFlatL2(X.shape[1])
    index.add(X)
    found = index.search(X, k + 1)[1]
    return {"seconds": time.perf_counter() - start, "found": found.astype(np.int32)}


if __name__ == "__main__":
    serve(nearest)
