"""What goes over the wire: endpoints, requests, replies, and what a response says."""
