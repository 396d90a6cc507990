"""What a comparison alone does not show of a labeling: circularity, bias, gullibility.

`flow.audit` reads a results folder, does the checks and returns an `Audit`: `Number`s by labeling.
"""
