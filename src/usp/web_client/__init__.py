"""Web clients: the interface, the base of HTTP clients, and clients on requests, asyncio and aiohttp."""
