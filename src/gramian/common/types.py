"""Types of arrays in annotations."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]
