"""Web clients: the interface, the base of HTTP clients, and one client each for requests and aiohttp."""
