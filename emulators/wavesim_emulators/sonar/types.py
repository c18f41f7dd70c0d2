"""Types of the arrays of the imaging sonars."""

from __future__ import annotations

from typing import Any

import numpy as np

Singles = np.ndarray[Any, np.dtype[np.float32]]
Ints32 = np.ndarray[Any, np.dtype[np.int32]]
Levels = np.ndarray[Any, np.dtype[np.uint8]] | np.ndarray[Any, np.dtype[np.uint16]]  #: quantised levels
