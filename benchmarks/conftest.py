"""Processor time of one core: the threads of a BLAS library burn that of others while they wait."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
