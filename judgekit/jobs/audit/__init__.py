"""Problems of a labeling that a comparison does not show: circularity, bias, gullibility.

`flow.audit` reads a results folder, does the checks and returns an `Audit`: `Number`s by labeling.
"""
