"""The shared metrics engine: measure grammar and vectorised evaluation."""
