"""judgekit: which way of labelling retrieval results predicts the quality of the answers?"""

__version__ = "0.1.0"
