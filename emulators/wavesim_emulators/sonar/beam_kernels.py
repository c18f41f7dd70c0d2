"""Compiled kernel of a beamformer: the sum of the columns of a fan, weighted with the receive gains of each beam."""

from __future__ import annotations

from wavesim_emulators.sonar.types import Singles
from wavesim_kernels.compiler import kernel

#: number of columns that the kernel adds at a time; the number of columns must be a multiple of this number
UNROLLED = 8
FAST_BINS = 32  #: the kernel is fastest if ``end`` - ``first`` is a multiple of this number


@kernel
def sum_columns(gains: Singles, columns: Singles, first: int, end: int, power: Singles) -> None:
    """Compute the product of ``gains`` (beams, columns) and ``columns`` (columns, bins) for the bins from ``first`` to
    ``end`` - 1 of ``power`` (beams, bins).

    Each sum adds the columns in order, so the result is bit-identical on every machine. The result of a linear-algebra
    library would depend on its version, on the processor and on the number of threads.
    """
    size = end - first
    for i in range(gains.shape[0]):
        total = power[i, first:end]
        total[:] = 0.0
        for j in range(0, gains.shape[1], UNROLLED):
            g0, g1, g2, g3 = gains[i, j], gains[i, j + 1], gains[i, j + 2], gains[i, j + 3]
            g4, g5, g6, g7 = gains[i, j + 4], gains[i, j + 5], gains[i, j + 6], gains[i, j + 7]
            # most gains are 0, because the table of the beam pattern ends
            if g0 == g1 == g2 == g3 == g4 == g5 == g6 == g7 == 0.0:
                continue
            c0, c1 = columns[j, first:end], columns[j + 1, first:end]
            c2, c3 = columns[j + 2, first:end], columns[j + 3, first:end]
            c4, c5 = columns[j + 4, first:end], columns[j + 5, first:end]
            c6, c7 = columns[j + 6, first:end], columns[j + 7, first:end]
            for k in range(size):
                part = total[k] + g0 * c0[k] + g1 * c1[k] + g2 * c2[k] + g3 * c3[k]
                total[k] = part + g4 * c4[k] + g5 * c5[k] + g6 * c6[k] + g7 * c7[k]
