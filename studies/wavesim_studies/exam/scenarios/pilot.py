"""On-board program of the exam's vehicles: the pilot, without a filter."""

import sys

from wavesim_studies.exam.live import main

if __name__ == "__main__":
    sys.exit(main())
