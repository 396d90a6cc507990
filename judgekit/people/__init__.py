"""From the decision to ground truth: choose what people judge, read it, and correct many cheap labels by few."""
