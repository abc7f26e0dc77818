"""Web clients: the interface, and one for requests."""
