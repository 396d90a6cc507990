"""The bundled sample experiment."""
