"""From the decision to ground truth: choose what people judge, ask, read back, correct many cheap labels by few."""
