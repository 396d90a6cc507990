"""From the verdict to ground truth: choose what people judge, ask them, read back, correct many cheap labels by few."""
